"""The process that is killed: it syncs into a target, once for each job that it is sent.

It answers ``("ack", 0)`` as it begins, ``("ack", n)`` after the n-th page of the run was applied,
then ``("done", counts)``, or ``("failed", text)`` for an exception; and waits for its next job.
"""

from __future__ import annotations

import logging
import os
import traceback
from typing import TYPE_CHECKING, Any

import siteline

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from target_kills.places import Place


def counts(report: siteline.types.FeedReport) -> tuple[int, ...]:
    """The counts of a report, which are the same for a target and a store."""
    return report.pages, report.inserted, report.revised, report.unchanged, report.withdrawn


def sync(target: Any, job: dict[str, Any], pipe: Connection) -> dict[str, tuple[int, ...]]:
    """Syncs once, compacts before if required, and returns the counts of each feed."""
    if job.pop("compact") and hasattr(target, "compact"):
        target.compact()
    feeds = [siteline.Feed(**feed) for feed in job.pop("feeds")]
    clock = siteline.testing.Clock(job.pop("now"))
    target.batch = job.pop("batch")
    with siteline.Client(clock=clock, ledger=job.pop("ledger")) as client:
        report = client.sync(
            feeds, target, progress=lambda progress: pipe.send(("ack", progress.pages)), **job
        )
    report.raise_for_incomplete()
    return {feed.name: counts(feed) for feed in report.feeds}


def work(place: Place, environment: dict[str, str], pipe: Connection) -> None:
    """Sync until the parent has no more jobs. A target stays open if others may open it too."""
    os.environ.update(environment)
    # The service's clock moves during a run, which the client's does not.
    logging.getLogger("siteline").setLevel(logging.ERROR)
    target = None
    while job := pipe.recv():
        try:
            target = target or place.open()
            pipe.send(("ack", 0))
            answer: tuple[str, Any] = ("done", sync(target, job, pipe))
        except Exception as error:
            answer = ("failed", "".join(traceback.format_exception(error)))
        if target and not place.is_shared:
            target.close()
            target = None
        pipe.send(answer)
