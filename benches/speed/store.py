"""A million points in a hundred pages into an empty store, each page with its checkpoint; then all
points again, one in a hundred revised and one in a hundred new. The same with half a million points
of a wide plant: each page has two points of each of 5,000 series.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import siteline

from speed.measure import Row
from speed.pages import FEED, NARROW, WIDE, Plant, captured

Figures = dict[str, float]
SCHEMA = """
    CREATE TABLE points (
        series INTEGER, ts BIGINT, value DOUBLE, minimum DOUBLE, maximum DOUBLE,
        sample_count BIGINT, PRIMARY KEY (series, ts)
    ) WITHOUT ROWID;
    CREATE TABLE checkpoint (feed TEXT PRIMARY KEY, state BLOB);
"""
CHANGED = " OR ".join(
    f"excluded.{name} IS DISTINCT FROM points.{name}"
    for name in ("value", "minimum", "maximum", "sample_count")
)
UPSERT = f"""
    INSERT INTO points {{}} ON CONFLICT (series, ts) DO UPDATE SET
    value = excluded.value, minimum = excluded.minimum, maximum = excluded.maximum,
    sample_count = excluded.sample_count WHERE {CHANGED}
"""


def siteline_load() -> Figures:
    """siteline: a page and its state in one transaction, counted."""
    return _siteline_load(NARROW)


def siteline_wide() -> Figures:
    """siteline: two points of each of 5,000 series a page."""
    return _siteline_load(WIDE)


def _siteline_load(plant: Plant) -> Figures:
    before, after = captured(plant)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plant.siteline"
        written = bytes_written()
        with siteline.Store(path) as store:
            first, counts = _ours(store, before)
            points = counts[0]
            again, counts = _ours(store, after)
            inserted, revised, unchanged = counts
            if not (0.009 < revised / points < 0.011 and 0.009 < inserted / points < 0.011):
                raise RuntimeError(f"the counts are wrong: {counts} after {points}")
            if inserted + revised + unchanged != points + inserted:
                raise RuntimeError(f"points are missing: {counts} after {points}")
            started = time.perf_counter()
            table = store.points(FEED).to_arrow()
            scan = time.perf_counter() - started
            rows = table.num_rows
        written = bytes_written() - written
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {
        "first": first,
        "again": again,
        "megabytes": size / 1e6 / (rows / 1e6),
        "scanned": rows / scan / 1e6,
        "sizes": written / size,
    }


def bytes_written() -> int:
    """How many bytes this process gave to its files; 0 where the system does not count them."""
    try:
        counts = Path("/proc/self/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in counts.splitlines() if line.startswith("wchar"))


def _ours(store: siteline.Store, pages: list[Any]) -> tuple[float, list[int]]:
    started = time.perf_counter()
    applied = [store.apply(FEED, page, state) for page, state in pages]
    seconds = time.perf_counter() - started
    return seconds, [sum(counts) for counts in zip(*applied, strict=True)]


def _tuples(pages: list[Any]) -> list[tuple[list[tuple[Any, ...]], bytes]]:
    """The pages as rows of a table, with a number for each series; this is not timed."""
    numbers: dict[tuple[Any, ...], int] = {}
    converted = []
    for page, state in pages:
        rows = []
        for record in page.records(named=True):
            series = numbers.setdefault(tuple(record[:5]), len(numbers))
            micros = int(record.timestamp.timestamp()) * 1_000_000
            rows.append((series, micros, *record[6:]))
        converted.append((rows, state))
    return converted


def sqlite_load() -> Figures:
    """sqlite3: executemany and a checkpoint, one transaction per page."""
    return _sqlite_load(NARROW)


def sqlite_wide() -> Figures:
    """sqlite3: the same with two points of each of 5,000 series a page."""
    return _sqlite_load(WIDE)


def _sqlite_load(plant: Plant) -> Figures:
    before, after = (_tuples(pages) for pages in captured(plant))
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "plant.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(SCHEMA)
        upsert = UPSERT.format("VALUES (?, ?, ?, ?, ?, ?)")
        figures = {
            "first": _theirs(connection, before, upsert),
            "again": _theirs(connection, after, upsert),
        }
        connection.close()
    return figures


def _theirs(connection: Any, pages: list[Any], upsert: str) -> float:
    started = time.perf_counter()
    for rows, state in pages:
        connection.execute("BEGIN")
        connection.executemany(upsert, rows)
        connection.execute("INSERT OR REPLACE INTO checkpoint VALUES (?, ?)", ("bench", state))
        connection.execute("COMMIT")
    return time.perf_counter() - started


def duckdb_load() -> Figures:
    """DuckDB: each page as an Arrow table, upserted with its checkpoint in one transaction."""
    import duckdb
    import pyarrow as pa

    names = ["series", "ts", "value", "minimum", "maximum", "sample_count"]
    kinds = [pa.int32(), pa.int64(), pa.float64(), pa.float64(), pa.float64(), pa.int64()]

    def tables(pages: list[Any]) -> list[tuple[Any, bytes]]:
        converted = []
        for rows, state in _tuples(pages):
            columns = zip(*rows, strict=True)
            arrays = [pa.array(*each) for each in zip(columns, kinds, strict=True)]
            converted.append((pa.table(arrays, names=names), state))
        return converted

    before, after = (tables(pages) for pages in captured())
    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(str(Path(folder) / "plant.duckdb"))
        for statement in SCHEMA.replace("WITHOUT ROWID", "").split(";")[:2]:
            connection.execute(statement)

        def load(pages: list[tuple[Any, bytes]]) -> float:
            started = time.perf_counter()
            for page, state in pages:
                connection.execute("BEGIN")
                connection.register("page", page)
                connection.execute(UPSERT.format("SELECT * FROM page"))
                connection.execute("INSERT OR REPLACE INTO checkpoint VALUES ('bench', ?)", [state])
                connection.execute("COMMIT")
            return time.perf_counter() - started

        return {"first": load(before), "again": load(after)}


def _overlap(days: int) -> Figures:
    """Sync one more hour into a store that holds this many days."""
    now = "2026-11-20T00:00:00Z"
    with siteline.Sandbox(now=now, late=False) as sandbox, tempfile.TemporaryDirectory() as folder:
        client = sandbox.client()
        since = sandbox.clock.now() - timedelta(days=days)
        feed = siteline.Feed(FEED, site="S1", interval="1m", since=since, page_size=10_000)
        with siteline.Store(Path(folder) / "plant.siteline") as store:
            client.sync(feed, store)
            points = len(store.points(FEED))
            # Flush the writes of the first sync, which are not part of the cost of an hour.
            os.sync()
            seconds = []
            for _ in range(5):
                sandbox.clock.advance("1h")
                started = time.perf_counter()
                report = client.sync(feed, store)
                seconds.append(time.perf_counter() - started)
                if not report.complete:
                    raise RuntimeError("the run is not complete")
    return {"seconds": sorted(seconds)[2], "points": points}


def overlap_small() -> Figures:
    """One more hour on a million points."""
    return _overlap(58)


def overlap_large() -> Figures:
    """One more hour on ten million points."""
    return _overlap(580)


OURS, SQLITE, DUCKDB = "store:siteline_load", "store:sqlite_load", "store:duckdb_load"
WIDE_OURS, WIDE_SQLITE = "store:siteline_wide", "store:sqlite_wide"
SMALL, LARGE = "store:overlap_small", "store:overlap_large"
SLOW = (SQLITE, DUCKDB, WIDE_OURS, WIDE_SQLITE, SMALL, LARGE)
WIDE_LOAD = "0.5 M points of 5,000 series x 2"
ROWS = [
    replace(row, slow=tuple(who for who in (row.ours, row.peer) if who in SLOW))
    for row in (
        Row("1 M points into an empty store, beside sqlite3", "first", OURS, SQLITE, bar=0.45),
        Row("again, 1 % revised, 1 % new, beside sqlite3", "again", OURS, SQLITE, bar=0.25),
        Row("1 M points into an empty store, beside DuckDB", "first", OURS, DUCKDB, bar=1.0),
        Row("again, beside DuckDB", "again", OURS, DUCKDB, bar=1.0),
        Row(
            f"{WIDE_LOAD} into an empty store, beside sqlite3",
            "first",
            WIDE_OURS,
            WIDE_SQLITE,
            bar=0.30,
        ),
        Row(f"{WIDE_LOAD} again, beside sqlite3", "again", WIDE_OURS, WIDE_SQLITE, bar=0.45),
        Row(
            f"{WIDE_LOAD}, both: bytes written, in sizes of the file",
            "sizes",
            WIDE_OURS,
            unit="",
            bar=4,
        ),
        Row("on disk, a million points", "megabytes", OURS, unit="MB", bar=60),
        Row("scan to Arrow, million points/s", "scanned", OURS, unit="", bar=3, at_least=True),
        Row("an hour more on 10 M points, beside 1 M", "seconds", LARGE, SMALL, bar=1.3),
    )
]
