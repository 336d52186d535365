"""The lines of each part of siteline next to its budget.

Each row has a goal. A row that is larger than its goal today has a ceiling too. The check fails if
a row exceeds both. Lower a ceiling when the code shrinks. Raise one only in a change that lowers
another by more. Product code is counted without tests: files and folders named ``tests*``, and
``#[cfg(test)]`` modules.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SATELLITES = re.compile(r"cli|display|doctor|plots|targets|spark|dlt|otel|mcp|signers|pyinstaller")
# Part -> goal, ceiling (0: the goal is reached).
BUDGETS = {
    "src": (6_000, 7_880),
    "crates/core": (35_000, 38_040),
    "crates/base": (1_200, 0),
    "crates/sandbox": (5_000, 0),
    "python/siteline": (9_000, 10_930),
    "python/siteline, stub": (350, 0),
    "python/siteline, satellites": (11_000, 0),
    "tests": (55_000, 0),
    "benches": (2_000, 0),
}
TEST_NAME = re.compile(r"^(tests?|test_harness|test_server)$|^tests?_|_tests?$")
# A module of tests in a file: from its attribute to the brace in the first column.
INLINE = re.compile(r"^#\[cfg\((?:test|all\(test, \w+\))\)\]\nmod \w+ \{\n.*?^\}\n", re.M | re.S)


def part(path: Path) -> str:
    """The row that a file belongs to; empty for none."""
    top, *below = path.parts
    if top == "crates":
        return "tests" if below[0] == "ring" else f"crates/{below[0]}"
    if top == "python":
        if path.suffix == ".pyi":
            return "python/siteline, stub"
        own = below[1].lstrip("_") if len(below) > 2 else path.stem
        return "python/siteline" + (", satellites" if SATELLITES.fullmatch(own) else "")
    return top if top in BUDGETS else ""


def count(paths: list[Path]) -> Counter[str]:
    """The lines of each row."""
    lines: Counter[str] = Counter()
    for path in paths:
        row = part(path)
        if path.suffix not in (".rs", ".py", ".pyi", ".sh", ".c") or not row:
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.suffix == ".rs" and any(map(TEST_NAME.search, [*path.parts[2:-1], path.stem])):
            row = "tests"
        product = INLINE.sub("", text) if path.suffix == ".rs" and row != "tests" else text
        lines[row] += product.count("\n")
        lines["tests"] += text.count("\n") - product.count("\n")
    return lines


def main() -> int:
    """Print the table."""
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    lines = count([Path(name) for name in listed if (ROOT / name).is_file()])
    print(f"{'part':<30}{'lines':>8}{'goal':>8}{'ceiling':>9}")
    failed = False
    for row, (goal, ceiling) in BUDGETS.items():
        exceeded = lines[row] > max(goal, ceiling)
        failed |= exceeded
        columns = f"{row:<30}{lines[row]:>8,}{goal:>8,}{f'{ceiling:,}' if ceiling else '':>9}"
        print(columns + ("  exceeded" if exceeded else ""))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
