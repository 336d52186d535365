"""The parser of the command line."""

from __future__ import annotations

import argparse
import importlib
import os

from siteline import __version__
from siteline._escape import escaped
from siteline.cli import exits
from siteline.cli.output import aligned
from siteline.cli.summaries import SUMMARIES

# Importing typing would slow down each command.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_ABOUT = "Aggregated time series of the Customer Data Service: read, keep, look after."

__all__ = ["complete_parser", "parser_for"]


def parser_for(arguments: list[str]) -> argparse.ArgumentParser:
    """Return the parser for these arguments: only the command that they name has its own.

    The help of the whole command needs the commands' summaries alone, and no command those of the
    others: their modules take more time than all else.
    """
    named = next((one for one in arguments if not one.startswith("-")), None)
    made, commands = _parser()
    for name in SUMMARIES:
        if name == named:
            _add(commands, name)
        else:
            commands.add_parser(name)
    return made


def complete_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands with all their arguments."""
    made, commands = _parser()
    for name in SUMMARIES:
        _add(commands, name)
    return made


def _add(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str) -> None:
    importlib.import_module(f"siteline.cli.{name}").add(commands)


def _parser() -> tuple[
    argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]
]:
    made: argparse.ArgumentParser = _Parser(
        prog="siteline",
        usage="siteline [-h] [--version] COMMAND ...",
        description=f"{_ABOUT}\n\ncommands:\n{aligned(SUMMARIES.items(), '  ')}",
        epilog=f"siteline COMMAND --help tells more.\n\nexit status:\n{exits.table()}",
        formatter_class=_Formatter,
    )
    made.add_argument("--version", action="version", version=f"siteline {__version__}")
    commands = made.add_subparsers(
        prog="siteline", metavar="COMMAND", dest="command", help=argparse.SUPPRESS
    )
    commands.required = True
    return made, commands


class _Parser(argparse.ArgumentParser):
    """Escapes the arguments that an error message quotes."""

    def error(self, message: str) -> NoReturn:
        """Prints the usage and the error, then exits."""
        super().error(escaped(message))


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Asks the terminal for its width itself: argparse imports shutil for it, with compressors."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=_width())


def _width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        columns = 80
    return max(columns - 2, 40)
