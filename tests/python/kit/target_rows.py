"""Returns the points of a target and of a `siteline.Store` in one form for comparison."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    import siteline

    Key: TypeAlias = tuple[Any, ...]
    """The five ids and the timestamp."""
    Known: TypeAlias = tuple[tuple[Any, ...], bool]
    """The four values and the flag."""

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
KEY, VALUES = (*IDS, "timestamp"), ("value", "minimum", "maximum", "sample_count")
KNOWN = (*VALUES, "withdrawn")


def hour(number: float) -> datetime:
    """Returns a time after the midnight of `Rows`."""
    return datetime(2026, 11, 20, tzinfo=UTC) + timedelta(hours=number)


class Rows:
    """A page of rows (tag, hour, value) in batches of two rows."""

    def __init__(
        self, rows: list[tuple[Any, ...]], sequence: int, first: int = 0, *, is_last: bool = True
    ) -> None:
        self.rows, self.sequence, self.is_last = rows, sequence, is_last
        self.first_sequence = first or sequence
        self.is_whole = is_last and self.first_sequence == sequence
        self.query = SimpleNamespace(start=hour(0), end=hour(24))

    def __len__(self) -> int:
        return len(self.rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        tags, hours, values = zip(*self.rows, strict=True) if self.rows else ((), (), ())
        nulls: Any = [None] * len(tags)
        text: Any = pa.dictionary(pa.int32(), pa.string())
        columns: list[Any] = [
            pa.array(each, text) for each in (["ü"] * len(tags), *[nulls] * 3, tags)
        ]
        columns += [pa.array(list(map(hour, hours)), pa.timestamp("us", "UTC"))]
        columns += [pa.array(values, pa.float64())] * 3 + [pa.array(nulls, pa.int64())]
        table = pa.table(columns, [*KEY, *VALUES])
        # Duplicates in different batches must be found too.
        pieces: Any = pa.Table.from_batches(table.to_batches(max_chunksize=2), table.schema)
        return pieces.__arrow_c_stream__(requested_schema)


def target_points(target: Any, feed: str) -> dict[Key, Known]:
    """Returns the points of a feed from `changes(feed)` of a target."""
    changes = _rows(target.changes(feed), KEY, VALUES, ("withdrawn",))
    return _unique((key, (values, withdrawn)) for key, values, (withdrawn,) in changes)


def target_changes(target: Any, feed: str, since: int) -> dict[Key, tuple[Known | None, Known]]:
    """Returns the old and the new state of each point in `changes(feed, since, old=True)`."""
    old_names = tuple(f"old_{name}" for name in KNOWN)
    changes = _rows(target.changes(feed, since, old=True), KEY, KNOWN, old_names)
    return _unique((key, (_known(old), (new[:4], new[4]))) for key, new, old in changes)


def store_points(store: siteline.Store, feed: str) -> dict[Key, Known]:
    """Returns the points of a feed in a store, including points of incomplete chains."""
    if feed not in store.feeds:
        return {}
    withdrawn = {key for (key,) in _rows(store.read(feed, withdrawn="only", unread="keep"), KEY)}
    points = _rows(store.read(feed, unread="keep"), KEY, VALUES)
    return _unique((key, (values, key in withdrawn)) for key, values in points)


def points_by_key(stream: Any) -> dict[Key, tuple[Any, ...]]:
    """Returns the points of a stream: ids and timestamp -> values."""
    return _unique(_rows(stream, KEY, VALUES))


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Returns sorted rows with plain text ids, and with the time type of Spark and Sail."""
    for name in table.schema.names:
        kind = pa.string() if name in IDS else pa.timestamp("us", "UTC")
        if name in KEY:
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table[name].cast(kind))
    return table.sort_by([(name, "ascending") for name in KEY]).combine_chunks().to_pylist()


def _known(row: tuple[Any, ...]) -> Known | None:
    """Returns the old state of a point, or `None` if the point is new."""
    if row[4] is not None:
        return row[:4], row[4]
    assert row == (None,) * 5, f"a new point has old values: {row}"
    return None


def _rows(stream: Any, *groups: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """Returns the rows of an Arrow stream with their columns in groups."""
    table = pa.RecordBatchReader.from_stream(stream).read_all()
    columns = {name: _column(table[name]) for group in groups for name in group}
    grouped = (zip(*(columns[name] for name in group), strict=True) for group in groups)
    return zip(*grouped, strict=True)


def _column(column: pa.ChunkedArray[Any]) -> list[Any]:
    """Returns the values of a column. Converts each distinct value once, because Arrow is slow."""
    encoded = column.unify_dictionaries().combine_chunks().dictionary_encode()
    values = [*encoded.dictionary.to_pylist(), None]
    return [values[-1 if index is None else index] for index in encoded.indices.to_pylist()]


def _unique(rows: Iterable[tuple[Any, ...]]) -> dict[Key, Any]:
    """Returns the rows by key, and fails if a key is there twice."""
    found: dict[Key, Any] = {}
    for key, row in rows:
        assert key not in found, f"{key} is there twice"
        found[key] = row
    return found
