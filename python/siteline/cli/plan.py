"""``siteline plan``: what the next sync, or a read, would cost, without asking the service."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline.cli.arguments import add_command, add_query, query_of
from siteline.cli.clients import client_of, existing_store
from siteline.cli.exits import Exit
from siteline.cli.feeds import read_feeds
from siteline.cli.output import Outcome
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse
    from typing import NoReturn

    from siteline import Page
    from siteline.cli.arguments import _Commands
    from siteline.types import Plan

__all__ = ["NothingStored", "add", "add_feeds", "is_there", "ranges_of"]


class NothingStored:
    """A target as a store that is not there yet, so that a plan does not make it."""

    def state(self, feed: str) -> bytes | None:
        """Nothing was read of any feed."""
        return None

    def apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int]:
        """Store nothing: a plan reads no page."""
        return 0, 0, 0


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "plan",
        _run,
        SUMMARIES["plan"],
        "Either of a file of feeds and a store, or of the query of a read. Sends no request and "
        "writes nothing.",
    )
    add_feeds(made, optional=True)
    made.add_argument(
        "--check",
        action="store_true",
        help="exit status 5 where the allowance that is left is known not to be enough",
    )
    add_query(made)
    made.add_argument(
        "--estimate-from",
        metavar="STORE",
        help="a store with a feed of the same query, which tells how many pages a read takes",
    )


def add_feeds(made: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the file of feeds, the store, and which part of them is meant."""
    number = "?" if optional else None
    made.add_argument("feeds", metavar="FEEDS.toml", nargs=number, help="the file of feeds")
    made.add_argument("store", metavar="STORE", nargs=number, help="the store's file")
    made.add_argument(
        "--feed", metavar="NAME", action="append", help="this feed alone; again for more"
    )
    made.add_argument(
        "--until", metavar="TIME", help="read only what lies before it, as an orchestrator does"
    )
    made.add_argument(
        "--reread",
        metavar="START/END",
        action="append",
        help="read this range again, for an announced correction; again for more",
    )


def ranges_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return ``until=`` and ``reread=``, as far as they are given."""
    from siteline.errors import QueryError

    ranges: list[tuple[str, str]] = []
    for written in options.reread or ():
        start, _, end = written.partition("/")
        if not (start and end):
            raise QueryError(
                f"--reread {written!r} is not START/END.", hint="Such as 2026-11-01/2026-11-03."
            )
        ranges.append((start, end))
    known = {"until": options.until, "reread": ranges or None}
    return {name: value for name, value in known.items() if value is not None}


def is_there(path: str) -> bool:
    """Whether there is a file; an error where nobody may know."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def _run(options: argparse.Namespace) -> Outcome:
    if options.feeds is None:
        plan, members, note = _scan_plan(options)
    else:
        plan, members, note = _sync_plan(options)
    members |= plan.to_dict()
    status = Exit.SPENT if options.check and plan.fits is False else Exit.DONE
    return Outcome(members, f"{plan}{note}", status)


def _sync_plan(options: argparse.Namespace) -> tuple[Plan, dict[str, Any], str]:
    from siteline import Store

    own = ("start", "end", "tz", "estimate_from")
    given = [*query_of(options), *(name for name in own if getattr(options, name))]
    if given or options.store is None:
        _refuse(
            "a plan of feeds takes FEEDS.toml and STORE",
            f"leave out --{given[0].replace('_', '-')}" if given else "STORE is missing",
        )
    file = read_feeds(options.feeds)
    feeds, ranges = file.chosen(options.feed), ranges_of(options)
    options.profile = options.profile or file.profile
    with client_of(options) as client:
        exists = is_there(options.store)
        if exists:
            with Store(options.store, read_only=True) as store:
                plan = client.plan(feeds, store, **ranges)
        else:
            plan = client.plan(feeds, NothingStored(), **ranges)
    note = (
        "" if exists else f"\n  There is no store {escaped(options.store)} yet: all is to be read."
    )
    return plan, {"store": options.store, "store_exists": exists}, note


def _scan_plan(options: argparse.Namespace) -> tuple[Plan, dict[str, Any], str]:
    if options.start is None:
        _refuse("a plan is of FEEDS.toml and STORE, or of a query", "--start is missing")
    wrong = [name for name in ("feed", "until", "reread") if getattr(options, name)]
    if wrong:
        _refuse("a plan of a query has no feeds", f"leave out --{wrong[0]}")
    bounds = {"start": options.start, "end": options.end, "tz": options.tz}
    query: dict[str, Any] = {**query_of(options), **bounds}
    path: str | None = options.estimate_from
    with client_of(options) as client:
        scan = client.scan(**query)
        if path is None:
            plan = client.plan(scan)
        else:
            with existing_store(path, read_only=True) as store:
                plan = client.plan(scan, store)
    return plan, {"store": path, "store_exists": None if path is None else True}, ""


def _refuse(rule: str, problem: str) -> NoReturn:
    from siteline.errors import QueryError

    raise QueryError(f"{problem}: {rule}.", hint="See siteline plan --help.")
