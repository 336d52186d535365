"""tests/faults.py must reject a row if its test is missing, did not run or failed."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "faults.py"
PAGE = "| row | meaning | test |\n|---|---|---|\n| K1 | One. | `k1_one`, `test_a.py::test_one` |\n"
RUST = "test auth::tests::k1_one ... ok\ntest result: ok. 1 passed; 0 failed\n"
CASE = '<testcase classname="tests.python.test_a" name="test_one[x]">{}</testcase>'


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Run the script with a page and two results; return its status, output and table."""

    def run(page=PAGE, rust=RUST, inside="", case=CASE):
        for name, text in (
            ("page.md", page),
            ("rust.txt", rust),
            ("python.xml", f"<testsuites>{case.format(inside)}</testsuites>"),
        ):
            (tmp_path / name).write_text(text, encoding="utf-8")
        script = runpy.run_path(str(SCRIPT), run_name="faults")
        monkeypatch.setitem(script["main"].__globals__, "PAGE", tmp_path / "page.md")
        options = ["--rust", "rust.txt", "--python", "python.xml", "--out", "faults.md"]
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["faults.py", *options])
        status = script["main"]()
        return status, capsys.readouterr().out, (tmp_path / "faults.md").read_text(encoding="utf-8")

    return run


def test_rows_whose_tests_passed_are_proven(check):
    status, _, table = check()
    assert status == 0
    assert "| K1 | One. | `test_a.py::test_one` | passed |" in table


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"page": "| K1 | One. |  |\n"}, "K1 names no test"),
        ({"page": "| K1 | One. |\n"}, "K1 names no test"),
        ({"page": PAGE.replace("k1_one", "k1_two")}, "K1: k1_two did not run"),
        ({"page": PAGE + "| K1 | Two. | `k1_one` |\n"}, "K1 is there twice"),
        ({"rust": RUST.replace("... ok", "... FAILED")}, "K1: k1_one failed"),
        ({"rust": RUST.replace("result: ok", "result: FAILED")}, "the Rust run failed"),
        ({"rust": ""}, "the Rust run failed"),
        ({"inside": "<failure/>"}, "K1: test_a.py::test_one failed"),
        ({"inside": "<error/>"}, "the Python run failed"),
        ({"case": ""}, "the Python run failed"),
        ({"case": CASE.replace("test_one", "test_two")}, "test_a.py::test_one did not run"),
    ],
)
def test_a_row_without_a_passed_test_fails(check, change, words):
    status, output, _ = check(**change)
    assert status == 1
    assert words in output


def test_a_skipped_test_leaves_its_row_unproven(check):
    status, output, table = check(inside="<skipped/>")
    assert status == 0
    assert "unproven: K1: `test_a.py::test_one` skipped" in output
    assert "- K1: `test_a.py::test_one` skipped" in table
