"""siteline's store and other databases: loads, syncs, plans, and reads of many points."""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import siteline

from speed.measure import run
from speed.outcome import Figures, framed, of_process, timed, timing
from speed.pages import FEED, captured, load_ours, load_theirs
from speed.render import PAGES, START, WIDE_SLICE
from speed.render import end as end_of_pages
from speed.service import VALUES, ours

SCHEMA = """
    CREATE TABLE points (
        series INTEGER, ts BIGINT, value DOUBLE, minimum DOUBLE, maximum DOUBLE,
        sample_count BIGINT, PRIMARY KEY (series, ts)
    ) WITHOUT ROWID;
    CREATE TABLE checkpoint (feed TEXT PRIMARY KEY, state BLOB);
"""
UPSERT = f"""
    INSERT INTO points VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (series, ts) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in VALUES)}
    WHERE {" OR ".join(f"excluded.{name} IS DISTINCT FROM points.{name}" for name in VALUES)}
"""
CHECKPOINT = "INSERT OR REPLACE INTO checkpoint VALUES ('bench', ?)"


@contextmanager
def _folder() -> Iterator[tuple[Path, Callable[[int], Figures]]]:
    """The path of a store, and a function that returns its size and the bytes written."""

    def figures(points: int) -> Figures:
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        return {"sizes": (of_process("io", "wchar") - before) / size, "megabytes": size / points}

    with tempfile.TemporaryDirectory() as folder:
        before = of_process("io", "wchar")
        yield Path(folder) / "plant.siteline", figures


def siteline_load(size: str) -> Figures:
    """siteline: a page and its state in one transaction, counted; then a scan of all points."""
    pages = captured(size)
    with _folder() as (path, figures):
        with siteline.Store(path) as store:
            loaded = load_ours(store, pages)
            table, scan = timed(lambda: store.read(FEED).to_arrow())
        if table.num_rows != sum(len(page) for page, _ in pages[1]):
            raise RuntimeError(f"{table.num_rows} points are in the store")
        scanned = table.num_rows / scan["seconds"] / 1e6
        return loaded | figures(table.num_rows) | {"scanned": scanned}


def sqlite(size: str) -> Figures:
    """sqlite3: executemany and a checkpoint, one transaction per page."""
    numbers: dict[tuple[Any, ...], int] = {}

    def rows(page: Any) -> Iterator[tuple[Any, ...]]:
        for record in page.records(named=True):
            series = numbers.setdefault(tuple(record[:5]), len(numbers))
            yield series, int(record.timestamp.timestamp()) * 1_000_000, *record[6:]

    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "plant.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(SCHEMA)

        def apply(rows: list[tuple[Any, ...]], state: bytes) -> None:
            connection.execute("BEGIN")
            connection.executemany(UPSERT, rows)
            connection.execute(CHECKPOINT, [state])
            connection.execute("COMMIT")

        figures = load_theirs(captured(size), lambda page: list(rows(page)), apply)
        connection.close()
    return figures


def synced(size: str) -> Figures:
    """A million points synced over HTTP: a page has 500 points of 20 series, or two of 5,000."""
    pages, stop = "a", end_of_pages()
    if size == "wide":
        pages, stop = "wide", START + timedelta(minutes=PAGES * WIDE_SLICE)
    client, _ = ours()
    # The window of this width that begins before the data ends after it: one chain reads all.
    feed = siteline.Feed(FEED, site=pages, start=START, interval=60, page_size=10_000, window="64d")
    with _folder() as (path, figures):
        with siteline.Store(path) as store:
            with timing() as spent:
                report = client.sync(feed, store, until=stop)
            stored = len(store.read(feed))
        if not report.complete or not PAGES * 10_000 == report.inserted == stored:
            raise RuntimeError(f"{stored} points are in the store: {report}")
        return spent | figures(stored)


@contextmanager
def _sandbox(**since: int) -> Iterator[tuple[Any, Any, Any, Path]]:
    """A sandbox with its client, a feed that begins this long ago, and the path of a store."""
    now = "2026-11-20T00:00:00Z"
    with siteline.Sandbox(now=now, late=False) as sandbox, _folder() as (path, _):
        begin = sandbox.clock.now() - timedelta(**since)
        feed = siteline.Feed(FEED, site="S1", interval="1m", start=begin, page_size=10_000)
        yield sandbox, sandbox.client(), feed, path


def overlap(days: str) -> Figures:
    """The median sync of one more hour into a store that holds this many days."""
    with _sandbox(days=int(days)) as (sandbox, client, feed, path), siteline.Store(path) as store:
        client.sync(feed, store)
        # Flush the writes of the first sync, which are not part of the cost of an hour.
        os.sync()
        seconds = []
        for _ in range(5):
            sandbox.clock.advance("1h")
            report, figures = timed(lambda: client.sync(feed, store))
            seconds.append(figures["seconds"])
            if not report.complete:
                raise RuntimeError("the run is not complete")
    return {"seconds": statistics.median(seconds)}


def plan() -> Figures:
    """Processor seconds of a plan of two thousand feeds that have been read once."""
    with _sandbox(hours=1) as (sandbox, client, feed, path), siteline.Store(path) as store:
        hourly = partial(siteline.Feed, site="S1", line="L2", interval="1h", overlap="0s")
        feeds = [hourly(f"feed {number}", start=feed.start) for number in range(2_000)]
        first = client.sync(feeds, store)
        sandbox.clock.advance("1h")
        plan, figures = timed(lambda: client.plan(feeds, store))
    if not first.complete or len(plan.tasks) < len(feeds):
        raise RuntimeError("the plan or the first run is not complete")
    return figures


def many(millions: str) -> Figures:
    """Reads of a store with this many million points, in a process that has not read it before."""
    # The site of the sandbox has a million points in 58 days of minutes.
    with _sandbox(days=58 * int(millions)) as (_, client, feed, path):
        with siteline.Store(path) as store:
            early = client.sync(feed, store, until=feed.start + timedelta(days=1))
            late = client.sync(feed, store)
        points = early.inserted + late.inserted
        if not early.complete or not late.complete or points < int(millions) * 950_000:
            raise RuntimeError(f"{early}\n{late}")
        return run(f"store:read:{path}:{early[FEED].sequence}:{early.inserted}:{points}")[0]


def read(path: str, sequence: str, early: str, points: str) -> Figures:
    """The early points, the number of points, the lateness, and all points as a frame."""
    with siteline.Store(path, read_only=True) as store:
        first, as_of = timed(lambda: store.read(FEED, as_of=int(sequence)).to_arrow().num_rows)
        rows, length = timed(lambda: len(store.read(FEED)))
        _, lateness = timed(lambda: store.lateness(FEED))
        _, daily = timed(lambda: store.read(FEED).resample("1d", "mean", partial="keep").to_arrow())
        outcome = framed(lambda: store.read(FEED).to_pandas(ids="category"))
    if not rows == len(outcome.product()) == int(points) or first != int(early):
        raise RuntimeError(f"{first} and {rows} points, not {early} and {points}")
    each = {"as_of": as_of, "length": length, "lateness": lateness}
    seconds = {name: figures["seconds"] for name, figures in each.items()}
    return seconds | {"frames": outcome.figures["frames"], "daily": daily["megabytes"]}
