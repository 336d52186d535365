"""``siteline sync``: brings a store up to date with the feeds of a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from siteline.cli.arguments import add_command, add_skip_code
from siteline.cli.clients import progress_of
from siteline.cli.exits import status_of
from siteline.cli.job import Job, job_of, judged
from siteline.cli.metrics import MetricsFile, RunFacts
from siteline.cli.output import Outcome
from siteline.cli.plan import add_feeds
from siteline.cli.service import run_service
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from siteline.cli.arguments import _Commands

__all__ = ["add"]


def add(commands: _Commands) -> None:
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
        "--concurrency", metavar="N", type=_number, help="requests under way at once (4)"
    )
    limits.add_argument("--deadline", metavar="DURATION", help="give a run so much time")
    add_skip_code(limits)


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
    return Outcome(report.to_dict(), str(report), status)


def _number(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)
