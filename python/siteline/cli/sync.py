"""``siteline sync``: brings a store up to date with the feeds of a file."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline.cli.arguments import (
    Commands,
    Options,
    add_command,
    add_options,
    add_skip_code,
    given_of,
)
from siteline.cli.clients import client_of, progress_of
from siteline.cli.exits import Exit, status_of
from siteline.cli.feeds import EXAMPLE, read_feeds
from siteline.cli.metrics import MetricsFile, RequestCounts, RunFacts
from siteline.cli.output import Outcome
from siteline.errors import AllowanceExhausted, QueryError, SitelineError

if TYPE_CHECKING:
    from siteline import Feed
    from siteline.types import SyncReport

_LIMITS = ("max_pages", "wait", "concurrency", "deadline")


def add(commands: Commands) -> None:
    """Adds the command."""
    plan = "print the plan and send nothing; exit status 5 if the allowance is too small"
    made = add_command(
        commands,
        "sync",
        _run,
        "Run it as often as you want. You can kill it at any time: stored pages stay, and the next "
        "run continues.",
        example="siteline sync feeds.toml plant.siteline --dry-run\n\n" + EXAMPLE,
        options={
            "feeds FEEDS.toml": "the file of feeds",
            "store STORE": "the store's file; the first run creates it",
            "--feed NAME …": "only this feed",
            "--until TIME": "read only data before this time",
            "--reread START/END …": "read this range again",
            "--dry-run": plan,
        },
    )
    limits = made.add_argument_group("limits")
    options = {
        "--max-pages N": "end after N pages",
        "--wait DURATION": "wait this long for another run of the same feed",
        "--concurrency N": "most requests in flight (4)",
        "--deadline DURATION": "time limit of the run",
        "--metrics FILE.prom": "write metrics for Prometheus",
    }
    add_options(limits, options)
    add_skip_code(limits)


def _run(options: Options) -> Outcome:
    if options.dry_run:
        return _planned(options)
    facts = RunFacts(Exit.FAULT)
    try:
        report = _synced(options, facts)
        facts.report, facts.status = report, _judged(report)
    except BaseException as error:
        facts.status = status_of(error)
        raise
    finally:
        if options.metrics is not None:
            MetricsFile(options.metrics, options.store).record(facts)
    return Outcome(report.to_dict(), str(report), facts.status)


def _synced(options: Options, facts: RunFacts) -> SyncReport:
    from siteline import Store

    ranges = _ranges(options)
    limits = given_of(options, _LIMITS)
    feeds = _feeds(options, facts)
    if options.metrics is not None:
        facts.requests = RequestCounts()
    with client_of(options, on_request=facts.requests) as client:
        try:
            with Store(options.store) as store:
                progress = progress_of(options)
                return client.sync(feeds, store, progress=progress, **ranges, **limits)
        finally:
            # A damaged ledger is the error of the run, not of its metrics.
            with suppress(Exception):
                facts.allowance = client.allowance


def _planned(options: Options) -> Outcome:
    from siteline import Store
    from siteline._doctor.machine import read

    feeds, ranges = _feeds(options, RunFacts(Exit.DONE)), _ranges(options)
    exists = _exists(options.store)
    with client_of(options) as client:
        if exists:
            plan = read(options.store, lambda store: client.plan(feeds, store, **ranges))
        else:
            plan = client.plan(feeds, Store(options.store), **ranges)
    members = {"store": options.store, "store_exists": exists, **plan.to_dict()}
    note = "" if exists else f"\n  The run creates the store {escaped(options.store)}."
    return Outcome(members, f"{plan}{note}", Exit.SPENT if plan.fits is False else Exit.DONE)


def _feeds(options: Options, facts: RunFacts) -> tuple[Feed, ...]:
    file = read_feeds(options.feeds)
    facts.names = [feed.name for feed in file.feeds]
    options.profile = options.profile or file.profile
    return file.chosen(options.feed)


def _ranges(options: Options) -> dict[str, Any]:
    ranges: list[tuple[str, str]] = []
    for written in options.reread:
        start, _, end = written.partition("/")
        if not (start and end):
            text = f"--reread {written!r} is not START/END."
            raise QueryError(text, hint="Such as 2026-11-01/2026-11-03.")
        ranges.append((start, end))
    given = {"until": options.until, "reread": ranges or None}
    return {name: value for name, value in given.items() if value is not None}


def _exists(path: str) -> bool:
    # Unlike os.path.exists(), this raises the error if it is not known.
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def _judged(report: SyncReport) -> Exit:
    try:
        report.raise_for_incomplete()
    except AllowanceExhausted:
        return Exit.SPENT
    except SitelineError:
        return Exit.INCOMPLETE
    return Exit.DONE
