"""The arguments that several commands share."""

from __future__ import annotations

import argparse

from siteline.cli.summaries import SUMMARIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from siteline.cli.output import Outcome

    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]
    _Run = Callable[[argparse.Namespace], Outcome]

__all__ = [
    "SHARED",
    "add_actions",
    "add_command",
    "add_skip_code",
    "add_zone",
]

SHARED = "options of every command"
"""The title of their group in the help."""


def add_command(
    commands: _Commands, name: str, run: _Run, summary: str, details: str = "", example: str = ""
) -> argparse.ArgumentParser:
    """Adds a command, or an action of one, with the options that every command has."""
    made = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. {details}".rstrip(),
        epilog=f"example:\n  {example}" if example else None,
    )
    # The known options: an error names an option only if the command has it.
    made.set_defaults(run=run, known=made._option_string_actions)
    shared = made.add_argument_group(SHARED)
    shared.add_argument("--profile", metavar="NAME", help="use this profile")
    shared.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    shared.add_argument(
        "-v", "--verbose", action="count", default=0, help="log to stderr; -vv: also each request"
    )
    shared.add_argument("--no-progress", action="store_true", help="show no progress")
    return made


def add_actions(commands: _Commands, name: str, details: str) -> _Commands:
    """Adds a command with actions, as ``store check``; :func:`add_command` adds each action."""
    summary = SUMMARIES[name]
    made = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {details}".rstrip()
    )
    return made.add_subparsers(
        prog=f"siteline {name}", title="actions", metavar="ACTION", dest="action", required=True
    )


def add_skip_code(group: argparse._ActionsContainer) -> None:
    """Adds ``--skip-code``, for schedulers that show a run as skipped."""
    group.add_argument(
        "--skip-code",
        metavar="N",
        type=_exit_status,
        help="exit status instead of 5 when the allowance is spent",
    )


def _exit_status(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 255):
        raise argparse.ArgumentTypeError(f"{text!r} is not an exit status from 0 to 255")
    return int(text)


def add_zone(group: argparse._ActionsContainer) -> None:
    """Adds ``--tz``, the zone of times without an offset."""
    group.add_argument("--tz", metavar="ZONE", help="zone of dates and of times without an offset")
