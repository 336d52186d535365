"""One tag's month out of a store of many points, beside DuckDB on a file of its own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import siteline

from speed.pages import FEED

Figures = dict[str, float]
RUNS = 9
SQL = "SELECT * FROM points WHERE timestamp >= ? AND timestamp < ? AND tag_guid = ?"


def tag_month(store: siteline.Store, folder: Path, since: datetime, days: int) -> Figures:
    """Seconds that the month in the middle takes more than DuckDB, each read once before.

    DuckDB's file is ordered by day, as a sync would write it, so that it can skip other times.
    """
    import duckdb

    start = since + timedelta(days=days // 2)
    end = start + timedelta(days=30)
    tag = str(
        store.points(FEED, start, start + timedelta(hours=1)).to_pandas()["tag_guid"].iloc[-1]
    )
    path = folder / "points.duckdb"
    _fill(store, path, since, days)
    with duckdb.connect(str(path), read_only=True) as own:
        reads: list[Callable[[], Any]] = [
            lambda: store.points(FEED, start, end, tag=tag).to_pandas(),
            lambda: own.sql(SQL, params=[start, end, tag]).df(),
        ]
        ours, theirs = map(_warm, reads)
        frames = [read() for read in reads]
    lengths = {len(frame) for frame in frames}
    sums = [float(frame["value"].sum()) for frame in frames]
    if len(lengths) != 1 or max(sums) - min(sums) > 0.1 or min(lengths) < 40_000:
        raise RuntimeError(f"the month differs: {lengths} points, {sums}")
    return {"month over DuckDB": ours - theirs}


def _fill(store: siteline.Store, path: Path, since: datetime, days: int) -> None:
    import duckdb

    with duckdb.connect(str(path)) as own:
        for first in range(0, days, 58):
            start = since + timedelta(days=first)
            end = start + timedelta(days=58) if first + 58 < days else None
            part = store.points(FEED, start, end).to_arrow()
            how = "INSERT INTO points" if first else "CREATE TABLE points AS"
            own.register("part", part)
            own.execute(f"{how} SELECT * FROM part ORDER BY timestamp::date, tag_guid, timestamp")
            own.unregister("part")


def _warm(read: Callable[[], Any]) -> float:
    read()
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        read()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)
