"""Make tests/FAULTS.md, the table of proven rows, from the results of the test runs.

What each row means stands once, in docs/faults.md; this script reads it from there. A Rust test
proves the rows that its name begins with (``t10_every_attempt_carries_a_new_jti``), a Python test
those of its mark (``@pytest.mark.fault("T10")``). The check fails if

- a row that the project claims has no meaning in docs/faults.md, or no test that ran and passed
- a test names a row that docs/faults.md does not have
- a run was not whole: a test failed, or some were filtered out
- the table in the repository is not the one that these runs give
"""

from __future__ import annotations

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from itertools import takewhile
from pathlib import Path

TABLE = Path(__file__).with_name("FAULTS.md")
MEANINGS = Path(__file__).parents[1] / "docs" / "faults.md"

# The rows that this version claims: letter -> numbers.
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
ROW = re.compile(r"^([a-z])(\d{1,2})$")
MEANING = re.compile(r"^\| ([A-Z]\d{1,2}) \| *(.*?) *\|$", re.MULTILINE)
RUST_LINE = re.compile(r"^test (\S+?)(?: - should panic)? \.\.\. (\w+)", re.MULTILINE)


def meanings(text: str) -> dict[str, str]:
    """Every row of docs/faults.md: row -> meaning. An empty meaning is none."""
    found = MEANING.findall(text)
    twice = sorted(row for row, times in Counter(row for row, _ in found).items() if times > 1)
    if twice:
        sys.exit(f"docs/faults.md has rows twice: {', '.join(twice)}")
    return {row: meaning for row, meaning in found if meaning}


def claimed_rows() -> list[str]:
    """The claimed rows, in the order of the table."""
    return [f"{letter}{number}" for letter, numbers in CLAIMED.items() for number in numbers]


def rust_results(path: Path) -> dict[str, set[str]]:
    """Rows proven by Rust tests: row -> tests."""
    rows = defaultdict(set)
    for name, outcome in RUST_LINE.findall(path.read_text(encoding="utf-8")):
        if outcome == "ok":
            words = name.rsplit("::", 1)[-1].split("_")
            for word in takewhile(ROW.match, words):
                rows[word.upper()].add(name)
    return rows


def python_results(path: Path) -> dict[str, set[str]]:
    """Rows proven by Python tests: row -> tests."""
    rows = defaultdict(set)
    for case in ElementTree.parse(path).iter("testcase"):
        if any(case.find(tag) is not None for tag in ("failure", "error", "skipped")):
            continue
        module = case.get("classname", "").rsplit(".", 1)[-1]
        name = case.get("name", "").split("[", 1)[0]
        for prop in case.iter("property"):
            if prop.get("name") == "fault":
                rows[prop.get("value", "")].add(f"{module}::{name}")
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


def render(rows: dict[str, set[str]], meaning: dict[str, str]) -> str:
    """The table as Markdown: each row's meaning, on the first line of its tests."""
    lines = [
        "# The fault table: what is proven",
        "",
        "Made from the results of `make test` by `tests/faults.py`; do not edit. Each row that",
        "this version claims, its meaning from [docs/faults.md](../docs/faults.md), and the tests",
        "that prove it. Names with `::tests::` are Rust tests of the core; the others run against",
        "the wheel.",
        "",
        "| row | meaning | test |",
        "|---|---|---|",
    ]
    claimed = claimed_rows()
    for row in claimed:
        for number, test in enumerate(sorted(rows.get(row, ()))):
            text = "" if number else f" {meaning[row]}"
            lines.append(f"| {row} |{text} | `{test}` |")
    lines += ["", f"{len(claimed)} rows claimed and proven.", ""]
    return "\n".join(lines)


def objections(rows: dict[str, set[str]], meaning: dict[str, str]) -> list[str]:
    """What keeps these results from being a table."""
    lists = {
        "tests name rows that docs/faults.md does not have": sorted(rows.keys() - meaning.keys()),
        "claimed, but without a meaning in docs/faults.md": [
            row for row in claimed_rows() if row not in meaning
        ],
        "claimed, but no test that ran and passed proves it": [
            row for row in claimed_rows() if row not in rows
        ],
    }
    return [f"{text}: {', '.join(ids)}" for text, ids in lists.items() if ids]


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
    rows = defaultdict(set)
    for source in (rust_results(options.rust), python_results(options.python)):
        for row, tests in source.items():
            rows[row] |= tests
    meaning = meanings(MEANINGS.read_text(encoding="utf-8"))
    faults = objections(rows, meaning)
    if faults:
        print("\n".join(faults))
        return 1
    table = render(rows, meaning)
    if options.write:
        TABLE.write_text(table, encoding="utf-8")
        print(f"{TABLE.name}: {len(claimed_rows())} rows")
        return 0
    if not TABLE.exists() or TABLE.read_text(encoding="utf-8") != table:
        print("tests/FAULTS.md is not what these runs proved: make faults FAULTS=--write")
        return 1
    print(f"{len(claimed_rows())} fault rows proven, as tests/FAULTS.md says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
