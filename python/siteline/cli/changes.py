"""``siteline changes``: what is new or revised in a store since an earlier sync."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline.cli.arguments import add_command, add_zone
from siteline.cli.clients import existing_store
from siteline.cli.output import Outcome
from siteline.cli.output_file import OutputFile, add_output
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse

    from siteline.cli.arguments import _Commands

__all__ = ["add"]

_DETAILS = """\
Each point that is new or revised since then is written once, with its present values, the ten
columns of a pull, and a column change: new, revised, withdrawn (a later complete read did not bring
it) or returned. Sends nothing to the service."""


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "changes",
        _run,
        SUMMARIES["changes"],
        details=_DETAILS,
    )
    made.add_argument("store", metavar="STORE", help="the store's file")
    made.add_argument("feed", metavar="FEED", help="the feed's name")
    made.add_argument(
        "--since",
        metavar="SEQUENCE",
        required=True,
        help="the number that the earlier sync ended with: sequence of the feed in its document, "
        "or next_since of the changes before; 0 for everything",
    )
    made.add_argument("--start", metavar="TIME", help="only from this time on")
    made.add_argument("--end", metavar="TIME", help="only before this time")
    add_zone(made)
    made.add_argument(
        "--unread",
        choices=("error", "warn", "keep"),
        default="error",
        help="where a part of the range was never read to its end: end with status 6, or give "
        "what has come, with a warning or without",
    )
    add_output(made, default="-")


def _run(options: argparse.Namespace) -> Outcome:
    from siteline.cli.writers import CHANGES
    from siteline.errors import UnreadRange

    output = OutputFile(options)
    since = _sequence(options.since)
    with existing_store(options.store, read_only=True) as store, output.locked():
        bounds = {"start": options.start, "end": options.end, "tz": options.tz}
        try:
            points = store.changes(options.feed, since, **bounds, unread=options.unread)
            reached = points.report.sequence
            written = output.write(points, CHANGES)
        except UnreadRange as error:
            error.hint = (
                "siteline sync reads what is due, and siteline coverage shows what was read. "
                "--unread warn gives what has come."
            )
            raise
    members: dict[str, Any] = {
        "store": options.store,
        "feed": options.feed,
        "since": since,
        "next_since": reached,
        "start": options.start,
        "end": options.end,
        "points": written.points,
        "output": None if output.is_stdout else output.name,
        "format": output.format,
        "bytes": written.bytes,
    }
    return Outcome(members, _text(output, members), has_written=output.is_stdout)


def _sequence(text: str) -> int:
    from siteline.errors import QueryError

    # int() refuses thousands of digits.
    if text.isascii() and text.isdigit() and len(text) <= 100:
        return int(text)
    raise QueryError(
        f"--since {text!r} is not the number of a page.",
        hint="Changes are told by the sequence of pages, not by time, so that none is missed or "
        "comes twice: give the sequence that the earlier sync's document has, or 0.",
    )


def _text(output: OutputFile, known: dict[str, Any]) -> str:
    from siteline._counts import counted

    points = counted(known["points"], "point")
    return (
        f"{escaped(output.name)}: {points} changed since {known['since']}. "
        f"Next time: --since {known['next_since']}"
    )
