"""The code in the README, the pages, the examples and the docstrings runs."""

import ast
import code
import doctest
import inspect
import json
import logging
import sys
from pathlib import Path

import pytest
import siteline
import siteline.otel
import siteline.shapes
import siteline.testing
import siteline.types
from kit.charts import same_svg
from kit.executed import Executed
from kit.pages import blocks, python_blocks, without_trailing_spaces
from kit.ranges import NOW

ROOT = Path(__file__).resolve().parents[2]
MODULES = (siteline, siteline.types, siteline.shapes)
PUBLIC = [getattr(module, name) for module in MODULES for name in module.__all__]
CLASSES = [thing for thing in PUBLIC if inspect.isclass(thing)]


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/internals/*.md")])


def name_of(path):
    return path.relative_to(ROOT).as_posix()


WITH_BLOCKS = [path for path in PAGES if blocks(path, "python")]


class Prompt(code.InteractiveConsole):
    """An interpreter that only parses. As at a prompt, an empty line ends an indented block."""

    def runcode(self, code):
        pass

    def showsyntaxerror(self, *_, **__):
        raise


def assert_can_be_pasted(block):
    prompt = Prompt()
    for line in [*block.splitlines(), ""]:
        more = prompt.push(line)
    assert not more, block


@pytest.mark.parametrize("path", WITH_BLOCKS, ids=name_of)
def test_every_python_block_of_a_page_can_be_pasted_and_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    executed = Executed()
    space = {"__name__": "page", **executed.names}
    logger = logging.getLogger("siteline")
    handlers = list(logger.handlers)
    printed = ""
    try:
        for number, (block, shown) in enumerate(python_blocks(path), 1):
            assert_can_be_pasted(block)
            exec(executed.compiled(block, f"{name_of(path)}, block {number}"), space)
            output = capsys.readouterr().out
            printed += output
            if shown:
                assert without_trailing_spaces(output) == without_trailing_spaces(shown)
    finally:
        for name in ("store", "client", "sandbox"):
            if hasattr(space.get(name), "close"):
                space[name].close()
        logger.handlers[:] = handlers
        logger.setLevel(logging.NOTSET)
    assert printed
    assert executed.missed() == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_every_example_runs(path, capsys, monkeypatch, tmp_path):
    arguments = {"pictures.py": [str(tmp_path)]}
    monkeypatch.setattr(sys, "argv", [str(path), *arguments.get(path.name, [])])
    executed = Executed()
    code = executed.compiled(path.read_text(encoding="utf-8"), str(path))
    space = {"__name__": "__main__", "__file__": str(path), **executed.names}
    exec(code, space)
    assert capsys.readouterr().out
    if path.name == "pictures.py":
        assert_committed_pictures(tmp_path)
    else:
        assert set(executed.missed()) <= NOT_PROVOKED


def assert_committed_pictures(folder):
    committed = sorted((ROOT / "docs/pictures").glob("*.svg"))
    assert [path.name for path in committed] == sorted(path.name for path in folder.iterdir())
    for path in committed:
        text = path.read_text(encoding="utf-8")
        assert same_svg((folder / path.name).read_text(encoding="utf-8"), text), path.name
        assert len(text) < 200_000


# The example fails after the first page, so this line is never reached.
NOT_PROVOKED = {"raise  # nothing was read yet"}
"""The statements of examples that no test executes."""


def _own(thing):
    return {name: member for name, member in vars(thing).items() if not name.startswith("_")}


def _documented():
    plots = [getattr(siteline.plots, name) for name in ("allowance", "coverage", "lateness")]
    modules = [siteline.otel, siteline.types, siteline.shapes, siteline.testing]
    records = [getattr(siteline.testing, name) for name in siteline.testing.__all__[1:5]]
    for thing in [siteline, siteline.doctor, *modules, *plots, *CLASSES, *records]:
        yield thing.__name__, thing.__doc__
        for name, member in _own(thing).items() if inspect.isclass(thing) else ():
            doc = inspect.getdoc(member)
            if doc and not inspect.isclass(member) and not isinstance(member, int | str):
                yield f"{thing.__name__}.{name}", doc


EXAMPLES = [(name, doc) for name, doc in _documented() if ">>>" in doc]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(("name", "doc"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_every_example_in_a_docstring_runs(name, doc, tmp_path, monkeypatch):
    """Examples may use ``sandbox``, ``client``, ``scan`` (of three pages), ``feed`` and ``store``.

    The store has the feed ``line-2`` and was synced.
    """
    monkeypatch.chdir(tmp_path)
    with siteline.Sandbox(now=NOW) as sandbox:
        # A client that the example makes does not wait during pauses either.
        monkeypatch.setenv("SITELINE_SANDBOX_CLOCK", sandbox.env()["SITELINE_SANDBOX_CLOCK"])
        client = sandbox.client()
        scan = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
                           interval="1h", page_size=30)  # fmt: skip
        space = {"siteline": siteline, "sandbox": sandbox, "client": client, "scan": scan}
        feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start="2026-11-15")
        space |= {"json": json, "feed": feed}
        if "store." in doc and "store = " not in doc and "as store" not in doc:
            space["store"] = siteline.Store("plant.siteline")
            client.sync(feed, space["store"])
        executed = Executed()
        test = doctest.DocTestParser().get_doctest(doc, space | executed.names, name, None, 0)
        for example in test.examples:
            example.source = ast.unparse(executed.marked(example.source, name)) + "\n"
        failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert tried
    assert not failed
    assert set(executed.missed()) <= NOT_PROVOKED
