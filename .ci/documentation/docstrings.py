"""Converts docstrings to Markdown: roles become links, examples and literal blocks become fences.

A docstring is Markdown with four forms of reStructuredText: names in double backticks, roles such
as ``:class:`` before a name in single backticks, literal blocks after ``::``, and examples after
``>>>``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import takewhile

# Returns the full public path of a role's name, as seen from the docstring, or None.
Resolve = Callable[[str], "str | None"]

ROLE = re.compile(r":(?P<role>[a-z]+):`(?P<name>[^`]+)`")
LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
FLAG = re.compile(r" *# doctest: .*")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
PYTHON = re.compile(r"(?:@|def |class |import |from |with |async |\w+ = |\w+\.\w+\()")


class UnresolvedReference(Exception):
    """A role contains a name that is on no page."""


def markdown(text: str, resolve: Resolve) -> str:
    """Converts a docstring, which must have no common indentation, to Markdown."""
    return "\n".join(_blocks(text.splitlines(), resolve)).strip() + "\n"


def _blocks(lines: list[str], resolve: Resolve) -> list[str]:
    made: list[str] = []
    prose: list[str] = []
    at = 0

    def end_of_prose() -> None:
        made.extend(_inline("\n".join(_spaced(prose)), resolve).split("\n") if prose else [])
        prose.clear()

    while at < len(lines):
        line = lines[at]
        indent = line[: len(line) - len(line.lstrip())]
        if line.lstrip().startswith(">>> "):
            end_of_prose()
            example = list(takewhile(str.strip, lines[at:]))
            made += _fence(
                "pycon", [FLAG.sub("", one.removeprefix(indent)) for one in example], indent
            )
            at += len(example)
        elif line.rstrip().endswith("::"):
            kept = line.rstrip().removesuffix("::").rstrip()
            prose += [f"{kept}:"] if kept.strip() else []
            end_of_prose()
            at += 1
            block = _deeper(lines[at:], indent)
            at += len(block)
            block = _dedented(block)
            made += _fence("python" if any(map(PYTHON.match, block)) else "text", block, indent)
        else:
            prose.append(line)
            at += 1
    end_of_prose()
    return made


def _deeper(lines: list[str], indent: str) -> list[str]:
    """Returns the lines before the first one that is not indented deeper than `indent`."""
    return list(takewhile(lambda line: not line.strip() or line.startswith(indent + " "), lines))


def _dedented(block: list[str]) -> list[str]:
    least = min((len(line) - len(line.lstrip()) for line in block if line.strip()), default=0)
    text = "\n".join(line[least:] for line in block)
    return text.strip("\n").split("\n")


def _fence(language: str, lines: list[str], indent: str) -> list[str]:
    return ["", *(indent + line for line in (f"```{language}", *lines, "```")), ""]


def _spaced(lines: list[str]) -> list[str]:
    """Inserts an empty line before each list. Markdown requires it."""
    spaced: list[str] = []
    for line in lines:
        before = spaced[-1] if spaced else ""
        if ITEM.match(line) and before.strip() and not (ITEM.match(before) or before[0] == " "):
            spaced.append("")
        spaced.append(line)
    return spaced


def _inline(text: str, resolve: Resolve) -> str:
    """Replaces the roles in prose with links. Literals keep their content."""
    parts = LITERAL.split(text)
    for at, part in enumerate(parts):
        if at % 2:
            parts[at] = f"`{' '.join(part.split())}`"
        else:
            parts[at] = ROLE.sub(lambda match: _link(match["name"], resolve), part)
    return "".join(parts)


def _link(name: str, resolve: Resolve) -> str:
    if name.partition(".")[0] in sys.stdlib_module_names:
        return f"`{name}`"
    path = resolve(name)
    if path is None:
        raise UnresolvedReference(name)
    return f"[`{name.removeprefix('siteline.')}`][{path}]"
