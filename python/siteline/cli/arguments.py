"""The arguments that several commands share."""

from __future__ import annotations

import argparse
from types import MappingProxyType

from siteline.cli.summaries import SUMMARIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from siteline.cli.output import Outcome

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
    _Run = Callable[[argparse.Namespace], Outcome]
else:
    Commands = argparse._SubParsersAction

Options = argparse.Namespace

SHARED = "options of every command"
"""The title of their group in the help."""

ZONE = {"--tz ZONE": "zone of dates and of times without an offset"}


def add_command(
    commands: Commands,
    name: str,
    run: _Run,
    details: str = "",
    *,
    example: str = "",
    summary: str = "",
    options: Mapping[str, str] = MappingProxyType({}),
) -> argparse.ArgumentParser:
    """Adds a command, or an action of one, with the options that every command has."""
    summary = summary or SUMMARIES[name]
    made = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. {details}".rstrip(),
        epilog=f"example:\n  {example}" if example else None,
    )
    # An error names an option only if the command has it.
    made.set_defaults(run=run, known=made._actions)
    add_options(made, options)
    shared = {
        "--profile NAME": "use this profile",
        "--json": "print one JSON document on stdout",
        "--no-progress": "show no progress",
    }
    group = made.add_argument_group(SHARED)
    add_options(group, shared)
    group.add_argument(
        "-v", "--verbose", action="count", default=0, help="log to stderr; -vv: also each request"
    )
    return made


def add_options(group: argparse._ActionsContainer, options: Mapping[str, str], **more: Any) -> None:
    """Adds options and arguments: how each is written, and its help. ``more`` is for argparse.

    ``--json`` is a flag, ``-o --output FILE`` has a value, and ``--page-size N`` has a number.
    ``--site ID …`` is repeatable. ``store STORE`` is an argument without a dash, and
    ``feeds FEED …`` are several.
    """
    for written, help in options.items():
        words = written.split()
        names = [word for word in words if word.startswith("-")] or words[:1]
        values = words[len(names) :]
        given: dict[str, Any] = {"metavar": values[0]} if values else {"action": "store_true"}
        if values[:1] == ["N"]:
            given["type"] = _whole
        if values[1:] == ["…"]:
            is_option = names[0].startswith("-")
            given |= {"action": "append", "default": []} if is_option else {"nargs": "*"}
            help += "; repeatable" if is_option else ""
        group.add_argument(*names, help=help, **{**given, **more})


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def add_actions(commands: Commands, name: str, details: str) -> Commands:
    """Adds a command with actions, as ``store check``; :func:`add_command` adds each action."""
    summary = SUMMARIES[name]
    made = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {details}".rstrip()
    )
    return made.add_subparsers(
        prog=f"siteline {name}", title="actions", metavar="ACTION", dest="action", required=True
    )


def add_skip_code(group: argparse._ActionsContainer) -> None:
    """Adds ``--skip-code``, for schedulers that can show a run as skipped."""
    skip_code = {"--skip-code N": "exit status instead of 5 when the allowance is spent"}
    add_options(group, skip_code, type=_exit_status)


def given_of(options: Options, names: Iterable[str]) -> dict[str, Any]:
    """Returns the given options of these names."""
    found = {name: getattr(options, name) for name in names}
    return {name: value for name, value in found.items() if value not in (None, [])}


def _exit_status(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 255):
        raise argparse.ArgumentTypeError(f"{text!r} is not an exit status from 0 to 255")
    return int(text)
