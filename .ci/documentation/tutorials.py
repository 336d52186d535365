"""Runs the tutorials in ``docs/tutorials/*.py`` and makes pages with their outputs and pictures.

``python -m documentation.tutorials --write`` writes the pages, and a test compares them. A program
has percent cells: ``# %% [markdown]`` starts prose, and ``# %%`` starts code. The page shows the
output of a cell and the value of its last expression below the cell.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd
import siteline

if TYPE_CHECKING:
    from collections.abc import Hashable

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
CELL = re.compile(r"^# %%(?P<kind>.*)$", re.MULTILINE)


def cells(program: str) -> Iterator[tuple[str, str]]:
    """Yields the cells of a program: ``"markdown"`` or ``"code"``, and the text."""
    marks = list(CELL.finditer(program))
    ends = [mark.start() for mark in marks[1:]] + [len(program)]
    for mark, end in zip(marks, ends, strict=True):
        text = program[mark.end() : end].strip("\n")
        if mark["kind"].strip() == "[markdown]":
            yield "markdown", re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        else:
            yield "code", text


def executed(path: Path) -> dict[str, str]:
    """Runs a program and returns its page and its pictures by file name."""
    files: dict[str, str] = {}
    parts = []
    space: dict[str, Any] = {"__name__": "tutorial"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        os.chdir(folder)
        ending.callback(os.chdir, before)
        ending.callback(_close, space)
        for kind, text in cells(path.read_text(encoding="utf-8")):
            if kind == "markdown":
                parts.append(text)
                continue
            printed, value = _run(text, space, f"{path.name}, cell {len(parts) + 1}")
            parts.append(f"```python\n{text}\n```")
            parts += [f"```text\n{printed.rstrip()}\n```"] if printed.strip() else []
            if isinstance(value, alt.LayerChart | alt.VConcatChart):
                name = f"{path.stem}-{len(files) + 1}.svg"
                drawing = io.StringIO()
                value.save(drawing, format="svg")
                files[name] = drawing.getvalue()
                parts.append(f"![{value.description}]({name})")
            elif value is not None:
                parts.append(_shown(value))
    parts.append(f"The program: [{path.name}]({path.name}).")
    files[f"{path.stem}.md"] = "\n\n".join(parts) + "\n"
    return files


def _run(text: str, space: dict[str, Any], name: str) -> tuple[str, Any]:
    """Runs a cell and returns its output and the value of its last expression."""
    tree = ast.parse(text, name)
    last = tree.body[-1]
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as output:
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, name, "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), space)
    return output.getvalue(), value


def _shown(value: Any) -> str:
    """Formats a frame as a Markdown table, and any other value with `repr`."""
    if not isinstance(value, pd.DataFrame):
        return f"```text\n{value!r}\n```"
    # An index of row numbers is left out, even if a filter has removed some rows.
    counts = pd.api.types.is_integer_dtype(value.index) and value.index.name is None
    frame = value if counts else value.reset_index()
    head = [str(name) for name in frame.columns]
    numbers = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns]
    rows = [[_cell(one) for one in row] for row in frame.itertuples(index=False)]
    lines = (head, ["--:" if one else "---" for one in numbers], *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Hashable) -> str:
    if isinstance(value, pd.Timestamp):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value).replace("|", "\\|")


def _close(space: dict[str, Any]) -> None:
    for kind in (siteline.Store, siteline.Client, siteline.Sandbox):
        for value in list(space.values()):
            if isinstance(value, kind):
                value.close()


def main() -> int:
    """Writes the pages, or prints the names of those that have changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the pages and pictures")
    write = parser.parse_args().write
    differing = []
    for path in sorted(FOLDER.glob("*.py")):
        for name, text in executed(path).items():
            made = FOLDER / name
            if write:
                made.write_text(text, encoding="utf-8")
            elif not made.exists() or made.read_text(encoding="utf-8") != text:
                differing.append(name)
    print("\n".join(differing), end="\n" if differing else "")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
