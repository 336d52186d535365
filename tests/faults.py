"""Make tests/FAULTS.md, the table of proven rows, from the results of the test runs.

A Rust test proves the rows that its name begins with (``t10_every_attempt_carries_a_new_jti``), a
Python test those of its mark (``@pytest.mark.fault("T10")``). The check fails if a row that the
project claims has no test that ran and passed, if a test names a row that nobody knows, if a run
was not whole (a test failed, or some were filtered out), or if the table in the repository is not
the one that these runs give.
"""

from __future__ import annotations

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TABLE = Path(__file__).with_name("FAULTS.md")

# The rows that this version claims: letter -> numbers. The meaning of each is in the right column.
CLAIMED = {
    "K": [*range(1, 16)],
    "T": [*range(1, 31), 32],
    "D": [*range(1, 10)],
    "E": [*range(1, 7)],
    "J": [*range(1, 22)],
    "P": [*range(1, 13)],
    "H": [22, 23, 24],
    "B": [*range(1, 14)],
    # R10 is proven where a free-threaded interpreter is found.
    "S": [*range(1, 12), 15],
    "R": [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18],
}
# All rows that there are, claimed or not yet: letter -> the last number.
KNOWN = {
    **{"K": 15, "T": 32, "D": 9, "H": 26, "M": 6, "E": 6, "J": 21, "P": 12, "B": 13},
    **{"R": 18, "S": 15},
}
ROW = re.compile(r"^([a-z])(\d{1,2})$")
RUST_LINE = re.compile(r"^test (\S+?)(?: - should panic)? \.\.\. (\w+)", re.MULTILINE)


def rust_results(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Rows proven by Rust tests: row -> (test, what happened)."""
    rows = defaultdict(list)
    for name, outcome in RUST_LINE.findall(path.read_text(encoding="utf-8")):
        words = name.rsplit("::", 1)[-1].split("_")
        ids = []
        while words and ROW.match(words[0]):
            ids.append(words.pop(0).upper())
        if outcome == "ok":
            for row in ids:
                rows[row].append((name, " ".join(words)))
    return rows


def python_results(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Rows proven by Python tests: row -> (test, what happened)."""
    rows = defaultdict(list)
    for case in ElementTree.parse(path).iter("testcase"):
        if any(case.find(tag) is not None for tag in ("failure", "error", "skipped")):
            continue
        module = case.get("classname", "").rsplit(".", 1)[-1]
        name = case.get("name", "").split("[", 1)[0]
        for prop in case.iter("property"):
            if prop.get("name") == "fault":
                sentence = name.removeprefix("test_").replace("_", " ")
                entry = (f"{module}::{name}", sentence)
                if entry not in rows[prop.get("value", "")]:
                    rows[prop.get("value", "")].append(entry)
    return rows


def not_whole(rust: str, python: ElementTree.ElementTree) -> list[str]:
    """What makes these runs no proof: failures, tests left out, nothing run at all."""
    faults = []
    results = re.findall(r"^test result: (\w+)\..* (\d+) filtered out", rust, re.MULTILINE)
    if not results or any(outcome != "ok" for outcome, _ in results):
        faults.append("the Rust run did not end well")
    if any(int(filtered) for _, filtered in results):
        faults.append("some Rust tests were filtered out")
    cases = list(python.iter("testcase"))
    if not cases:
        faults.append("no Python test ran")
    if any(case.find(tag) is not None for case in cases for tag in ("failure", "error")):
        faults.append("a Python test failed")
    return faults


def unknown(rows: Iterable[str]) -> list[str]:
    """Rows that are in no fault table: a misspelt id proves nothing."""
    known = {f"{letter}{number + 1}" for letter, last in KNOWN.items() for number in range(last)}
    return sorted(set(rows) - known)


def render(rows: dict[str, list[tuple[str, str]]]) -> str:
    """The table as Markdown."""
    lines = [
        "# The fault table: what was proven",
        "",
        "Made from the results of `make test` by `tests/faults.py`; do not edit. Each row of the",
        "fault table that this version claims, the tests that proved it, what happened in them.",
        "Names with `::tests::` are Rust tests of the core; the others ran against the wheel.",
        "",
        "| row | what happened | test |",
        "|---|---|---|",
    ]
    for letter, numbers in CLAIMED.items():
        for number in numbers:
            for test, happened in sorted(rows.get(f"{letter}{number}", [])):
                lines.append(f"| {letter}{number} | {happened} | `{test}` |")
    claimed = sum(len(numbers) for numbers in CLAIMED.values())
    lines += ["", f"{claimed} rows claimed and proven.", ""]
    return "\n".join(lines)


def main() -> int:
    """Compare, or write with ``--write``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rust", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="renew tests/FAULTS.md")
    options = parser.parse_args()
    faults = not_whole(options.rust.read_text(encoding="utf-8"), ElementTree.parse(options.python))
    if faults:
        print("these runs prove nothing:", "; ".join(faults))
        return 1
    rows = defaultdict(list)
    for source in (rust_results(options.rust), python_results(options.python)):
        for row, entries in source.items():
            rows[row] += entries
    strange = unknown(rows)
    if strange:
        print("tests name rows that nobody knows:", ", ".join(strange))
        return 1
    claimed = {f"{letter}{number}" for letter, numbers in CLAIMED.items() for number in numbers}
    missing = sorted(claimed - rows.keys(), key=lambda row: (row[0], int(row[1:])))
    if missing:
        print("claimed, but no test that ran and passed proves it:", ", ".join(missing))
        return 1
    table = render(rows)
    if options.write:
        TABLE.write_text(table, encoding="utf-8")
        print(f"{TABLE.name}: {len(claimed)} rows")
        return 0
    if not TABLE.exists() or TABLE.read_text(encoding="utf-8") != table:
        print("tests/FAULTS.md is not what these runs proved: make faults FAULTS=--write")
        return 1
    print(f"{len(claimed)} fault rows proven, as tests/FAULTS.md says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
