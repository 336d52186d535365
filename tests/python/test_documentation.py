"""What the README, the examples and the docstrings show runs; the exports are whole."""

import doctest
import inspect
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import siteline
import siteline.testing

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = [getattr(siteline, name) for name in siteline.__all__ if not name.startswith("__")]


def test_every_python_block_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    space = {"__name__": "readme"}
    try:
        for number, block in enumerate(blocks, 1):
            exec(compile(block, f"README block {number}", "exec"), space)
    finally:
        for name in ("client", "sandbox"):
            if hasattr(space.get(name), "close"):
                space[name].close()
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_every_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_every_public_name_has_a_docstring():
    for thing in PUBLIC:
        if inspect.isclass(thing):
            assert thing.__doc__, thing
            for name, member in vars(thing).items():
                if not name.startswith("_") and (
                    callable(member) or inspect.isdatadescriptor(member)
                ):
                    assert getattr(member, "__doc__", None), f"{thing.__name__}.{name}"


def _documented():
    for thing in [siteline, siteline.testing, *PUBLIC]:
        if not inspect.isclass(thing) and not inspect.ismodule(thing):
            continue
        yield thing.__name__, thing.__doc__ or ""
        if inspect.isclass(thing):
            for name, member in vars(thing).items():
                doc = getattr(member, "__doc__", None)
                if not name.startswith("__") and isinstance(doc, str):
                    yield f"{thing.__name__}.{name}", doc


EXAMPLES = [(name, doc) for name, doc in _documented() if ">>>" in doc]


@pytest.mark.parametrize(("name", "doc"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_every_example_in_a_docstring_runs(name, doc, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        space = {"siteline": siteline, "sandbox": sandbox, "client": sandbox.client(), "json": json}
        test = doctest.DocTestParser().get_doctest(doc, space, name, None, 0)
        failed, tried = doctest.DocTestRunner().run(test)
    assert tried
    assert not failed


def test_everything_that_is_exported_is_listed_and_there():
    public = {name for name in vars(siteline) if not name.startswith("_")}
    modules = {name for name in public if inspect.ismodule(getattr(siteline, name))}
    assert public - modules == {name for name in siteline.__all__ if name not in modules} - {
        "__version__"
    }
    assert len(siteline.__all__) == len(set(siteline.__all__))


def test_the_readme_names_the_two_commands_and_files_that_are_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_the_command_help_of_the_interpreter_teaches():
    text = subprocess.run(
        [sys.executable, "-c", "import siteline; help(siteline.Client)"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    for word in ("daily_allowance", "ConfigError", "discover", "§8"):
        assert word in text
