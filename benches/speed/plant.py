"""A wide plant: thousands of feeds in one store, and requests side by side."""

from __future__ import annotations

import tempfile
import time
from datetime import timedelta
from pathlib import Path

import siteline

from speed.measure import Row
from speed.render import START
from speed.service import ours

Figures = dict[str, float]
FEEDS = 2_000
NOW = "2026-11-20T00:00:00Z"


def thousands() -> Figures:
    """Processor seconds of a plan of two thousand feeds that have been read once."""
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
            for number in range(FEEDS)
        ]
        first = client.sync(feeds, store)
        sandbox.clock.advance("1h")
        started = time.process_time()
        plan = client.plan(feeds, store)
        planned = time.process_time() - started
    if not first.complete or len(plan.tasks) < FEEDS:
        raise RuntimeError("the plan or the first run is not complete")
    return {"planned": planned}


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


THOUSANDS, EIGHT, ONE = "plant:thousands", "plant:side_by_side", "plant:in_turn"
ROWS = [
    Row("a plan of 2,000 feeds", "planned", THOUSANDS, bar=0.2, slow=(THOUSANDS,)),
    Row("40 feeds, 80 pages of 50 ms, concurrency=8, beside 1", "seconds", EIGHT, ONE, bar=0.2),
    Row("40 feeds, 80 pages of 50 ms, concurrency=8", "seconds", EIGHT, bar=0.8),
]
