"""A million points synced over HTTP into an empty store: pages of few series and of many."""

from __future__ import annotations

import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

import siteline

from speed.measure import Row
from speed.pages import FEED
from speed.render import PAGES, SERIES, SLICE, START, WIDE_SERIES, WIDE_SLICE, end
from speed.service import INTERVAL, PAGE_SIZE, ours
from speed.store import bytes_written

Figures = dict[str, float]


def narrow() -> Figures:
    """500 points of each of 20 series a page."""
    return _synced("a", end(), SERIES * SLICE)


def wide() -> Figures:
    """Two points of each of 5,000 series a page."""
    stop = START + timedelta(minutes=PAGES * WIDE_SLICE)
    return _synced("wide", stop, WIDE_SERIES * WIDE_SLICE)


def _synced(pages: str, stop: datetime, page: int) -> Figures:
    client, _ = ours()
    # The window of this width that begins before the data ends after it: one chain reads all.
    feed = siteline.Feed(
        FEED, site=pages, since=START, interval=INTERVAL, page_size=PAGE_SIZE, window="64d"
    )
    with tempfile.TemporaryDirectory() as folder:
        written = bytes_written()
        with siteline.Store(Path(folder) / "plant.siteline") as store:
            started, busy = time.perf_counter(), time.process_time()
            report = client.sync(feed, store, until=stop)
            seconds, cpu = time.perf_counter() - started, time.process_time() - busy
            stored = len(store.points(feed))
        written = bytes_written() - written
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    if not report.complete or report.requests != PAGES:
        raise RuntimeError(f"not {PAGES} requests: {report}")
    if not PAGES * page == report.inserted == stored:
        raise RuntimeError(f"{report.inserted} points, {stored} in the store")
    return {"seconds": seconds, "cpu": cpu, "sizes": written / size}


WIDE, NARROW = "synced:wide", "synced:narrow"
WHAT = "sync of 1 M points over HTTP, 5,000 series x 2 a page"
ROWS = [
    Row(f"{WHAT}, beside 20 series", "seconds", WIDE, NARROW, bar=2.5),
    Row(f"{WHAT}: bytes written, in sizes of the file", "sizes", WIDE, unit="", bar=4),
]
