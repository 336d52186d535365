"""``siteline sync --every``: syncs again and again in the foreground, as systemd runs a service."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline._escape import escaped_lines
from siteline.cli.durations import duration_of
from siteline.cli.exits import Exit, status_of
from siteline.cli.job import judged
from siteline.cli.output import Outcome, document, error_members, tell
from siteline.cli.schedule import Ended, Schedule

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

    from siteline import Client
    from siteline.cli.job import Job
    from siteline.cli.metrics import MetricsFile
    from siteline.cli.stopping import Stop
    from siteline.cli.systemd import Notifier
    from siteline.types import Progress, SyncReport

__all__ = ["Run", "Service", "run_service"]

_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(days=31)
_PASSING = (Exit.TEMPORARY, Exit.SPENT, Exit.INCOMPLETE, Exit.BUSY)
"""What may be over at the next turn. All else needs a person, or the next start."""


def run_service(options: argparse.Namespace, job: Job, metrics: MetricsFile | None) -> Outcome:
    """Sync at every turn until a signal comes, or until a run ends with what does not pass."""
    import random

    from siteline.cli.loop import Loop
    from siteline.cli.stopping import Stop
    from siteline.cli.systemd import Notifier

    every = _every(options)
    with closing(Notifier()) as notifier, Stop(until_exit=True) as stop:
        service = Service(job, metrics, stop, notifier, as_json=options.json)
        # It is seeded by the system, for each process anew.
        schedule = Schedule(every.total_seconds(), random.Random().random)
        ended_by = Loop(service.run, service.tell, schedule, notifier, stop).go()
    status = Exit.INTERRUPTED if ended_by.name == "SIGINT" else Exit.DONE
    return Outcome({}, f"stopped by {ended_by.name}", status, has_written=True)


def _every(options: argparse.Namespace) -> timedelta:
    from siteline.errors import QueryError

    for name in ("until", "reread", "skip_code"):
        if getattr(options, name) is not None:
            raise QueryError(
                f"--{name.replace('_', '-')} is for a single run: it does not go with --every."
            )
    every = duration_of("--every", options.every)
    if not _SHORTEST <= every <= _LONGEST:
        raise QueryError(f"--every {options.every!r} is not from 1 second to 31 days.")
    return every


class Run(NamedTuple):
    """One run that has ended, as it is told of."""

    status: Exit
    members: dict[str, Any]
    text: str


class Service:
    """The runs of a job, one after another."""

    def __init__(
        self,
        job: Job,
        metrics: MetricsFile | None,
        stop: Stop,
        notifier: Notifier,
        *,
        as_json: bool,
    ) -> None:
        """Run nothing yet."""
        self._job, self._metrics = job, metrics
        self._stop, self._notifier = stop, notifier
        self._as_json = as_json
        self._count = 0
        self._pages = 0

    def run(self) -> tuple[Ended, Run]:
        """Sync once. What does not pass is raised."""
        from siteline.cli.stopping import Stopped

        self._count += 1
        self._pages = 0
        try:
            report = self._job.run(self._after_page)
        except Stopped:
            self._tell_stopped()
            raise
        except Exception as error:
            return self._failed(error)
        return self._done(report)

    def tell(self, run: Run, wait: float) -> None:
        """Write the line of a run, whose next one comes after so many seconds."""
        now = _service_time(self._job.client)
        next_at = (now + timedelta(seconds=wait)).replace(microsecond=0)
        self._notifier.status(f"{run.text}; next run {_text(next_at)}")
        self._write(run, now, next_at)

    def _after_page(self, progress: Progress) -> None:
        self._pages = progress.pages
        self._notifier.alive()
        self._stop.check()

    def _done(self, report: SyncReport) -> tuple[Ended, Run]:
        status = judged(report)
        self._record(status, report)
        resumes_at = report.resumes_at if status is Exit.SPENT else None
        ended = Ended(status, self._seconds_until(resumes_at))
        return ended, Run(status, {**report.to_dict()}, _summary(report, status))

    def _failed(self, error: Exception) -> tuple[Ended, Run]:
        from siteline.errors import DeadlineExceeded

        status = status_of(error)
        self._record(status, None)
        if status not in _PASSING:
            raise error
        tell(error)
        # A range that was set aside has a time too, but all else is due before.
        has_time = status in (Exit.TEMPORARY, Exit.SPENT)
        resumes_in = self._seconds_until(getattr(error, "retry_at", None)) if has_time else None
        # A deadline of the user's own says nothing of the service.
        is_failure = status is Exit.TEMPORARY and not isinstance(error, DeadlineExceeded)
        ended = Ended(status, resumes_in, is_failure and resumes_in is None)
        return ended, Run(status, error_members(error), f"{type(error).__name__}, exit {status}")

    def _tell_stopped(self) -> None:
        from siteline._counts import counted

        asked = self._stop.signal
        assert asked is not None
        status = Exit.INTERRUPTED if asked.name == "SIGINT" else Exit.DONE
        self._record(status, None)
        text = f"stopped by {asked.name} after {counted(self._pages, 'page')}, which stay"
        run = Run(status, {"stopped": asked.name, "pages": self._pages}, text)
        self._write(run, _service_time(self._job.client), None)

    def _seconds_until(self, at: datetime | None) -> float | None:
        """Return the seconds until a time of the service's clock."""
        return None if at is None else (at - _service_time(self._job.client)).total_seconds()

    def _record(self, status: Exit, report: SyncReport | None) -> None:
        if self._metrics is not None:
            self._metrics.record(self._job.facts(status, report))

    def _write(self, run: Run, now: datetime, next_at: datetime | None) -> None:
        if self._as_json:
            told = {"run": self._count, "next_at": next_at, **run.members}
            line = document("sync", run.status, told)
        else:
            then = "" if next_at is None else f"; next run {_text(next_at)}"
            line = escaped_lines(f"{_text(now)}, run {self._count}: {run.text}{then}")
        # Whoever reads a pipe is to see it before the next run.
        print(line, flush=True)


def _service_time(client: Client) -> datetime:
    """Return the time of the service, as the client has it. Sends nothing."""
    return client.plan(client.scan(start=None)).now


def _summary(report: SyncReport, status: Exit) -> str:
    from siteline._counts import counted
    from siteline._times import to_second

    state = "complete" if status is Exit.DONE else f"incomplete, exit {status}"
    withdrawn = f", {report.withdrawn:,} withdrawn" if report.withdrawn else ""
    read = report.read_through
    reach = "" if read is None else f", read through {to_second(read)}"
    return (
        f"{state}, {counted(report.pages, 'page')}, {report.inserted:,} inserted, "
        f"{report.revised:,} revised, {report.unchanged:,} unchanged{withdrawn}{reach}"
    )


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
