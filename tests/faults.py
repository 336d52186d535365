"""Checks that the tests of each row of docs/internals/faults.md ran and passed.

Writes a table of results. A row names one or more tests: the function of a Rust test (`t10_…`), or
a Python test as `test_paging.py::test_…`. The check fails if a row names no test, if a named test
did not run or failed, or if one of the runs failed. A row is unproven if a test was skipped, or if
only `make campaigns` runs it.
"""

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# Only `make campaigns` runs these tests, because they compile most dependencies again.
CAMPAIGNS = {"k15_a_second_crypto_library_and_its_default_change_nothing"}
PAGE = Path(__file__).parents[1] / "docs" / "internals/faults.md"
ROW = re.compile(r"^\| ([A-Z]\d{1,2}) \| *(.*?) *(?:\| *([^|]*?) *)?\|$", re.MULTILINE)
RUST_TEST = re.compile(r"^test (?:\S+::)?(\w+)(?: - should panic)? \.\.\. (\w+)", re.MULTILINE)
RUST_RESULT = re.compile(r"^test result: (\w+)\.", re.MULTILINE)


def rows(page: str) -> list[tuple[str, str, list[str]]]:
    """Returns the rows of the page: id, meaning and tests."""
    return [(row, text, re.findall(r"`([^`]+)`", tests)) for row, text, tests in ROW.findall(page)]


def rust_outcomes(output: str) -> dict[str, set[str]]:
    """Returns the outcomes of the Rust tests: function -> passed, failed or skipped."""
    words = {"ok": "passed", "ignored": "skipped"}
    found: dict[str, set[str]] = {}
    for name, outcome in RUST_TEST.findall(output):
        found.setdefault(name, set()).add(words.get(outcome, "failed"))
    return found


def python_outcomes(tree: ElementTree.ElementTree) -> dict[str, set[str]]:
    """Returns the outcomes of the Python tests: file::function -> passed, failed or skipped."""
    found: dict[str, set[str]] = {}
    for case in tree.iter("testcase"):
        modules = case.get("classname", "").split(".")
        module = next((part for part in modules if part.startswith("test_")), modules[-1])
        name = case.get("name", "").split("[", 1)[0]
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "passed"
        outcome = "skipped" if "skipped" in tags else outcome
        found.setdefault(f"{module}.py::{name}", set()).add(outcome)
    return found


def state(outcomes: set[str]) -> str:
    """Returns the state of a test: failed if a case failed, otherwise passed if a case passed."""
    order = ("failed", "passed", "skipped")
    return next((outcome for outcome in order if outcome in outcomes), "did not run")


def main() -> int:
    """Checks the rows and writes the table; returns 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rust", type=Path, required=True, help="the output of cargo test")
    parser.add_argument("--python", type=Path, required=True, help="the junit XML of pytest")
    parser.add_argument("--out", type=Path, default=Path("target/results/faults.md"))
    options = parser.parse_args()
    output = options.rust.read_text(encoding="utf-8")
    python = python_outcomes(ElementTree.parse(options.python))
    outcomes = rust_outcomes(output) | python
    found = rows(PAGE.read_text(encoding="utf-8"))
    ids = [row for row, _, _ in found]
    faults = [f"{row} is there twice" for row in sorted({row for row in ids if ids.count(row) > 1})]
    if set(RUST_RESULT.findall(output)) != {"ok"}:
        faults.append("the Rust run failed")
    if not python or any("failed" in each for each in python.values()):
        faults.append("the Python run failed")
    lines = ["# Fault rows", "", "| row | meaning | test | result |", "|---|---|---|---|"]
    unproven = []
    for row, meaning, tests in found:
        if not tests:
            faults.append(f"{row} names no test")
        for test in tests:
            result = state(outcomes.get(test, set()))
            lines.append(f"| {row} | {meaning} | `{test}` | {result} |")
            if result == "skipped" or (result == "did not run" and test in CAMPAIGNS):
                unproven.append(f"{row}: `{test}` {result}")
            elif result != "passed":
                faults.append(f"{row}: {test} {result}")
    lines += ["", "## Unproven", "", *(f"- {line}" for line in unproven or ["none"]), ""]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join([*faults, *(f"unproven: {line}" for line in unproven)]))
    print(
        f"{len(found)} fault rows in {options.out}; {len(faults)} faults, {len(unproven)} unproven"
    )
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
