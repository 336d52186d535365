"""``siteline coverage``: shows settled and unread data of a store, and how late points arrive."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from siteline._doctor.machine import read
from siteline._times import duration, to_second
from siteline.cli.arguments import Commands, Options, add_command
from siteline.cli.clients import STORE, feeds_of
from siteline.cli.output import Outcome, aligned
from siteline.errors import QueryError

if TYPE_CHECKING:
    from siteline import Store
    from siteline.types import Coverage, Lateness


def add(commands: Commands) -> None:
    """Adds the command."""
    add_command(
        commands,
        "coverage",
        _run,
        "Sends no request and needs no credential.",
        example="siteline coverage plant.siteline line-2 --lateness",
        options={
            **STORE,
            "feeds FEED …": "only these feeds",
            "--now TIME": "show the states at this time; default: the service's time",
            "--lateness": "show how late points and revisions arrive, and suggest a lateness",
        },
    )


def _run(options: Options) -> Outcome:
    if options.lateness and options.now is not None:
        raise QueryError("--lateness is about all data of a feed. Leave out --now.")

    def work(store: Store) -> list[Coverage | Lateness]:
        names = feeds_of(store, options.feeds)
        if options.lateness:
            return [store.lateness(name) for name in names]
        return [store.coverage(name, now=options.now) for name in names]

    found = read(options.store, work)
    text = "\n\n".join(str(one) if options.lateness else _text(one) for one in found)
    members = {"store": options.store, "feeds": [one.to_dict() for one in found]}
    return Outcome(members, text or "The store has no feeds: no sync has written to it.")


def _text(coverage: Any) -> str:
    # Adjacent windows in the same state are one row.
    rows = list(_rows(coverage))
    if not rows:
        return repr(coverage)
    head = ("from (UTC)", "to", "length", "state", "")
    return f"{coverage!r}\n{aligned([head, *rows], indent='  ')}"


def _rows(coverage: Coverage) -> Iterator[tuple[str, ...]]:
    facts = attrgetter("state", "empty", "skipped_until")
    for (state, empty, skipped), alike in groupby(coverage, facts):
        windows = list(alike)
        start, end = windows[0].start, windows[-1].end
        notes = ["read, empty"] if empty and state != "forgotten" else []
        if skipped is not None:
            notes.append(f"skipped until {to_second(skipped)} UTC")
        yield (to_second(start), to_second(end), duration(end - start), state, ", ".join(notes))
