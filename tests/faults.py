"""Make tests/FAULTS.md, the table of proven rows, from the results of the test runs.

The meanings of the rows are read from docs/faults.md. A Rust test proves the rows that its name
begins with (``t10_every_attempt_carries_a_new_jti``), a Python test those of its mark
(``@pytest.mark.fault("T10")``) and of its name (``test_k16_...``). The check fails if

- a claimed row has no meaning in docs/faults.md, or no test that ran and passed; the rows of
  ``NEEDS`` are listed as unproven where their tests were skipped
- a test names a row that docs/faults.md does not have
- a run is incomplete: a test failed, or some were filtered out
- the table in the repository differs from the one that these runs give
"""

from __future__ import annotations

import argparse
import difflib
import os
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
    "K": [*range(1, 22)],
    "T": [*range(1, 33)],
    "D": [*range(1, 10)],
    "E": [*range(1, 7)],
    "J": [*range(1, 23)],
    "P": [*range(1, 16)],
    "H": [*range(1, 28)],
    "B": [*range(1, 24)],
    "A": [*range(1, 15)],
    "M": [*range(1, 7)],
    "S": [*range(1, 23)],
    "R": [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21],
}
# Rows that are proven only where a test finds what it needs, and what that is.
NEEDS = {"R10": "a free-threaded interpreter that has siteline"}
# Rows whose tests try more with SITELINE_LONG: in `make test`, and then.
LONGER = {
    "J21": ("20,000 bodies with flipped bytes", "100,000"),
    "R1": ("a reaction within 20 s", "within 1.5 s; `make torture` within 200 ms"),
    "R2": ("a reaction within 20 s", "within 1.5 s; `make torture` within 200 ms"),
    "R4": ("an end within 20 s", "within 1.5 s"),
    "R5": ("a reaction within 20 s", "within 1.5 s; `make torture` within 100 ms"),
    "R17": ("400 clients, 2,000 pages", "2,000 clients, 10,000 pages"),
    "S1": ("25 kills", "1,000"),
}
ROW = re.compile(r"^([a-z])(\d{1,2})$")
MEANING = re.compile(r"^\| ([A-Z]\d{1,2}) \| *(.*?) *\|$", re.MULTILINE)
RUST_LINE = re.compile(r"^test (\S+?)(?: - should panic)? \.\.\. (\w+)", re.MULTILINE)


def meanings(text: str) -> dict[str, str]:
    """The rows of docs/faults.md that have a meaning: row -> meaning."""
    found = MEANING.findall(text)
    duplicates = sorted(row for row, times in Counter(row for row, _ in found).items() if times > 1)
    if duplicates:
        sys.exit(f"docs/faults.md has duplicate rows: {', '.join(duplicates)}")
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
        for word in takewhile(ROW.match, name.removeprefix("test_").split("_")):
            rows[word.upper()].add(f"{module}::{name}")
    return rows


def skipped_rows(path: Path) -> dict[str, set[str]]:
    """Rows whose Python tests were skipped: row -> tests."""
    rows = defaultdict(set)
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("skipped") is not None:
            module = case.get("classname", "").rsplit(".", 1)[-1]
            name = case.get("name", "").split("[", 1)[0]
            for prop in case.iter("property"):
                if prop.get("name") == "fault":
                    rows[prop.get("value", "")].add(f"{module}::{name}")
    return rows


def incomplete(rust: str, python: ElementTree.ElementTree) -> list[str]:
    """Why these runs prove nothing: failures, tests that were filtered out, no tests."""
    faults = []
    results = re.findall(r"^test result: (\w+)\..* (\d+) filtered out", rust, re.MULTILINE)
    if not results or any(outcome != "ok" for outcome, _ in results):
        faults.append("the Rust run failed")
    if any(int(filtered) for _, filtered in results):
        faults.append("some Rust tests were filtered out")
    cases = list(python.iter("testcase"))
    if not cases:
        faults.append("no Python test ran")
    if any(case.find(tag) is not None for case in cases for tag in ("failure", "error")):
        faults.append("a Python test failed")
    return faults


