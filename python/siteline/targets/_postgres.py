"""The target :class:`Postgres`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from siteline import _doors
from siteline.errors import ConfigError, QueryError, StoreBusy
from siteline.frames import needing
from siteline.targets import _postgres_sql as sql
from siteline.targets import _refusals, _shared

if TYPE_CHECKING:
    from siteline.page import Page


class Postgres(_shared.SharedTarget):
    """Keeps the points of feeds in PostgreSQL 14 or later: see :class:`StoreTarget`.

    A sync holds an advisory lock of its session, so no pooler may be between. The lock ends with
    the process. If the connection is lost, the next sync continues. Threads may share a target.

    Args:
        uri: A URI of libpq. A connection is open while a feed is locked, and during other calls.
        table: Its name, or ``schema.name``: a view of ``points_rows`` and ``points_series``.
        history: Whether replaced versions are kept, for ``changes(old=True)``.
        batch: Pages of a chain in one transaction, or ``"chain"`` for all of them. They are in
            memory until then.
    """

    def __init__(
        self,
        uri: str,
        *,
        table: str = "points",
        history: bool = False,
        batch: int | Literal["chain"] = 16,
    ) -> None:
        """Connect to nothing yet."""
        packages = "pyarrow adbc_driver_postgresql adbc_driver_manager"
        with needing(packages, "siteline.targets.Postgres", "postgres"):
            import pyarrow  # the driver needs it too, for parameters and rows
            from adbc_driver_postgresql import dbapi
        if not re.fullmatch(r"([^.\0]+\.)?[^.\0]{1,48}", table):
            raise QueryError(f"table={table!r} is no name of up to 48 characters, or schema.name.")
        self.batch: int | Literal["chain"] = batch
        """The pages of a chain that are stored in one transaction."""
        self._arrow: Any = pyarrow
        self._driver, self._uri, self._table, self._history = dbapi, uri, table, history
        self._place = f"PostgreSQL ({table})"
        self._guard, self._held, self._connection = threading.RLock(), set[str](), None

    @contextmanager
    def lock(self, feed: str) -> Iterator[None]:
        """Hold a feed during a sync."""
        rows = self._named("%_rows")
        try:
            with self._transaction(feed) as cursor:
                self._prepare(cursor)
                self._try(cursor, feed)
                if feed in self._held or not self._run(cursor, sql.TRY_LOCK, feed, rows)[0][0]:
                    raise StoreBusy(f"Another sync writes the feed {feed!r} to {self._table}.")
        except self._driver.Error as error:
            if (error.sqlstate or "")[:2] in sql.LOST:
                raise
            raise _refusals.refused(self._place, feed, _message(error)) from error
        try:
            yield
        finally:
            self._held.discard(feed)
            with suppress(self._driver.Error), self._transaction() as cursor:
                self._run(cursor, sql.UNLOCK, feed, rows)

    def state(self, feed: str) -> bytes | None:
        """See :meth:`StoreTarget.state`."""
        return self._find("%_states", sql.STATE, feed) or None

    def apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int, int]:
        """See :meth:`StoreTarget.apply`."""
        try:
            return self._apply(feed, page, state)
        except self._driver.Error as error:
            if error.sqlstate == sql.DISK_FULL:
                raise _refusals.full(self._place, feed) from error
            if page is None or (error.sqlstate or "")[:2] not in sql.OF_DATA:
                raise
            text = _refusals.cut(_message(error))
            raise _refusals.unstorable(self._place, feed, text) from error

    def _apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int, int]:
        settled = ",".join(f"[{start},{end})" for start, end in _doors.of_state("settled", state))
        with self._transaction() as cursor:
            counts = (0, 0, 0) if page is None else self._write(cursor, feed, page)
            self._run(cursor, sql.SET_STATE, feed, state, f"{{{settled}}}", True)
        return _shared.counted(page, *counts)

    def changes(self, feed: str, since: int = 0, *, old: bool = False) -> Any:
        """Return the points that pages after ``since`` changed: a pyarrow table.

        Args:
            feed: The name of the feed.
            since: The sequence of the last page that you have read, such as :meth:`offset`.
            old: Also return the replaced values (see ``history`` of the class).
        """
        if old and not self._history:
            raise ConfigError("old=True needs the replaced versions: Postgres(..., history=True).")
        query = self._named(sql.CHANGES_WITH_OLD if old else sql.CHANGES)
        with self._transaction() as cursor:
            return cursor.execute(query, (feed, since)).fetch_arrow_table()

    def _offset(self, consumer: str, feed: str) -> int | None:
        offset: int | None = self._find("%_offsets", sql.OFFSET, consumer, feed)
        return offset

    def _set_offset(self, consumer: str, feed: str, sequence: int) -> None:
        with self._transaction() as cursor:
            self._run(cursor, sql.SET_OFFSET, consumer, feed, sequence)

    def close(self) -> None:
        """Do nothing: no connection is open between calls and syncs."""

    def _write(self, cursor: Any, feed: str, page: Page) -> Any:
        """Write the points of a page; of two rows of the same point, the later one."""
        table = self._arrow.RecordBatchReader.from_stream(page).read_all().unify_dictionaries()
        table = table.append_column("row", self._arrow.array(range(len(table)), "int64"))
        series = table.group_by(list(_shared.IDS)).aggregate([("row", "list")])
        ids, rows = series.select(_shared.IDS).to_pylist(), series["row_list"].combine_chunks()
        self._refuse_nul(feed, ids)
        numbers = [number for (number,) in self._run(cursor, sql.SERIES, feed, json.dumps(ids))]
        of_row = self._arrow.array(numbers, "int32").take(rows.value_parent_indices())
        table = table.drop_columns(list(_shared.IDS)).take(rows.flatten())
        table = table.append_column("series", of_row)
        self._run(cursor, sql.PAGE)
        ingest = partial(cursor.adbc_ingest, "siteline_page", table, "append", temporary=True)
        _refusals.interruptible(ingest, cursor.adbc_cancel)
        extent = str(page.query.start), str(page.query.end)
        chain = page.sequence, page.is_last, page.first_sequence
        return self._run(cursor, sql.WRITE, feed, *chain, *extent, page.is_whole, self._history)[0]

    def _prepare(self, cursor: Any) -> None:
        """Create the tables, or reject others with the same names."""
        self._run(cursor, sql.MAKE_LOCK)
        if found := self._run(cursor, sql.COLUMNS_OF, self._named("%")):
            _shared.check_columns(self._table, [name for name, *_ in found])
        if not self._run(cursor, sql.COLUMNS_OF, self._named("%_rows")):
            for statement in sql.TABLES.split(";"):
                self._run(cursor, statement)
        for table, types in sql.TYPES.items():
            found = self._run(cursor, sql.COLUMNS_OF, self._named(table))
            columns = {name: (kind, is_needed) for name, kind, is_needed in found}
            _refusals.check_types(table.replace("%", self._table), columns, types)

    def _try(self, cursor: Any, feed: str) -> None:
        # With an empty page the statements fail before any request.
        self._run(cursor, sql.SAVE)
        self._run(cursor, sql.SERIES, feed, "[]")
        self._run(cursor, sql.PAGE)
        extent = ("2000-01-01", "2000-01-02")
        self._run(cursor, sql.WRITE, feed, 0, False, 0, *extent, True, self._history)
        self._run(cursor, sql.SET_STATE, feed, b"", "{}", False)
        self._run(cursor, sql.UNDO)

    def _refuse_nul(self, feed: str, ids: list[dict[str, str | None]]) -> None:
        pairs = (pair for series in ids for pair in series.items())
        for name, value in pairs:
            if value is not None and "\0" in value:
                text = f"the {name} {_refusals.cut(repr(value))} has a NUL character."
                hint = "Read the other series in a new feed with a filter, or use another target."
                raise _refusals.unstorable(self._place, feed, text, hint)

    @contextmanager
    def _transaction(self, *hold: str) -> Iterator[Any]:
        """Yield a cursor; while a feed is held, of its session. A commit holds ``hold``."""
        with self._guard:
            connection = self._connection or self._connect()
            try:
                with connection.cursor() as cursor:
                    # executescript commits a transaction that has begun, so it is called first.
                    begin = partial(cursor.executescript, sql.BEGIN)
                    _refusals.interruptible(begin, cursor.adbc_cancel)
                    yield cursor
                connection.commit()
                self._held.update(hold)
            finally:
                with suppress(self._driver.Error):
                    connection.rollback()
                self._connection = connection if self._held else connection.close()

    def _connect(self) -> Any:
        try:
            return self._driver.connect(self._uri)
        except self._driver.Error as error:
            if not sql.UNREADABLE.search(str(error)):
                raise
        raise ConfigError("The URI is none that libpq can read.", hint="Encode @, % and / in it.")

    def _run(self, cursor: Any, statement: str, *values: Any) -> Any:
        execute = partial(cursor.execute, self._named(statement), values)
        return _refusals.interruptible(lambda: execute().fetchall(), cursor.adbc_cancel)

    def _find(self, table: str, query: str, *values: Any) -> Any:
        with self._transaction() as cursor:
            known = self._run(cursor, sql.COLUMNS_OF, self._named(table))
            found = known and self._run(cursor, query, *values)
        return found[0][0] if found else None

    def _named(self, statement: str) -> str:
        table = self._table.replace('"', '""').replace(".", '"."')
        return re.sub(r"%(\w*)", lambda at: f'"{table}{at[1]}"', statement)


def _message(error: Any) -> str:
    """The server's message without the statement and the row."""
    found = sql.MESSAGE.search(str(error))
    text = found[1] if found else type(error).__name__
    lacks = "; the encoding of the database lacks a character of an id"
    return text + lacks if error.sqlstate == sql.NO_CHARACTER else text
