"""tests/faults.py must not make the table of proven rows from runs that proved less."""

import re
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


ROWS = TABLE["claimed_rows"]()
MEANINGS = TABLE["MEANINGS"].read_text(encoding="utf-8")
NEEDS = list(TABLE["NEEDS"])
SKIPPED = [case(f"test_{row}", row, "<skipped/>") for row in NEEDS]
PROVEN = [*SKIPPED, *(case(f"test_{row}", row) for row in ROWS)]


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Run the script with two results; return its exit status and its output."""

    def run(rust_text, python_text, *options, meanings=MEANINGS):
        results = tmp_path / "rust.txt", tmp_path / "python.xml"
        for path, text in zip(results, (rust_text, python_text), strict=True):
            path.write_text(text, encoding="utf-8")
        files = ["--rust", str(results[0]), "--python", str(results[1])]
        monkeypatch.setattr(sys, "argv", ["faults.py", *files, *options])
        (tmp_path / "meanings.md").write_text(meanings, encoding="utf-8")
        for name, file in (("TABLE", "FAULTS.md"), ("MEANINGS", "meanings.md")):
            monkeypatch.setitem(TABLE["main"].__globals__, name, tmp_path / file)
        return TABLE["main"](), capsys.readouterr().out

    return run


def test_a_complete_run_is_written_and_then_agrees(check):
    runs = rust(["a::tests::t10_t11_every_attempt_is_new ... ok"]), python(*PROVEN)
    assert check(*runs)[0] == 1, "no table yet"
    assert check(*runs, "--write")[0] == 0
    assert check(*runs)[0] == 0
    status, printed = check(rust(["a::tests::t10_another_story ... ok"]), runs[1])
    assert status == 1
    lines = [line for line in printed.splitlines() if "`a::tests::" in line]
    assert {(line[0], line.split("`")[1].rsplit("::")[-1]) for line in lines} == {
        ("-", "t10_t11_every_attempt_is_new"),
        ("+", "t10_another_story"),
    }


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
    status, printed = check(rust([line]), python(*PROVEN[:-1]), "--write")
    assert status == 1
    assert ROWS[-1] in printed


def test_a_row_whose_only_test_was_skipped_is_listed_as_unproven(check, tmp_path):
    assert check(rust(["x ... ok"]), python(*PROVEN), "--write")[0] == 0
    text = (tmp_path / "FAULTS.md").read_text(encoding="utf-8")
    proven, unproven = text.split("## Unproven: skipped")
    assert f"{len(ROWS)} rows claimed and proven." in proven
    for row in NEEDS:
        assert f"| {row} |" not in proven
        assert f"| {row} | {TABLE['meanings'](MEANINGS)[row]} | `test_x::test_{row}` |" in unproven
        assert f"{row} needs {TABLE['NEEDS'][row]}" in unproven
    assert "unproven here" in check(rust(["x ... ok"]), python(*PROVEN))[1]
    # Where they are proven the table is the same, and the output says so.
    also = [case(f"test_{row}", row) for row in NEEDS]
    status, printed = check(rust(["x ... ok"]), python(*PROVEN[len(NEEDS) :], *also))
    assert status == 0
    assert ": proven here" in printed
    status, printed = check(rust(["x ... ok"]), python(*PROVEN[len(NEEDS) :]), "--write")
    assert status == 1
    assert f"nor a skipped test names: {', '.join(NEEDS)}" in printed


def test_the_table_says_which_form_ran(check, tmp_path, monkeypatch):
    for value, words in (("", "of `make test`."), ("1", "of the longer form.")):
        monkeypatch.setenv("SITELINE_LONG", value)
        check(rust(["x ... ok"]), python(*PROVEN), "--write")
        text = (tmp_path / "FAULTS.md").read_text(encoding="utf-8")
        assert f"These runs were {words}" in text
    assert set(TABLE["LONGER"]) <= set(ROWS)


def test_an_incomplete_run_is_refused(check):
    for runs, words in (
        ((rust(["x ... ok"], filtered=3), python(*PROVEN)), "filtered"),
        ((rust([]).replace("ok", "FAILED"), python(*PROVEN)), "Rust"),
        (("", python(*PROVEN)), "Rust"),
        ((rust(["x ... ok"]), python()), "Python"),
        ((rust(["x ... ok"]), python(*PROVEN, case("test_y", "K1", "<error/>"))), "failed"),
    ):
        status, printed = check(*runs, "--write")
        assert status == 1
        assert words in printed


def test_an_unknown_row_is_named(check):
    for runs in (
        (rust(["x ... ok"]), python(*PROVEN, case("test_y", "K99"))),
        (rust(["x ... ok"]), python(*PROVEN, case("test_y", "keys"))),
        (rust(["a::tests::d10_is_no_row ... ok"]), python(*PROVEN)),
    ):
        status, printed = check(*runs, "--write")
        assert status == 1
        assert "does not have" in printed


def test_the_meaning_of_a_row_is_on_the_line_of_its_first_test(check, tmp_path):
    runs = rust(["x ... ok"]), python(*PROVEN, case("test_also", "K1"))
    assert check(*runs, "--write")[0] == 0
    lines = (tmp_path / "FAULTS.md").read_text(encoding="utf-8").splitlines()
    first, second = (line for line in lines if line.startswith("| K1 |"))
    meaning = TABLE["meanings"](MEANINGS)["K1"]
    assert first == f"| K1 | {meaning} | `test_x::test_K1` |"
    assert second == "| K1 | | `test_x::test_also` |"


@pytest.mark.parametrize("line", ["", "| K1 | |\n"])
def test_a_claimed_row_without_a_meaning_is_named(check, line):
    meanings = re.sub(r"^\| K1 \|.*\n", line, MEANINGS, flags=re.MULTILINE)
    status, printed = check(rust(["x ... ok"]), python(*PROVEN), "--write", meanings=meanings)
    assert status == 1
    assert "K1" in printed


def test_a_row_with_two_meanings_is_named(check):
    with pytest.raises(SystemExit, match=r"duplicate rows: K1$"):
        check(rust(["x ... ok"]), python(*PROVEN), meanings=f"{MEANINGS}\n| K1 | another |\n")


def test_the_table_in_the_repository_has_the_current_meanings():
    """Without the results of runs only the rows and the meanings can be compared."""
    text = SCRIPT.with_name("FAULTS.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| ([A-Z]\d+) \| (.+) \| `.*` \|$", text, re.MULTILINE))
    meanings = TABLE["meanings"](MEANINGS)
    assert list(shown) == [*ROWS, *NEEDS]
    assert shown == {row: meanings[row] for row in shown}


def test_there_are_218_rows():
    assert len(TABLE["meanings"](MEANINGS)) == 218
