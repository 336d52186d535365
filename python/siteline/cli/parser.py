"""The parser of the command line."""

from __future__ import annotations

import argparse
import importlib
import os
import re

from siteline import __version__
from siteline._escape import escaped
from siteline.cli.arguments import SHARED
from siteline.cli.summaries import SUMMARIES, complete_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any, NoReturn


def parser_for(arguments: list[str]) -> argparse.ArgumentParser:
    """Returns the parser for these arguments. It has the arguments of the named command only.

    Importing the modules of all commands would take more time than everything else.
    """
    return parser_of([next((one for one in arguments if not one.startswith("-")), "")])


def parser_of(complete: Container[str] = SUMMARIES) -> argparse.ArgumentParser:
    """Returns the parser of all commands; only the named ones have their arguments."""
    made = _Parser(prog="siteline", usage="siteline [-h] [--version] COMMAND ...")
    made.format_help = complete_help  # type: ignore[method-assign]
    made.add_argument("--version", action="version", version=f"siteline {__version__}")
    commands = made.add_subparsers(
        prog="siteline", metavar="COMMAND", dest="command", help=argparse.SUPPRESS
    )
    commands.required = True
    for name in SUMMARIES:
        if name in complete:
            importlib.import_module(f"siteline.cli.{name}").add(commands)
        else:
            commands.add_parser(name)
    return made


class _Parser(argparse.ArgumentParser):
    """A parser that takes ``-7d`` for a value, and escapes the arguments that an error quotes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": _Formatter, **options})
        # No option begins with a digit.
        self._negative_number_matcher = re.compile(r"-\d")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses unknown arguments itself, so that the usage is the one of the command."""
        found, unknown = super().parse_known_args(args, namespace)
        for action in self._get_positional_actions():
            _take(found, action, unknown)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}. See {self.prog} --help.")
        return found, unknown

    def format_help(self) -> str:
        """Returns the help, with the options of every command at its end."""
        self._action_groups.sort(key=lambda group: group.title == SHARED)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Prints the usage and the error, then exits."""
        super().error(escaped(message))


def _take(found: argparse.Namespace, action: argparse.Action, unknown: list[str]) -> None:
    """Gives an argument that may be left out its values after an option.

    Before Python 3.13 argparse looks for them only before the option.
    """
    given = getattr(found, action.dest, None)
    if action.nargs == "?" and given is None and unknown and not unknown[0].startswith("-"):
        setattr(found, action.dest, unknown.pop(0))
    while action.nargs == "*" and unknown and not unknown[0].startswith("-"):
        getattr(found, action.dest).append(unknown.pop(0))


class _Formatter(argparse.HelpFormatter):
    """Finds the width itself: argparse would import shutil, which imports compressors."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"max_help_position": 28, "width": _width(), **options})

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        """Shows only the required arguments; the help lists the options below."""
        shown = [one for one in actions if one.required or not one.option_strings]
        if len(shown) < len(actions):
            self._prog += " [options]"
        super().add_usage(usage, shown, (), prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return text
        return super()._fill_text(text, width, indent)


def _width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        columns = 80
    return max(columns - 2, 40)
