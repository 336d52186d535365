"""``siteline sync``: brings a store up to date with the feeds of a file."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline.cli.arguments import add_command
from siteline.cli.clients import client_of, progress_of
from siteline.cli.exits import Exit, status_of
from siteline.cli.feeds import read_feeds
from siteline.cli.metrics import MetricsFile, RunFacts
from siteline.cli.output import Outcome
from siteline.cli.plan import NothingStored, add_feeds, is_there, ranges_of
from siteline.cli.service import run_service
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from siteline import Allowance, Client, Feed, Progress, SyncReport
    from siteline.cli.arguments import Commands

__all__ = ["Job", "add", "job_of", "judged"]

_RANGES = ("until", "reread")
_LIMITS = ("max_pages", "wait", "concurrency", "deadline")


def add(commands: Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "sync",
        _run,
        SUMMARIES["sync"],
        "It may be run any number of times, and killed at any moment: what was applied stays, and "
        "the next run goes on.",
    )
    add_feeds(made)
    _add_limits(made)
    service = made.add_argument_group("as a service")
    service.add_argument(
        "--every",
        metavar="DURATION",
        help="run again and again, such as 5m, until SIGTERM or Ctrl-C: a line a run",
    )
    service.add_argument(
        "--metrics",
        metavar="FILE",
        help="write metrics for the textfile collector of node_exporter after each run; it reads "
        "files whose name ends in .prom",
    )


def _add_limits(made: argparse.ArgumentParser) -> None:
    limits = made.add_argument_group("limits")
    limits.add_argument("--max-pages", metavar="N", type=_number, help="end after this many pages")
    limits.add_argument(
        "--wait", metavar="DURATION", help="wait so long for another run of the same feed"
    )
    limits.add_argument(
        "--concurrency", metavar="N", type=_number, help="requests under way at once (1)"
    )
    limits.add_argument("--deadline", metavar="DURATION", help="give a run so much time")
    limits.add_argument(
        "--skip-code",
        metavar="N",
        type=_status,
        help="the exit status in the place of 5, where the allowance ended the run",
    )


class Job(NamedTuple):
    """What a sync is of, and how it is to be run."""

    client: Client
    feeds: tuple[Feed, ...]
    names: tuple[str, ...]
    """The names of all feeds of the file."""
    store: str
    arguments: dict[str, Any]

    def run(self, progress: bool | Callable[[Progress], object]) -> SyncReport:
        """Sync once. The store is open no longer than that."""
        from siteline import Store

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
        return RunFacts(status, report, allowance, self.names)


def job_of(options: argparse.Namespace) -> Job:
    """Make the job of these options. Sends nothing, and makes no store."""
    file = read_feeds(options.feeds)
    feeds = file.chosen(options.feed)
    limits = {name: getattr(options, name) for name in _LIMITS}
    given = {name: value for name, value in limits.items() if value is not None}
    arguments = {**ranges_of(options), **given}
    options.profile = options.profile or file.profile
    names = tuple(feed.name for feed in file.feeds)
    return Job(client_of(options), feeds, names, options.store, arguments)


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


def _run(options: argparse.Namespace) -> Outcome:
    metrics = None if options.metrics is None else MetricsFile(options.metrics, options.store)
    try:
        job = job_of(options)
    except Exception as error:
        if metrics is not None:
            metrics.record(RunFacts(status_of(error)))
        raise
    with job.client:
        if options.every is None:
            return _run_once(job, metrics, progress_of(options))
        return run_service(options, job, metrics)


def _run_once(job: Job, metrics: MetricsFile | None, progress: bool) -> Outcome:
    try:
        report = job.run(progress)
    except BaseException as error:
        if metrics is not None:
            metrics.record(job.facts(status_of(error)))
        raise
    status = judged(report)
    if metrics is not None:
        metrics.record(job.facts(status, report))
    return Outcome({**report.to_dict()}, str(report), status)


def _number(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _status(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 255):
        raise argparse.ArgumentTypeError(f"{text!r} is not a status from 0 to 255")
    return int(text)
