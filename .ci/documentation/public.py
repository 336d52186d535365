"""The public names of siteline: the exports of its modules, read from the source."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python"
# The public modules of docs/stability.md. The first module that exports a name documents it.
MODULES = (
    "siteline",
    "siteline.types",
    "siteline.shapes",
    "siteline.errors",
    "siteline.plots",
    "siteline.targets",
    "siteline.dlt",
    "siteline.spark",
    "siteline.otel",
    "siteline.mcp",
    "siteline.signers",
    "siteline.testing",
    "siteline.types",
)
EXPORTS = re.compile(r"^__all__ = \[(.*?)\]", re.MULTILINE | re.DOTALL)
# Code in a page with a public name: `siteline.Feed`, `help(siteline.Client.scan)`.
NAMED = re.compile(r"(?<![\[`])`(?:help\()?(siteline(?:\.\w+)+)(?:\([^`]*)?\)?`(?![\]`])")


def exported(module: str) -> list[str]:
    """Returns the names that a module exports."""
    path = PACKAGE.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    listed = EXPORTS.search(source.read_text(encoding="utf-8"))
    return re.findall(r'"(\w+)"', listed[1]) if listed else []


@cache
def names() -> frozenset[str]:
    """Returns the full paths of all public names and modules."""
    found = {f"{module}.{name}" for module in MODULES for name in exported(module)}
    return frozenset({*found, *MODULES[1:]})


def by_reference(text: str) -> str:
    """Adds links to the public names in the code of a line."""

    def link(match: re.Match[str]) -> str:
        parts = match[1].split(".")
        # Either the name itself is public, or it is a member of a public class.
        for end in (len(parts), len(parts) - 1):
            if ".".join(parts[:end]) in names():
                return f"[{match[0]}][{match[1]}]"
        return match[0]

    return NAMED.sub(link, text)
