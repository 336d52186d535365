"""A test that uses what some systems lack carries a mark of kit.systems, or its module does."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = [path for path in sorted(HERE.glob("test_*.py")) if path != Path(__file__)]

# What a test says, and the mark that it needs then.
NEEDED = {
    "FORK": re.compile(r"os\.fork\("),
    "SIGNALS": re.compile(
        r"signal\.(SIGUSR1|SIGKILL|SIGALRM|raise_signal)|\.send_signal\(|os\.kill, \(os\.getpid"
    ),
    "MODES": re.compile(r"st_mode|S_IMODE|os\.umask|\.chmod\(0o6[0-7]*[1-7]\)"),
    "TERMINAL": re.compile(r"import (pty|termios)"),
    "PROC": re.compile(r"/proc/"),
    "PRELOAD": re.compile(r"LD_PRELOAD|run_with_resolver"),
    "ROOT": re.compile(r"os\.chown\("),
}
# A system that has the one has the other.
IMPLIED = {"MODES": {"FORK", "ROOT", "XDG", "SIGNALS"}, "SIGNALS": {"FORK"}, "FORK": {"SIGNALS"}}
WITHOUT_POSIX = re.compile(
    r"import (fcntl|grp|pty|pwd|resource|termios)|os\.(geteuid|getuid|umask)\b"
)


def unmarked(text):
    """The tests of a module that lack a mark, each with the mark."""
    tree = ast.parse(text)
    known = {name: node for node in tree.body for name in names_of(node)}
    whole = source(text, known["pytestmark"]) if "pytestmark" in known else ""
    for name, node in known.items():
        if not name.startswith("test_") or "skipif" in whole:
            continue
        used = used_by(name, known, set())
        body = "\n".join(source(text, known[one]) for one in used)
        marks = set(re.findall(r"systems\.([A-Z]+)", decorators(text, node) + whole))
        for mark, pattern in NEEDED.items():
            if pattern.search(body) and not marks & {mark, *IMPLIED.get(mark, ())}:
                yield name, mark


def names_of(node):
    """The names that a statement of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def used_by(name, known, seen):
    """The name, and those of the module that it uses, also as fixtures."""
    if name in known and name not in seen:
        seen.add(name)
        for node in ast.walk(known[name]):
            other = getattr(node, "id", None) or getattr(node, "arg", None)
            if isinstance(other, str):
                used_by(other, known, seen)
    return seen


def source(text, node):
    """The lines of a statement. (`ast.get_source_segment` takes a second for a module.)"""
    return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])


def decorators(text, node):
    return "\n".join(source(text, decorator) for decorator in node.decorator_list)


def at_import(text):
    """The lines that Windows cannot import: outside of functions, and of a check for the name."""
    lines = [line for line in text.splitlines() if not line.startswith((" ", "#", '"', ")"))]
    return [line for line in lines if WITHOUT_POSIX.search(line) and "hasattr" not in line]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_a_system_may_lack_is_marked(path):
    text = path.read_text(encoding="utf-8")
    assert [*unmarked(text)] == []
    assert at_import(text) == []


def test_the_kit_can_be_imported_on_every_system():
    for path in HERE.glob("kit/*.py"):
        assert at_import(path.read_text(encoding="utf-8")) == [], path.name


FORKS = "def start():\n    os.fork()\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def test_a():\n    os.fork()\n", [("test_a", "FORK")]),
        ("@systems.FORK\ndef test_a():\n    os.fork()\n", []),
        ("pytestmark = pytest.mark.skipif(x, reason='')\ndef test_a():\n    os.fork()\n", []),
        ("pytestmark = [systems.FORK]\ndef test_a():\n    os.fork()\n", []),
        (FORKS + "def test_a():\n    start()\n", [("test_a", "FORK")]),
        (FORKS + "def test_a(start):\n    pass\n", [("test_a", "FORK")]),
        ("S = '/proc/self'\ndef test_a():\n    run(S)\n", [("test_a", "PROC")]),
        ("@systems.FORK\ndef test_a():\n    open('/proc/x')\n", [("test_a", "PROC")]),
        ("def test_a():\n    pass\n", []),
    ],
)
def test_a_test_without_its_mark_is_found(text, found):
    assert [*unmarked(text)] == found


@pytest.mark.parametrize("line", ["import resource", "ME = os.geteuid()"])
def test_an_import_that_fails_on_windows_is_found(line):
    assert at_import(f"import os\n{line}\n") == [line]
    assert at_import(f"def use():\n    {line}\n") == []
