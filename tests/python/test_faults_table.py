"""The table of proven rows (tests/faults.py) must not be made of runs that proved less."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "faults.py"
TABLE = runpy.run_path(str(SCRIPT), run_name="faults")
RESULT = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; {} filtered out; finished\n"


def rust(lines, filtered=0):
    return "".join(f"test {line}\n" for line in lines) + RESULT.format(filtered)


def python(*cases):
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"


def case(name, row, inside=""):
    property_ = f'<properties><property name="fault" value="{row}"/></properties>'
    return f'<testcase classname="tests.python.test_x" name="{name}">{property_}{inside}</testcase>'


ROWS = [f"{letter}{number}" for letter, all_ in TABLE["CLAIMED"].items() for number in all_]
PROVEN = [case(f"test_{row}", row) for row in ROWS]


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Run the script over two results; give its exit status and what it says."""

    def run(rust_text, python_text, *options):
        results = tmp_path / "rust.txt", tmp_path / "python.xml"
        for path, text in zip(results, (rust_text, python_text), strict=True):
            path.write_text(text, encoding="utf-8")
        files = ["--rust", str(results[0]), "--python", str(results[1])]
        monkeypatch.setattr(sys, "argv", ["faults.py", *files, *options])
        monkeypatch.setitem(TABLE["main"].__globals__, "TABLE", tmp_path / "FAULTS.md")
        return TABLE["main"](), capsys.readouterr().out

    return run


def test_a_whole_run_is_written_and_then_agrees(check):
    runs = rust(["a::tests::t10_t11_every_attempt_is_new ... ok"]), python(*PROVEN)
    assert check(*runs)[0] == 1, "no table yet"
    assert check(*runs, "--write")[0] == 0
    assert check(*runs)[0] == 0
    assert check(rust(["a::tests::t10_another_story ... ok"]), runs[1])[0] == 1


@pytest.mark.parametrize(
    "inside",
    ["<skipped/>", '<skipped type="pytest.xfail"/>', "<failure/>", "<error/>"],
)
def test_a_row_whose_test_did_not_pass_is_not_proven(check, inside):
    runs = rust(["k1_x ... ok"]), python(*PROVEN[:-1], case("test_last", ROWS[-1], inside))
    assert check(*runs, "--write")[0] == 1


@pytest.mark.parametrize("outcome", ["ignored", "FAILED"])
def test_a_rust_test_that_did_not_pass_proves_nothing(check, outcome):
    line = f"a::tests::{ROWS[-1].lower()}_is_so ... {outcome}"
    status, said = check(rust([line]), python(*PROVEN[:-1]), "--write")
    assert status == 1
    assert ROWS[-1] in said


def test_a_part_of_the_tests_is_no_run(check):
    for runs, words in (
        ((rust(["x ... ok"], filtered=3), python(*PROVEN)), "filtered"),
        ((rust([]).replace("ok", "FAILED"), python(*PROVEN)), "Rust"),
        (("", python(*PROVEN)), "Rust"),
        ((rust(["x ... ok"]), python()), "Python"),
        ((rust(["x ... ok"]), python(*PROVEN, case("test_y", "K1", "<error/>"))), "failed"),
    ):
        status, said = check(*runs, "--write")
        assert status == 1
        assert words in said


def test_a_row_that_nobody_knows_is_named(check):
    for runs in (
        (rust(["x ... ok"]), python(*PROVEN, case("test_y", "K99"))),
        (rust(["x ... ok"]), python(*PROVEN, case("test_y", "keys"))),
        (rust(["a::tests::d10_is_no_row ... ok"]), python(*PROVEN)),
    ):
        status, said = check(*runs, "--write")
        assert status == 1
        assert "nobody knows" in said
