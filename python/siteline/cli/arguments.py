"""The arguments that several commands share."""

from __future__ import annotations

import argparse

from siteline.cli.summaries import SUMMARIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from siteline.cli.output import Outcome

    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]
    _Run = Callable[[argparse.Namespace], Outcome]

__all__ = [
    "SELECTED",
    "add_actions",
    "add_command",
    "add_query",
    "add_skip_code",
    "add_zone",
    "query_of",
]

SELECTED = ("machine", "device", "tag")
"""The levels by which the points of a query are selected."""


def add_command(
    commands: _Commands, name: str, run: _Run, summary: str, details: str = ""
) -> argparse.ArgumentParser:
    """Add a command, or an action of one, with the options that every command has."""
    made = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. {details}".rstrip(),
    )
    made.set_defaults(run=run)
    _add_shared(made)
    return made


def add_actions(commands: _Commands, name: str, details: str) -> _Commands:
    """Add a command that has actions, as ``store check``; each is added by :func:`add_command`."""
    summary = SUMMARIES[name]
    made = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {details}"
    )
    return made.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)


def _add_shared(made: argparse.ArgumentParser) -> None:
    """Add the options of every command; those with actions have them on each action."""
    shared = made.add_argument_group("of every command")
    shared.add_argument(
        "--profile",
        metavar="NAME",
        help="a profile of the configuration file; without it the SITELINE_* variables",
    )
    shared.add_argument("--json", action="store_true", help="one JSON document on stdout")
    shared.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="log to stderr what is done; twice: every request",
    )
    shared.add_argument("--no-progress", action="store_true", help="show no progress")


def add_skip_code(group: argparse._ActionsContainer) -> None:
    """Add ``--skip-code``, which schedulers have for what is to be tried again later."""
    group.add_argument(
        "--skip-code",
        metavar="N",
        type=_exit_status,
        help="the exit status in the place of 5, where the allowance is spent",
    )


def _exit_status(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 255):
        raise argparse.ArgumentTypeError(f"{text!r} is not an exit status from 0 to 255")
    return int(text)


def add_query(made: argparse.ArgumentParser) -> None:
    """Add the arguments of a query (§4.3)."""
    query = made.add_argument_group("the query")
    for name, of in (("site", "siteId"), ("line", "lineId")):
        query.add_argument(f"--{name}", metavar="ID", action="append", help=f"{of}; again for more")
    for name in SELECTED:
        query.add_argument(
            f"--{name}",
            metavar="ID",
            action="append",
            help=f"only series with this id or name of a {name}; again for more",
        )
    query.add_argument(
        "--start",
        metavar="TIME",
        help="the start, as 2026-11-01T00:00Z or 2026-11-01 (UTC), or as --start=-7d",
    )
    query.add_argument(
        "--end", metavar="TIME", help="the end, exclusive; without it five minutes behind now"
    )
    add_zone(query)
    query.add_argument("--interval", metavar="WIDTH", help="the width of a bucket, such as 1m")
    query.add_argument("--page-size", metavar="N", type=int, help="items a page")
    query.add_argument(
        "--filter",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="another filter, such as machineId=M7; again for more",
    )


def add_zone(group: argparse._ActionsContainer) -> None:
    """Add ``--tz``, on whose clock ``--start`` and ``--end`` are meant."""
    group.add_argument(
        "--tz",
        metavar="ZONE",
        help="the zone whose clock --start and --end mean, such as Europe/Berlin: 2026-11-01 is a "
        "day there, and 2026-11-01T06:00 a time",
    )


def query_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the query's keywords, as :meth:`siteline.Client.scan` and Feed take them."""
    from siteline.errors import QueryError

    filters: dict[str, list[str]] = {}
    for written in options.filter:
        name, separator, value = written.partition("=")
        if not (name and separator):
            raise QueryError(f"--filter {written!r} is not NAME=VALUE, such as machineId=M7.")
        filters.setdefault(name, []).append(value)
    known = {
        **{name: getattr(options, name) for name in ("site", "line", *SELECTED)},
        "interval": options.interval,
        "page_size": options.page_size,
        "filters": filters or None,
    }
    return {name: value for name, value in known.items() if value is not None}
