"""The modules of python/siteline: no circular imports, and the drawings are loaded when needed."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "siteline"


def modules(package):
    """The modules of a package by their dotted names, without stubs."""
    return {name_of(package, path): path for path in sorted(package.rglob("*.py"))}


def name_of(package, path):
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path, name, known):
    """The modules that a file imports anywhere, also only for type checkers."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            above = parents[: len(parents) + 1 - node.level] if node.level else []
            source = ".".join(filter(None, [*above, node.module]))
            for alias in node.names:
                # `from siteline import sync` imports a module, `from siteline import Page` a name.
                module = f"{source}.{alias.name}"
                yield from [one for one in (module, source) if one in known][:1]


def arrows(package):
    known = modules(package)
    return {name: set(imported(path, name, known)) for name, path in known.items()}


def circle(graph):
    """The names of a circle, which ends with its first name; ``None`` without a circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_files_import_each_other_in_a_circle():
    graph = arrows(PACKAGE)
    assert {"siteline._display.html", "siteline.errors"} <= graph["siteline._display.sync_html"]
    assert circle(graph) is None


def test_no_drawing_imports_the_classes_it_draws():
    drawn = {"siteline", "siteline.aio", "siteline.coverage", "siteline.gathered",
             "siteline.lateness", "siteline.sync"}  # fmt: skip
    for name, others in arrows(PACKAGE).items():
        assert not name.startswith("siteline._display") or not others & drawn, name


@pytest.mark.parametrize(
    "back",
    [
        "import package.first",
        "from package.first import Thing",
        "from package import first",
        "from .first import Thing",
        "from . import first",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package.first import Thing",
        "def draw():\n    from package import first",
    ],
)
def test_a_circle_is_found_however_it_is_imported(tmp_path, back):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from package.first import Thing\n")
    (package / "first.py").write_text("from package import second\n")
    (package / "second.py").write_text("import json\n")
    assert circle(arrows(package)) is None
    (package / "second.py").write_text(back)
    assert set(circle(arrows(package))) == {"package.first", "package.second"}


def test_a_circle_through_the_package_itself_is_found(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from package.first import Thing\n")
    (package / "first.py").write_text("from package import Other\n")
    assert set(circle(arrows(package))) == {"package", "package.first"}


def test_the_drawings_are_loaded_when_something_is_drawn():
    script = """
        import sys
        import siteline
        from siteline import aio, coverage, frames, gathered, lateness, progress, sync

        def loaded():
            return {name for name in sys.modules if name.startswith("siteline._display")}

        for name in siteline.__all__:
            getattr(siteline, name)
        assert not loaded(), loaded()
        feed = siteline.Feed("line-2", site="S1", since="2026-11-15T00:00Z")
        empty = siteline.Coverage(feed, feed.since, [])
        repr(empty)
        assert "siteline._display.coverage_text" in loaded()
        assert "siteline._display.coverage_svg" not in loaded()
        assert empty.to_svg().startswith("<svg")
        assert "siteline._display.html" not in loaded()
        assert "Feed" in feed._repr_html_()
        assert "siteline._display.sync_html" in loaded()
    """
    lines = "\n".join(line.removeprefix(" " * 8) for line in script.splitlines())
    subprocess.run([sys.executable, "-c", lines], check=True, timeout=60)
