"""A wide plant: thousands of feeds in one store, and requests side by side."""

from __future__ import annotations

import resource
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import siteline

from speed.measure import Row
from speed.render import START
from speed.service import ours

Figures = dict[str, float]
MANY, FEW, FILES = 10_000, 50, 1_024
NOW = "2026-11-20T00:00:00Z"


def _hour(count: int) -> Figures:
    """Plan and sync one more hour of so many feeds; processor seconds for each of them."""
    with (
        siteline.Sandbox(now=NOW, late=False) as sandbox,
        tempfile.TemporaryDirectory() as folder,
        siteline.Store(Path(folder) / "plant.siteline") as store,
    ):
        client = sandbox.client()
        since = sandbox.clock.now() - timedelta(hours=1)
        feeds = [
            siteline.Feed(
                f"feed {number}", site="S1", line="L2", interval="1h", since=since, overlap="0s"
            )
            for number in range(count)
        ]
        first = client.sync(feeds, store)
        files = len(list(Path(folder).iterdir()))
        sandbox.clock.advance("1h")
        # Few feeds are planned and read so often that as much is measured as of many.
        plans = max(1, 2_000 // count)
        planned, plan = _timed(lambda: [client.plan(feeds, store) for _ in range(plans)][-1])
        synced, hours = 0.0, max(1, 1_000 // count)
        for number in range(hours):
            if number:
                sandbox.clock.advance("1h")
            seconds, report = _timed(lambda: client.sync(feeds, store))
            synced += seconds
            if not report.complete or report.requests < count:
                raise RuntimeError(f"{report.requests} requests of {count} feeds")
        if not first.complete or len(plan.tasks) < count:
            raise RuntimeError("the plan or the first run is not complete")
    return {
        "planned": planned / plans,
        "a plan": planned / plans / count,
        "a sync": synced / hours / count,
        "feeds": count,
        "files": files,
    }


def _timed(work: Any) -> tuple[float, Any]:
    started = time.process_time()
    done = work()
    return time.process_time() - started, done


def few() -> Figures:
    """Fifty feeds."""
    return _hour(FEW)


def thousands() -> Figures:
    """Two thousand feeds."""
    return _hour(2_000)


def many() -> Figures:
    """Ten thousand feeds, in a process that may have a thousand files open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    return _hour(MANY)


def _slow(concurrency: int) -> Figures:
    """Forty feeds, each of a chain of two pages that are answered after 50 ms."""
    client, _ = ours()
    stop = START + timedelta(hours=2)
    feeds = [
        siteline.Feed(f"feed {number}", site="slow", line=f"L{number}", interval="1m", since=START)
        for number in range(40)
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        siteline.Store(Path(folder) / "plant.siteline") as store,
    ):
        started = time.perf_counter()
        report = client.sync(feeds, store, until=stop, concurrency=concurrency)
        seconds = time.perf_counter() - started
        if not report.complete or report.requests != 80:
            raise RuntimeError(f"not 80 requests: {report.requests}")
    return {"seconds": seconds}


def side_by_side() -> Figures:
    """Eight requests at a time."""
    return _slow(8)


def in_turn() -> Figures:
    """One request at a time."""
    return _slow(1)


TWO_THOUSAND, TEN_THOUSAND, FIFTY = "plant:thousands", "plant:many", "plant:few"
EIGHT, ONE = "plant:side_by_side", "plant:in_turn"
SLOW = (TWO_THOUSAND, TEN_THOUSAND)
ROWS = [
    Row("a plan of 2,000 feeds", "planned", TWO_THOUSAND, bar=0.2, slow=SLOW),
    Row(
        "a plan, for each feed, of 10,000 beside 50",
        "a plan",
        TEN_THOUSAND,
        FIFTY,
        bar=1.3,
        slow=SLOW,
    ),
    Row(
        "a sync of one hour more, for each feed, of 10,000 beside 50",
        "a sync",
        TEN_THOUSAND,
        FIFTY,
        bar=1.3,
        slow=SLOW,
    ),
    Row(
        "feeds that are synchronised with 1,024 open files",
        "feeds",
        TEN_THOUSAND,
        unit="",
        bar=MANY,
        at_least=True,
        slow=SLOW,
    ),
    Row("files that 10,000 feeds need", "files", TEN_THOUSAND, unit="", bar=4, slow=SLOW),
    Row("40 feeds, 80 pages of 50 ms, concurrency=8, beside 1", "seconds", EIGHT, ONE, bar=0.2),
    Row("40 feeds, 80 pages of 50 ms, concurrency=8", "seconds", EIGHT, bar=0.8),
]
