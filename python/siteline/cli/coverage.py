"""``siteline coverage``: which windows of a store's feeds are settled, or were never read."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from siteline.cli.arguments import add_command
from siteline.cli.output import Outcome, aligned
from siteline.cli.stores import add_feeds, add_store, feeds_of, read
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from siteline.cli.arguments import _Commands
    from siteline.types import Coverage, CoverageWindow

__all__ = ["add"]


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "coverage",
        _run,
        SUMMARIES["coverage"],
        "Sends no request and needs no credential.",
    )
    add_store(made)
    add_feeds(made)
    made.add_argument(
        "--now",
        metavar="TIME",
        help="the time that it is for, as 2026-11-01T00:00Z; without it this machine's",
    )


def _run(options: argparse.Namespace) -> Outcome:
    found = read(
        options.store,
        lambda store: [
            store.coverage(name, now=options.now) for name in feeds_of(store, options.feeds)
        ],
    )
    text = "\n\n".join(_text(coverage) for coverage in found)
    members = {"store": options.store, "feeds": [coverage.to_dict() for coverage in found]}
    return Outcome(members, text or "the store has no feeds: no sync has written to it")


def _text(coverage: Coverage) -> str:
    """Return the calendar, and the windows; neighbours in the same state as one row."""
    rows = list(_rows(coverage))
    if not rows:
        return repr(coverage)
    head = ("from (UTC)", "to", "length", "state", "")
    return f"{coverage!r}\n{aligned([head, *rows], indent='  ')}"


def _rows(coverage: Coverage) -> Iterator[tuple[str, ...]]:
    from siteline._times import duration, to_second

    for (state, empty, aside), alike in groupby(coverage, _state):
        windows = list(alike)
        start, end = windows[0].start, windows[-1].end
        notes = ["read, empty"] if empty and state != "forgotten" else []
        if aside is not None:
            notes.append(f"skipped until {to_second(aside)} UTC")
        yield (to_second(start), to_second(end), duration(end - start), state, ", ".join(notes))


def _state(window: CoverageWindow) -> tuple[Any, ...]:
    return window.state, window.empty, window.skipped_until
