"""Texts of the library that the command prints: its own options instead of Python calls."""

import ast
import re
from pathlib import Path

import pytest
from siteline.cli.wording import hint_in_shell

ROOT = Path(__file__).parents[2]
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
CALL = re.compile(r"\w\([^()]*[=.][^()]*\)|\w\(\)|\bscan\.\w|\berror\.\w|\b[a-z_]+=(?=[ ,.;:)]|$)")
OPTIONS = {"--page-size", "--labels", "--max-pages", "--deadline", "--interval", "--filter"}
URL = "https://a.example/?start=1&page_size=2"


def texts():
    """The texts of at least four words in the library, as the hints and messages have them."""
    for path in (ROOT / "crates/core/src").rglob("*.rs"):
        if "test" not in path.name:
            for found in LITERAL.finditer(path.read_text(encoding="utf-8")):
                yield re.sub(r"\\\n\s*", "", found[1]).replace('\\"', '"').replace("\\n", "\n")
    for path in (ROOT / "python/siteline").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        values = [keyword.value for one in ast.walk(tree) if isinstance(one, ast.Call)
                  for keyword in one.keywords if keyword.arg == "hint"]  # fmt: skip
        yield from (one.value for one in values if isinstance(one, ast.Constant) and one.value)


def test_no_hint_has_a_python_call():
    found = [text for text in texts() if len(text.split()) >= 4 and CALL.search(text)]
    assert len(found) > 80
    assert [text for text in found if CALL.search(hint_in_shell(text, OPTIONS))] == []


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ask for less at once (page_size=)", "ask for less at once (--page-size)"),
        ("check proxy=, HTTPS_PROXY and NO_PROXY", "check proxy, HTTPS_PROXY and NO_PROXY"),
        ("Give deadline= more time. scan.resume(x, onto=y).", "Give --deadline more time."),
        ("In another process continue with scan.resume(error.bookmark).", ""),
        ("changed: call collect() again.", "changed: run the command again."),
        ("Call sync() again: it continues.", "Run the command again: it continues."),
        ("store.coverage('line-2') shows more.", "siteline coverage shows more."),
        ('Set it: Shape(array="…").', 'Set it: array="…" in [NAME.shape] of a profile.'),
        ("with find(), or labels= that differ.", "with --find, or --labels that differ."),
        ("Compare:\n- one\n- two", "Compare:\n- one\n- two"),
        ("max_pages=4 was reached", "--max-pages 4 was reached"),
        ("allow_http=True, filters=", "allow_http=True, --filter"),
        (URL, URL),
        ('filters=A/w.csv, interval="A/B".', 'filters=A/w.csv, --interval "A/B".'),
    ],
)
def test_hints_are_written_for_the_shell(text, printed):
    assert hint_in_shell(text, OPTIONS) == printed
