"""The public names of siteline, read from the source: what its modules export."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python"
# What docs/stability.md calls public; a name is documented in the first of them that exports it.
MODULES = (
    "siteline",
    "siteline.errors",
    "siteline.plots",
    "siteline.reports",
    "siteline.targets",
    "siteline.dlt",
    "siteline.spark",
    "siteline.otel",
    "siteline.testing",
)
EXPORTS = re.compile(r"^__all__ = \[(.*?)\]", re.MULTILINE | re.DOTALL)
# Code in a page that names something: `siteline.Feed`, `help(siteline.Client.data)`.
NAMED = re.compile(r"(?<![\[`])`(?:help\()?(siteline(?:\.\w+)+)(?:\([^`]*)?\)?`(?![\]`])")


def exported(module: str) -> list[str]:
    """The names that a module exports."""
    path = PACKAGE.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    listed = EXPORTS.search(source.read_text(encoding="utf-8"))
    return re.findall(r'"(\w+)"', listed[1]) if listed else []


@cache
def names() -> frozenset[str]:
    """The full paths of all public names, and of the modules."""
    found = {f"{module}.{name}" for module in MODULES for name in exported(module)}
    return frozenset({*found, *MODULES[1:]})


def by_reference(text: str) -> str:
    """A line of a page whose code links to the public names that it names."""

    def link(match: re.Match[str]) -> str:
        parts = match[1].split(".")
        # The name itself, or the public class whose member it is.
        for end in (len(parts), len(parts) - 1):
            if ".".join(parts[:end]) in names():
                return f"[{match[0]}][{match[1]}]"
        return match[0]

    return NAMED.sub(link, text)