def render(
    rows: dict[str, set[str]],
    meaning: dict[str, str],
    skipped: dict[str, set[str]],
    *,
    is_long: bool,
) -> str:
    """The table as Markdown; the meaning of a row is on the line of its first test."""
    lines = [
        "# The fault table: what is proven",
        "",
        "Generated by `tests/faults.py` from the results of `make test`; do not edit. Each row",
        "that this version claims, its meaning from [docs/faults.md](../docs/faults.md), and the",
        "tests that prove it. Names with `::tests::` are Rust tests of the core; the others run",
        "against the wheel.",
        "",
    ]
    claimed = claimed_rows()
    lines += table(claimed, rows, meaning)
    lines += ["", f"{len(claimed)} rows claimed and proven.", ""]
    unproven = [row for row in NEEDS if row not in rows]
    if unproven:
        lines += ["## Unproven: skipped", ""]
        lines += [f"{row} needs {NEEDS[row]}." for row in unproven]
        lines += ["", *table(unproven, skipped, meaning), ""]
    ran = "These runs were of the longer form." if is_long else "These runs were of `make test`."
    lines += ["## Longer forms", "", f"`make faults-long` tries more of these rows. {ran}", ""]
    lines += ["| row | in `make test` | in `make faults-long` |", "|---|---|---|"]
    lines += [f"| {row} | {short} | {long} |" for row, (short, long) in LONGER.items()]
    return "\n".join([*lines, ""])


def table(listed: list[str], tests: dict[str, set[str]], meaning: dict[str, str]) -> list[str]:
    """The lines of these rows, each with its tests."""
    lines = ["| row | meaning | test |", "|---|---|---|"]
    for row in listed:
        for number, test in enumerate(sorted(tests.get(row, ()))):
            text = "" if number else f" {meaning[row]}"
            lines.append(f"| {row} |{text} | `{test}` |")
    return lines


def changes(known: str, proven: str) -> list[str]:
    """The lines of the table that these runs take out and add."""
    lines = difflib.unified_diff(known.splitlines(), proven.splitlines(), n=0, lineterm="")
    return [line[:200] for line in lines if not line.startswith(("---", "+++", "@@"))]


def objections(
    rows: dict[str, set[str]], meaning: dict[str, str], skipped: dict[str, set[str]]
) -> list[str]:
    """Why no table can be made of these results."""
    lists = {
        "tests name rows that docs/faults.md does not have": sorted(rows.keys() - meaning.keys()),
        "claimed rows without a meaning in docs/faults.md": [
            row for row in (*claimed_rows(), *NEEDS) if row not in meaning
        ],
        "claimed rows that no test proves, which ran and passed": [
            row for row in claimed_rows() if row not in rows
        ],
        "rows that neither a test proves nor a skipped test names": [
            row for row in NEEDS if row not in rows and row not in skipped
        ],
    }
    return [f"{text}: {', '.join(ids)}" for text, ids in lists.items() if ids]


def main() -> int:
    """Compare, or write with ``--write``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rust", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="update tests/FAULTS.md")
    options = parser.parse_args()
    faults = incomplete(options.rust.read_text(encoding="utf-8"), ElementTree.parse(options.python))
    if faults:
        print("these runs prove nothing:", "; ".join(faults))
        return 1
    rows = defaultdict(set)
    rust, python = rust_results(options.rust), python_results(options.python)
    for row in NEEDS:
        # The core's own tests need nothing, and are not enough.
        rust.pop(row, None)
    for source in (rust, python):
        for row, tests in source.items():
            rows[row] |= tests
    meaning = meanings(MEANINGS.read_text(encoding="utf-8"))
    skipped = skipped_rows(options.python)
    faults = objections(rows, meaning, skipped)
    if faults:
        print("\n".join(faults))
        return 1
    # The table in the repository is that of runs without what `NEEDS` names, so that it is the same
    # wherever it is compared.
    proven_here = {row: rows.pop(row) for row in NEEDS if row in rows}
    skipped |= proven_here
    is_long = bool(os.environ.get("SITELINE_LONG"))
    text = render(rows, meaning, skipped, is_long=is_long)
    if options.write:
        TABLE.write_text(text, encoding="utf-8")
        print(f"{TABLE.name}: {len(claimed_rows())} rows")
        return 0
    known = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    if known not in (render(rows, meaning, skipped, is_long=long) for long in {is_long, False}):
        print("tests/FAULTS.md differs from what these runs proved: make faults FAULTS=--write")
        print("\n".join(changes(known, render(rows, meaning, skipped, is_long=False))))
        return 1
    print(f"{len(claimed_rows())} fault rows proven, in agreement with tests/FAULTS.md")
    for row, what in NEEDS.items():
        print(f"{row}: {'proven here' if row in proven_here else f'unproven here, without {what}'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
