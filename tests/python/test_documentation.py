"""The code in the README, the examples and the docstrings runs; the exports are complete."""

import ast
import code
import doctest
import inspect
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import siteline
import siteline.otel
import siteline.reports
import siteline.testing
from kit.executed import Executed
from kit.pages import blocks
from kit.ranges import NOW

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = [getattr(siteline, name) for name in siteline.__all__]
CLASSES = [thing for thing in PUBLIC if inspect.isclass(thing)]


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def name_of(path):
    return path.relative_to(ROOT).as_posix()


WITH_BLOCKS = [path for path in PAGES if blocks(path, "python")]


class Prompt(code.InteractiveConsole):
    """An interpreter that only parses: an indented block ends at an empty line, as at a prompt."""

    def runcode(self, code):
        """Run nothing."""

    def showsyntaxerror(self, *_, **__):
        raise


@pytest.mark.parametrize("path", WITH_BLOCKS, ids=name_of)
def test_every_python_block_of_a_page_can_be_pasted_into_an_interpreter(path):
    for block in blocks(path, "python"):
        prompt = Prompt()
        for line in [*block.splitlines(), ""]:
            more = prompt.push(line)
        assert not more, block


@pytest.mark.parametrize("path", WITH_BLOCKS, ids=name_of)
def test_every_python_block_of_a_page_runs(path, tmp_path, monkeypatch, capsys):
    """The blocks of a page run one after another, in one namespace; each page prints something."""
    monkeypatch.chdir(tmp_path)
    executed = Executed()
    space = {"__name__": "page", **executed.names}
    logger = logging.getLogger("siteline")
    handlers = list(logger.handlers)
    try:
        for number, block in enumerate(blocks(path, "python"), 1):
            exec(executed.compiled(block, f"{name_of(path)}, block {number}"), space)
    finally:
        for name in ("store", "client", "sandbox"):
            if hasattr(space.get(name), "close"):
                space[name].close()
        logger.handlers[:] = handlers
        logger.setLevel(logging.NOTSET)
    assert capsys.readouterr().out
    assert executed.missed() == []


def test_the_readme_and_the_how_to_pages_have_python_blocks():
    pages = {name_of(path) for path in WITH_BLOCKS}
    names = ("credentials", "observability", "reading", "runtime", "settings", "sync", "testing")
    assert pages >= {"README.md", *(f"docs/{name}.md" for name in names)}
    assert len(blocks(ROOT / "README.md", "python")) >= 3


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_every_example_runs(path, capsys, monkeypatch, tmp_path):
    arguments = [str(tmp_path / "coverage.svg")] if path.name == "late_data.py" else []
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    executed = Executed()
    code = executed.compiled(path.read_text(encoding="utf-8"), str(path))
    space = {"__name__": "__main__", "__file__": str(path), **executed.names}
    exec(code, space)
    assert capsys.readouterr().out
    if path.name != "pictures.py":  # the tests do not install matplotlib
        assert set(executed.missed()) <= NOT_PROVOKED


NOT_PROVOKED = {
    # The example fails after the first page, so this line is never reached.
    "raise  # nothing was read yet",
    # An example cannot provoke these errors in a process that runs other tests too.
    'print("ask the administrator of the proxy:", error)',
    'print("free some space, then sync again:", error)',
    'print("please report:", error)',
    'print(f"this clock is {-error.skew_seconds:+.0f} s from the service\'s")',
    "page = next(scan.pages())",
}
"""The statements of examples that no test executes."""


def test_a_statement_that_is_not_reached_is_detected():
    executed = Executed()
    source = """
def sign(message):
    if message:
        return vault.sign(message)

later = lambda: 1
try:
    sign("")
except ValueError:
    print()
"""
    exec(executed.compiled(source, "page"), {**executed.names})
    assert executed.missed() == ["later = lambda: 1", "print()", "return vault.sign(message)"]


def _own(thing):
    """The public members that a class itself defines."""
    return {name: member for name, member in vars(thing).items() if not name.startswith("_")}


