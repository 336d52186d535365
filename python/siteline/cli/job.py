"""What a sync of the command is of: its client, feeds and store."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline.cli.clients import client_of
from siteline.cli.durations import duration_of
from siteline.cli.exits import Exit
from siteline.cli.feeds import read_feeds
from siteline.cli.metrics import RunFacts
from siteline.cli.plan import NothingStored, is_there, ranges_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from siteline import Client, Feed
    from siteline.cli.request_counts import RequestCounts
    from siteline.types import Allowance, Progress, SyncReport

__all__ = ["Job", "job_of", "judged"]

_RANGES = ("until", "reread")
_DURATIONS = ("wait", "deadline")
_LIMITS = ("max_pages", "wait", "concurrency", "deadline")


class Job(NamedTuple):
    """What a sync is of, and how it is to be run."""

    client: Client
    feeds: tuple[Feed, ...]
    names: tuple[str, ...]
    """The names of all feeds of the file."""
    store: str
    arguments: dict[str, Any]
    counts: RequestCounts | None = None
    """The requests of its last run, where metrics tell of them."""

    def run(self, progress: bool | Callable[[Progress], object]) -> SyncReport:
        """Sync once. The store is open no longer than that."""
        from siteline import Store

        if self.counts is not None:
            self.counts.clear()
        if not is_there(self.store):
            self._check_ranges()
        with Store(self.store) as store:
            return self.client.sync(self.feeds, store, progress=progress, **self.arguments)

    def _check_ranges(self) -> None:
        """Refuse a wrong range before a store is made for nothing."""
        ranges = {name: self.arguments[name] for name in _RANGES if name in self.arguments}
        if ranges:
            self.client.plan(self.feeds, NothingStored(), **ranges)

    def facts(self, status: int, report: SyncReport | None = None) -> RunFacts:
        """Return what metrics tell of a run."""
        allowance: Allowance | None = None
        # A damaged ledger is the error of the run, and not of what tells of it.
        with suppress(Exception):
            allowance = self.client.allowance
        return RunFacts(status, report, allowance, self.names, self.counts)


def job_of(options: argparse.Namespace) -> Job:
    """Make the job of these options. Sends nothing, and makes no store."""
    file = read_feeds(options.feeds)
    feeds = file.chosen(options.feed)
    limits = {name: getattr(options, name) for name in _LIMITS}
    given = {name: value for name, value in limits.items() if value is not None}
    for name in _DURATIONS:
        if name in given:
            # A sync would refuse it too, when it has made the store.
            duration_of(f"--{name}", given[name])
    arguments = {**ranges_of(options), **given}
    options.profile = options.profile or file.profile
    names = tuple(feed.name for feed in file.feeds)
    counts = None
    if options.metrics is not None:
        from siteline.cli.request_counts import RequestCounts

        counts = RequestCounts()
    client = client_of(options, on_request=counts)
    return Job(client, feeds, names, options.store, arguments, counts)


def judged(report: SyncReport) -> Exit:
    """Return the exit status of a sync that raised nothing."""
    from siteline.errors import AllowanceExhausted, SitelineError

    try:
        report.raise_for_incomplete()
    except AllowanceExhausted:
        return Exit.SPENT
    except SitelineError:
        return Exit.INCOMPLETE
    return Exit.DONE
