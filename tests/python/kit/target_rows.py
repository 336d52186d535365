"""The points of a target and of a `siteline.Store` in one form, so that they can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    import siteline

    Key: TypeAlias = tuple[Any, ...]
    """The five ids and the timestamp."""
    Known: TypeAlias = tuple[tuple[Any, ...], bool]
    """The four values, and whether the point is flagged."""

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
KEY, VALUES = (*IDS, "timestamp"), ("value", "minimum", "maximum", "sample_count")
KNOWN = (*VALUES, "flagged")


def target_points(target: Any, feed: str) -> dict[Key, Known]:
    """What a target has of a feed, as its `changes(feed)` show it."""
    changes = _rows(target.changes(feed), KEY, VALUES, ("flagged",))
    return _unique((key, (values, flagged)) for key, values, (flagged,) in changes)


def target_changes(target: Any, feed: str, since: int) -> dict[Key, tuple[Known | None, Known]]:
    """What `changes(feed, since, old=True)` shows: of each point what was known, and what is."""
    old_names = tuple(f"old_{name}" for name in KNOWN)
    changes = _rows(target.changes(feed, since, old=True), KEY, KNOWN, old_names)
    return _unique((key, (_known(old), (new[:4], new[4]))) for key, new, old in changes)


def store_points(store: siteline.Store, feed: str) -> dict[Key, Known]:
    """What a store has of a feed, points of chains that have not ended included."""
    if feed not in store.feeds:
        return {}
    flagged = {key for (key,) in _rows(store.points(feed, flagged="only", unread="keep"), KEY)}
    points = _rows(store.points(feed, unread="keep"), KEY, VALUES)
    return _unique((key, (values, key in flagged)) for key, values in points)


def points_by_key(stream: Any) -> dict[Key, tuple[Any, ...]]:
    """The points of a stream: ids and timestamp to values."""
    return _unique(_rows(stream, KEY, VALUES))


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in one order, with times as Spark and as Sail give them and ids as plain text."""
    for name in table.schema.names:
        kind = pa.string() if name in IDS else pa.timestamp("us", "UTC")
        if name in KEY:
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table[name].cast(kind))
    return table.sort_by([(name, "ascending") for name in KEY]).combine_chunks().to_pylist()


def _known(row: tuple[Any, ...]) -> Known | None:
    """A point before it changed; `None` where it was not there."""
    if row[4] is not None:
        return row[:4], row[4]
    assert row == (None,) * 5, f"a point that was not there has old values: {row}"
    return None


def _rows(stream: Any, *groups: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """The rows of an Arrow stream, their columns in groups."""
    table = pa.RecordBatchReader.from_stream(stream).read_all()
    columns = {name: _column(table[name]) for group in groups for name in group}
    grouped = (zip(*(columns[name] for name in group), strict=True) for group in groups)
    return zip(*grouped, strict=True)


def _column(column: pa.ChunkedArray[Any]) -> list[Any]:
    """The values of a column. Arrow takes long to make a text or a time: each is made once."""
    encoded = column.unify_dictionaries().combine_chunks().dictionary_encode()
    values = [*encoded.dictionary.to_pylist(), None]
    return [values[-1 if index is None else index] for index in encoded.indices.to_pylist()]


def _unique(rows: Iterable[tuple[Any, ...]]) -> dict[Key, Any]:
    """Rows by their key; no point is there twice."""
    found: dict[Key, Any] = {}
    for key, row in rows:
        assert key not in found, f"{key} is there twice"
        found[key] = row
    return found