def _is_documented(thing, name, member):
    if callable(member) or inspect.isdatadescriptor(member) or isinstance(member, classmethod):
        doc = inspect.getdoc(member) or ""
        # Python gives the field of a named tuple a default docstring.
        return doc and (not doc.startswith("Alias for field") or f"``{name}``" in thing.__doc__)
    return f"``.{name}``" in thing.__doc__


@pytest.mark.parametrize("thing", CLASSES, ids=lambda thing: thing.__name__)
def test_every_public_class_and_its_members_have_docstrings(thing):
    assert "__doc__" in vars(thing), "the docstring is inherited"
    assert inspect.cleandoc(thing.__doc__)
    missing = [
        name for name, member in _own(thing).items() if not _is_documented(thing, name, member)
    ]
    assert not missing


@pytest.mark.parametrize("thing", CLASSES, ids=lambda thing: thing.__name__)
def test_every_public_class_shows_an_example(thing):
    assert doctest.DocTestParser().get_examples(thing.__doc__)


def test_every_public_name_is_a_class_the_doctor_the_errors_or_the_version():
    others = {name for name in siteline.__all__ if not inspect.isclass(getattr(siteline, name))}
    assert others == {"__version__", "doctor", "errors"}
    for thing in (siteline, siteline.doctor, siteline.errors, siteline.testing):
        assert thing.__doc__


def test_a_name_without_a_docstring_is_detected():
    class Bare:
        """A class with members without docstrings."""

        def method(self):
            pass

        field = None

    members = _own(Bare)
    assert set(members) == {"method", "field"}
    assert not any(_is_documented(Bare, *member) for member in members.items())


def _documented():
    plots = [getattr(siteline.plots, name) for name in ("allowance", "coverage", "lateness")]
    modules = [siteline.otel, siteline.reports, siteline.testing]
    for thing in [siteline, siteline.doctor, *modules, *plots, *CLASSES]:
        yield thing.__name__, thing.__doc__
        for name, member in _own(thing).items() if inspect.isclass(thing) else ():
            doc = inspect.getdoc(member)
            if doc and not inspect.isclass(member):
                yield f"{thing.__name__}.{name}", doc


EXAMPLES = [(name, doc) for name, doc in _documented() if ">>>" in doc]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(("name", "doc"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_every_example_in_a_docstring_runs(name, doc, tmp_path, monkeypatch):
    """Each example may use a ``sandbox``, its ``client``, and a ``scan`` of three pages."""
    monkeypatch.chdir(tmp_path)
    with siteline.Sandbox(now=NOW) as sandbox:
        # Pauses of a client that an example makes itself pass at once, too.
        monkeypatch.setenv("SITELINE_SANDBOX_CLOCK", sandbox.env()["SITELINE_SANDBOX_CLOCK"])
        client = sandbox.client()
        scan = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
                           interval="1h", page_size=30)  # fmt: skip
        space = {"siteline": siteline, "sandbox": sandbox, "client": client, "scan": scan}
        space["json"] = json
        executed = Executed()
        test = doctest.DocTestParser().get_doctest(doc, space | executed.names, name, None, 0)
        for example in test.examples:
            example.source = ast.unparse(executed.marked(example.source, name)) + "\n"
        failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert tried
    assert not failed
    assert set(executed.missed()) <= NOT_PROVOKED


def test_exported_names_are_listed_and_exist():
    public = {name for name in dir(siteline) if not name.startswith("_")} - {"TYPE_CHECKING"}
    modules = {name for name in public if inspect.ismodule(getattr(siteline, name))}
    assert public - modules == {name for name in siteline.__all__ if name not in modules} - {
        "__version__"
    }
    assert len(siteline.__all__) == len(set(siteline.__all__))


def test_the_readme_names_the_two_commands_and_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
    assert len(text.splitlines()) <= 250


def test_help_of_the_interpreter_describes_the_client():
    text = subprocess.run(
        [sys.executable, "-c", "import siteline; help(siteline.Client)"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    for word in ("daily_allowance", "ConfigError", "discover", "§8"):
        assert word in text
