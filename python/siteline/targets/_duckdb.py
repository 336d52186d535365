"""The target :class:`DuckDB`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from siteline import _doors
from siteline.errors import ConfigError, QueryError, StoreBusy, StoreError
from siteline.frames import needing
from siteline.targets import _duckdb_sql as sql
from siteline.targets import _refusals, _shared

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from siteline.page import Page

    _Database = str | os.PathLike[str] | DuckDBPyConnection


class DuckDB(_shared.SharedTarget):
    """Points of feeds in a DuckDB database: a target of :meth:`Client.sync`.

    Only one process at a time can open a DuckDB file. Until :meth:`close` others get
    :class:`StoreBusy`, even to read. Threads may share a target.

    Args:
        database: A path, opened at its first use. Or a connection: it is never closed, and its own
            transaction and settings stay as they are.
        table: The table. The names of the other tables and views begin with it.
        history: Whether replaced versions are kept, for ``changes(old=True)``. It cannot be undone.
        batch: Pages of a chain in one transaction, or ``"chain"`` for all of them. They are in
            memory until then.
    """

    def __init__(
        self,
        database: _Database,
        *,
        table: str = "points",
        history: bool = False,
        batch: int | Literal["chain"] = 16,
    ) -> None:
        """Open nothing yet."""
        with needing("duckdb", "siteline.targets.DuckDB"):
            import duckdb
        if not table.isidentifier():
            raise QueryError(f"table={table!r} is no plain name.")
        self.batch: int | Literal["chain"] = batch
        """The pages of a chain that are stored in one transaction."""
        self._duckdb: Any = duckdb
        self._table, self._history = table, history
        self._place = f"DuckDB ({table})"
        self._path = self._search_path = ""
        self._connection: DuckDBPyConnection | None = None
        if isinstance(database, duckdb.DuckDBPyConnection):
            self._connection = database
            self._search_path = database.execute(sql.SEARCH_PATH).fetchall()[0][0]
        else:
            self._path = os.fspath(database)
            if self._path.endswith(".siteline"):
                # DuckDB would look for an extension that opens such a file.
                path = _refusals.shown(self._path)
                raise QueryError(
                    f"{path} is the file of a siteline.Store, not of DuckDB.",
                    hint="Name another file, such as plant.duckdb, or use siteline.Store(path).",
                )

    def _cursor(self) -> DuckDBPyConnection:
        """Return a connection for one call. Closing it rolls back an open transaction."""
        if self._connection is None:
            try:
                self._connection = self._duckdb.connect(self._path)
            except self._duckdb.IOException as error:
                if "set lock" in str(error) or "another process" in str(error):
                    path = _refusals.shown(self._path)
                    raise StoreBusy(f"Another process has opened {path}.") from error
                raise
        cursor = self._connection.cursor().execute("SET TimeZone = 'UTC'")
        return cursor.execute("SET search_path = $1", [self._search_path])

    def _run(
        self, *statements: str, page: Page | None = None, is_trial: bool = False, **values: Any
    ) -> Any:
        with self._cursor() as cursor:

            def run() -> Any:
                if page is not None:
                    cursor.register(f"{self._table}_page", page)
                cursor.begin()
                for one in statements:
                    used = {name: value for name, value in values.items() if f"${name}" in one}
                    cursor.execute(self._named(one), used)
                rows = cursor.fetchall()
                if not is_trial:
                    cursor.commit()
                return rows

            return _refusals.interruptible(run, cursor.interrupt)

    def _named(self, statement: str) -> str:
        return statement.replace('"points', f'"{self._table}')

    def _read(self, column: str, table: str, **keys: Any) -> Any:
        where = " AND ".join(f"{name} = ${name}" for name in keys)
        with self._errors():
            try:
                query = f'SELECT {column} FROM "points_{table}" WHERE {where}'
                return self._run(query, **keys)[0][0]
            except (self._duckdb.CatalogException, IndexError):
                return None  # there is no table, or no row

    @contextmanager
    def lock(self, feed: str) -> Iterator[None]:
        """Hold a feed during a sync."""
        with self._refusals(feed), _shared._guard:
            columns = self._run(sql.POINTS, 'DESCRIBE "points"')
            _shared.check_columns(self._table, [name for name, *_ in columns])
            path = self._run(sql.OTHERS)[0][0] or str(self._connection)
            for suffix, types in sql.TYPES.items():
                rows = self._run(f'DESCRIBE "points{suffix}"')
                found = {
                    name: (kind, null == "NO" and default is None)
                    for name, kind, null, _, default, _ in rows
                }
                _refusals.check_types(f"{self._table}{suffix}", found, types)
        with _shared.held_in_process(f"{os.path.realpath(path)}: {self._table}", feed):
            with self._refusals(feed):
                self._try(feed)
            yield

    def _try(self, feed: str) -> None:
        # With an empty page the statements fail before any request.
        values = dict[str, Any](feed=feed, state=b"", settled=[], history=self._history)
        values |= {"sequence": 0, "first_sequence": 0, "is_whole": True, "start": None, "end": None}
        self._run(sql.NO_PAGE, *sql.APPLY, is_trial=True, **values)

    @contextmanager
    def _refusals(self, feed: str) -> Iterator[None]:
        try:
            yield
        except self._duckdb.Error as error:
            raise _refusals.refused(self._place, feed, str(error)) from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._duckdb.Error as error:
            raise StoreError(f"{self._place}: {_refusals.cut(str(error))}") from error

    def state(self, feed: str) -> bytes | None:
        """See :meth:`StoreTarget.state`."""
        state: bytes | None = self._read("state", "states", feed=feed)
        return state

    def apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int, int]:
        """See :meth:`StoreTarget.apply`."""
        try:
            return self._apply(feed, page, state)
        except self._duckdb.Error as error:
            is_of_data = isinstance(error, self._duckdb.DataError | self._duckdb.IntegrityError)
            if is_of_data and page is not None:
                text = _refusals.cut(str(error))
                raise _refusals.unstorable(self._place, feed, text) from error
            if not is_of_data and _refusals.is_full(str(error)):
                raise _refusals.full(self._place, feed) from error
            raise _refusals.failed(self._place, feed, str(error)) from error

    def _apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int, int]:
        values = dict[str, Any](feed=feed, state=state, settled=_doors.of_state("settled", state))
        if page is None:
            self._run(sql.STATE, **values)
            return 0, 0, 0, 0
        for name in ("sequence", "first_sequence", "is_whole"):
            values[name] = getattr(page, name)
        for name in ("start", "end"):
            values[name] = getattr(page.query, name) if page.is_last else None
        rows = self._run(*sql.APPLY, page=page, history=self._history, **values)
        return _shared.counted(page, *rows[0])

    def changes(self, feed: str, since: int = 0, *, old: bool = False) -> DuckDBPyRelation:
        """Return the points that pages after ``since`` changed, as they are now.

        Args:
            feed: The name of the feed.
            since: The sequence of the last page that you have read, such as :meth:`offset`.
            old: Also return the replaced values (see ``history`` of the class).
        """
        if old and not self._history:
            raise ConfigError("changes(old=True) needs DuckDB(..., history=True).")
        query = self._named(sql.CHANGES.format(sql.OLD if old else ""))
        with self._errors():
            return self._cursor().sql(query, params={"feed": feed, "since": since})

    def _offset(self, consumer: str, feed: str) -> int | None:
        offset: int | None = self._read("sequence", "offsets", consumer=consumer, feed=feed)
        return offset

    def _set_offset(self, consumer: str, feed: str, sequence: int) -> None:
        with _shared._guard, self._errors():  # two at once would both insert a row
            self._run(sql.OFFSET, consumer=consumer, feed=feed, sequence=sequence)

    def close(self) -> None:
        """Close the file, so that others can use it; the next use opens it again."""
        if self._connection is not None and self._path:
            self._connection.close()
            self._connection = None
