"""``siteline changes``: writes new and revised points of a store since an earlier sync."""

from __future__ import annotations

from typing import Any

from siteline._counts import counted
from siteline._escape import escaped
from siteline.cli.arguments import ZONE, Commands, Options, add_command, add_options
from siteline.cli.clients import STORE, feed_of
from siteline.cli.output import Outcome
from siteline.cli.output_file import OutputFile, add_output
from siteline.errors import UnreadRange
from siteline.store import Store


def add(commands: Commands) -> None:
    """Adds the command."""
    made = add_command(
        commands,
        "changes",
        _run,
        "A point is written once, with its current values and a column change: new, revised, "
        "withdrawn or returned. Sends nothing to the service.",
        example="siteline changes plant.siteline line-2 --since -1d -o changes.csv",
        options={
            **STORE,
            "--start TIME": "only points from this time on",
            "--end TIME": "only points before this time",
            **ZONE,
        },
    )
    add_options(made, {"feed FEED": "the feed's name; not needed if there is only one"}, nargs="?")
    since = "a time; or a page, as next_since of earlier changes; 0 for everything"
    add_options(made, {"--since PAGE|TIME": since}, required=True)
    unread = "error, warn or keep: the reaction to an unread part of the range (error)"
    add_options(made, {"--unread WORD": unread}, choices=("error", "warn", "keep"), default="error")
    add_output(made)


def _run(options: Options) -> Outcome:
    output = OutputFile(options)
    since = _since(options.since)
    with Store(options.store, labels=False, read_only=True) as store:
        bounds = {"start": options.start, "end": options.end, "tz": options.tz}
        feed = feed_of(store, options.feed)
        try:
            points = store.changes(feed, since, **bounds, unread=options.unread)
            reached = points.report.sequence
            output.write(points)
            count = len(points)
        except UnreadRange as error:
            ways = "siteline sync reads it, and siteline coverage shows the ranges that were read."
            error.hint = f"{ways} --unread warn writes the points that were read."
            raise
    members: dict[str, Any] = {
        "store": options.store,
        "feed": feed,
        "since": since,
        "next_since": reached,
        "start": options.start,
        "end": options.end,
        "points": count,
        **output.members,
    }
    text = f"{escaped(output.name)}: {counted(count, 'point')} changed since {since}."
    text += f" Next time: --since {reached}"
    return Outcome(members, text, has_written=output.is_stdout)


def _since(text: str) -> int | str:
    # A page or a time. int() refuses thousands of digits.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text
