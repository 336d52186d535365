"""siteline's store and other databases: loads, syncs, plans, and reads of many points."""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import siteline

from speed.measure import run
from speed.outcome import Figures, framed, timed, timing
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
    INSERT INTO points {{}} ON CONFLICT (series, ts) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in VALUES)}
    WHERE {" OR ".join(f"excluded.{name} IS DISTINCT FROM points.{name}" for name in VALUES)}
"""
CHECKPOINT = "INSERT OR REPLACE INTO checkpoint VALUES ('bench', ?)"


@contextmanager
def _folder() -> Iterator[tuple[Path, Callable[[int], Figures]]]:
    """The path of a store, and a function that returns its size and the bytes written."""

    def written() -> int:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))

    def figures(points: int) -> Figures:
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        return {"sizes": (written() - before) / size, "megabytes": size / points}

    with tempfile.TemporaryDirectory() as folder:
        before = written()
        yield Path(folder) / "plant.siteline", figures


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


def siteline_load(size: str) -> Figures:
    """siteline: a page and its state in one transaction, counted; then a scan of all points."""
    pages = captured(size)
    with _folder() as (path, figures):
        with siteline.Store(path) as store:
            loaded = load_ours(store, pages)
            seconds, table = _timed(lambda: store.read(FEED).to_arrow())
        if table.num_rows != sum(len(page) for page, _ in pages[1]):
            raise RuntimeError(f"{table.num_rows} points are in the store")
        scanned = {"scanned": table.num_rows / seconds / 1e6}
        return loaded | scanned | figures(table.num_rows)


def _numbered() -> Callable[[Any], list[tuple[Any, ...]]]:
    """Converts pages to rows of a table, with a number for each series."""
    numbers: dict[tuple[Any, ...], int] = {}

    def rows(page: Any) -> list[tuple[Any, ...]]:
        converted = []
        for record in page.records(named=True):
            series = numbers.setdefault(tuple(record[:5]), len(numbers))
            micros = int(record.timestamp.timestamp()) * 1_000_000
            converted.append((series, micros, *record[6:]))
        return converted

    return rows


def sqlite(size: str) -> Figures:
    """sqlite3: executemany and a checkpoint, one transaction per page."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "plant.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(SCHEMA)
        upsert = UPSERT.format("VALUES (?, ?, ?, ?, ?, ?)")

        def apply(rows: list[tuple[Any, ...]], state: bytes) -> None:
            connection.execute("BEGIN")
            connection.executemany(upsert, rows)
            connection.execute(CHECKPOINT, [state])
            connection.execute("COMMIT")

        figures = load_theirs(captured(size), _numbered(), apply)
        connection.close()
    return figures


def duckdb() -> Figures:
    """DuckDB: each page as an Arrow table, upserted with its checkpoint in one transaction."""
    import duckdb as driver
    import pyarrow as pa

    names = ["series", "ts", *VALUES]
    kinds = [pa.int32(), pa.int64(), pa.float64(), pa.float64(), pa.float64(), pa.int64()]
    numbered = _numbered()

    def convert(page: Any) -> Any:
        columns = zip(*numbered(page), strict=True)
        return pa.table([pa.array(*each) for each in zip(columns, kinds, strict=True)], names=names)

    with tempfile.TemporaryDirectory() as folder:
        connection = driver.connect(str(Path(folder) / "plant.duckdb"))
        for statement in SCHEMA.replace("WITHOUT ROWID", "").split(";")[:2]:
            connection.execute(statement)

        def apply(page: Any, state: bytes) -> None:
            connection.execute("BEGIN")
            connection.register("page", page)
            connection.execute(UPSERT.format("SELECT * FROM page"))
            connection.execute(CHECKPOINT, [state])
            connection.execute("COMMIT")

        return load_theirs(captured(), convert, apply)


def synced(size: str) -> Figures:
    """A million points synced over HTTP: a page has 500 points of 20 series, or two of 5,000."""
    pages, stop = "a", end_of_pages()
    if size == "wide":
        pages, stop = "wide", START + timedelta(minutes=PAGES * WIDE_SLICE)
    client, _ = ours()
    # The window of this width that begins before the data ends after it: one chain reads all.
    feed = siteline.Feed(FEED, site=pages, since=START, interval=60, page_size=10_000, window="64d")
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
        feed = siteline.Feed(FEED, site="S1", interval="1m", since=begin, page_size=10_000)
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
            each, report = _timed(lambda: client.sync(feed, store))
            seconds.append(each)
            if not report.complete:
                raise RuntimeError("the run is not complete")
    return {"seconds": statistics.median(seconds)}


def plan() -> Figures:
    """Processor seconds of a plan of two thousand feeds that have been read once."""
    with _sandbox(hours=1) as (sandbox, client, feed, path), siteline.Store(path) as store:
        feeds = [
            siteline.Feed(
                f"feed {number}",
                site="S1",
                line="L2",
                interval="1h",
                since=feed.since,
                overlap="0s",
            )
            for number in range(2_000)
        ]
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
            early = client.sync(feed, store, until=feed.since + timedelta(days=1))
            late = client.sync(feed, store)
        points = early.inserted + late.inserted
        if not early.complete or not late.complete or points < int(millions) * 950_000:
            raise RuntimeError(f"{early}\n{late}")
        return run(f"store:read:{path}:{early[FEED].sequence}:{early.inserted}:{points}")[0]


def read(path: str, sequence: str, early: str, points: str) -> Figures:
    """The early points, the number of points, the lateness, and all points as a frame."""
    with siteline.Store(path, read_only=True) as store:
        as_of, first = _timed(lambda: store.read(FEED, as_of=int(sequence)).to_arrow().num_rows)
        length, rows = _timed(lambda: len(store.read(FEED)))
        lateness, _ = _timed(lambda: store.lateness(FEED))
        outcome = framed(lambda: store.read(FEED).to_pandas(ids="category"))
    if not rows == len(outcome.product()) == int(points) or first != int(early):
        raise RuntimeError(f"{first} and {rows} points, not {early} and {points}")
    frames = outcome.figures["frames"]
    return {"as_of": as_of, "length": length, "lateness": lateness, "frames": frames}
