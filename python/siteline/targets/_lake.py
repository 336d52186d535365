"""The tables of :class:`Delta`, by deltalake and arro3-core, without pyarrow."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from functools import partial
from typing import Any, TypeVar

from siteline.errors import QueryError
from siteline.frames import needing
from siteline.targets import _refusals
from siteline.targets._shared import COLUMNS, IDS, VALUES, check_columns

_Result = TypeVar("_Result")
_TYPES = dict.fromkeys(COLUMNS, "string") | dict.fromkeys(VALUES[:3], "double")
_TYPES |= dict.fromkeys(("sample_count", "sequence", "seen"), "long")
_TYPES |= {"timestamp": "timestamp", "withdrawn": "boolean", "day": "date"}
_STATE_TYPES = {"feed": "string", "number": "long", "state": "binary"}
_MARKS = ("feed", "sequence", "seen", "withdrawn")
_DIVISION = ["feed", "day"]
_EPOCH = date(1970, 1, 1).toordinal()
_FEED, _SEQUENCE = "siteline.feed", "siteline.sequence"
SAME = " and ".join(f"(t.{name} is not distinct from s.{name})" for name in (*IDS, "timestamp"))
"""Matches points in ``t`` and ``s``; null equals null. With an ``=`` among these conditions
DataFusion compares all pairs of rows, and without brackets it parses them in another order."""
_UPDATE = {name: f"coalesce(s.{name}, t.{name})" for name in ("sequence", "seen")}
_UPDATE |= {name: f"s.{name}" for name in (*VALUES, "withdrawn")}


class Lake:
    """A Delta table of points at a path or URI, and its further tables with a suffix."""

    def __init__(self, path: str | os.PathLike[str], options: dict[str, str] | None) -> None:
        with needing("deltalake", "siteline.targets.Delta", "delta"):
            import arro3.core
            import deltalake
            from deltalake.exceptions import CommitFailedError, DeltaError
        self._lake: Any = deltalake
        self._arrow: Any = arro3.core
        self._conflict: type[Exception] = CommitFailedError
        self.Error: type[Exception] = DeltaError
        path = os.fspath(path).rstrip("/")
        self.path = path if "://" in path else os.path.abspath(path)
        self._options = options

    def make(self) -> Any:
        """Open the table of points. Create it if it is missing; reject other columns."""
        schema = self._lake.Schema([self._lake.Field(*of) for of in _TYPES.items()])
        keywords = {"mode": "ignore", "partition_by": _DIVISION, "storage_options": self._options}
        # Another thread or process may make the table at the same time.
        table = self.retried(partial(self._lake.DeltaTable.create, self.path, schema, **keywords))
        divided = table.metadata().partition_columns
        check_columns(f"The partition of {self.path}", divided, _DIVISION)
        return table

    def try_folder(self) -> None:
        """Write a temporary file to each folder of a local table."""
        if "://" in self.path:
            return
        # A trial commit would add a file that nothing removes.
        for folder in (self.path, f"{self.path}/_delta_log", f"{self.path}_states/_delta_log"):
            if os.path.isdir(folder):
                with tempfile.TemporaryFile(dir=folder) as file:
                    file.write(b"-" * 4096)

    def check_types(self) -> None:
        tables = {"": _TYPES, "_states": _STATE_TYPES}
        for suffix in filter(self.exists, tables):
            fields = self.open(suffix).schema().fields
            found = {one.name: (getattr(one.type, "type", "?"), not one.nullable) for one in fields}
            _refusals.check_types(self.shown + suffix, found, tables[suffix])

    @property
    def shown(self) -> str:
        return _refusals.shown(self.path)

    def exists(self, suffix: str = "") -> bool:
        return bool(self._lake.DeltaTable.is_deltatable(self.path + suffix, self._options))

    def open(self, suffix: str = "", version: int | None = None) -> Any:
        return self._lake.DeltaTable(self.path + suffix, version, self._options)

    def read(self, sql: str, **tables: Any) -> Any:
        query = self._lake.QueryBuilder()
        for name, table in tables.items():
            query.register(name, table)
        return query.execute(sql)

    def marked(self, stream: Any, *values: str | int | None) -> list[Any]:
        """Return the batches of a stream with these values of ``_MARKS`` in each row."""
        batches = []
        for batch in self._batches(stream):
            columns = dict(zip(batch.column_names, batch.columns, strict=True))
            columns |= self._columns(batch.num_rows, dict(zip(_MARKS, values, strict=True)))
            columns["day"] = batch["timestamp"].cast(self._arrow.DataType.date32())
            batches.append(self._arrow.RecordBatch.from_pydict(columns))
        return batches

    def days(self, stream: Any) -> set[date]:
        days, types = set[int](), self._arrow.DataType
        for batch in self._batches(stream):
            column = batch["timestamp"].cast(types.date32()).cast(types.int32())
            days.update(memoryview(column.cast(types.int64()).buffer()).cast("q"))
        return {date.fromordinal(_EPOCH + day) for day in days}

    def version(self, table: Any, feed: str, consumer: str | None = None) -> int:
        """Return the version of a feed's or consumer's last transaction; 0 without one."""
        return table.transaction_version(_app(feed, consumer)) or 0

    def commit(
        self, version: int, feed: str, consumer: str | None = None, *, sequence: int | None = None
    ) -> dict[str, Any]:
        """Return the argument that makes a write a transaction of the page ``sequence``."""
        notes = {} if sequence is None else {_FEED: feed, _SEQUENCE: str(sequence)}
        transactions = [self._lake.Transaction(_app(feed, consumer), version)]
        commit = self._lake.CommitProperties(notes, app_transactions=transactions)
        return {"commit_properties": commit}

    def as_of(self, feed: str, sequence: int) -> Any:
        for commit in self.open().history():
            if commit.get(_FEED) == feed and int(commit[_SEQUENCE]) <= sequence:
                return self.open(version=commit["version"])
        raise QueryError(f"The Delta log no longer has the version of {feed!r} at {sequence}.")

    def append(self, table: Any, rows: list[Any], commit: Mapping[str, Any]) -> None:
        """Append batches. Without batches it still commits."""
        schema = rows[0].schema if rows else table.schema().to_arrow()
        source = self._arrow.Table.from_batches(rows, schema=schema)
        self._lake.write_deltalake(table, source, mode="append", **commit)

    def merge(self, table: Any, feed: str, rows: list[Any], commit: Mapping[str, Any]) -> None:
        """Update points of a feed, and insert others; a null sequence or ``seen`` changes none."""
        days = sorted({str(day) for batch in rows for day in self.days(batch)})
        # With literals Delta skips the files of other feeds and days.
        on = f"t.{equals('feed', feed)} and t.day in ({str(days)[1:-1]}) and {SAME}"
        source = self._arrow.Table.from_batches(rows)
        merge = table.merge(source, on, "s", "t", streamed_exec=False, **commit)
        merge.when_matched_update(_UPDATE).when_not_matched_insert_all().execute()

    def put(self, suffix: str, **values: object) -> None:
        """Append a row to a further table. Create the table if it is missing."""
        row = self._arrow.Table.from_pydict(self._columns(1, values))
        options = {"mode": "append", "storage_options": self._options}
        self._lake.write_deltalake(self.path + suffix, row, **options)

    def retried(self, write: Callable[[], _Result]) -> _Result:
        """Retry a write nine times if another commit changed the same files."""
        for _ in range(9):
            with suppress(self._conflict):
                return write()
        return write()

    def _batches(self, stream: Any) -> Iterator[Any]:
        return (of for of in self._arrow.RecordBatchReader.from_arrow(stream) if of.num_rows)

    def _columns(self, rows: int, values: Mapping[str, object]) -> dict[str, Any]:
        kinds = {str: "string", bytes: "binary", bool: "bool"}
        zeros = self._arrow.Array.from_buffer(memoryview(bytes(8 * rows)).cast("q"))
        columns = {}
        for name, value in values.items():
            kind = getattr(self._arrow.DataType, kinds.get(type(value), "int64"))()
            columns[name] = self._arrow.Array([value], kind).take(zeros)
        return columns


def _app(feed: str, consumer: str | None) -> str:
    return f"siteline:{feed}" if consumer is None else f"siteline offset:{consumer!r}:{feed}"


def equals(name: str, value: str) -> str:
    return f"{name} = '" + value.replace("'", "''") + "'"
