"""The rows for a destination."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from siteline.page import Page

    _Ids: TypeAlias = tuple[str | None, ...]

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
VALUES = ("value", "minimum", "maximum", "sample_count")
KEY = ("series", "timestamp")

_TYPES = {"text": pa.string(), "timestamp": pa.timestamp("us", "UTC")}
_TYPES |= {"double": pa.float64(), "bigint": pa.int64()}

COLUMNS: dict[str, dict[str, Any]] = {
    "feed": {"data_type": "text", "nullable": False},
    **{name: {"data_type": "text", "nullable": True} for name in IDS},
    "timestamp": {"data_type": "timestamp", "precision": 6, "timezone": True, "nullable": False},
    **{name: {"data_type": "double", "nullable": True} for name in VALUES[:3]},
    "sample_count": {"data_type": "bigint", "nullable": True},
    # If a load has several rows of a point, a destination keeps the row of the newest page.
    "sequence": {"data_type": "bigint", "nullable": False, "dedup_sort": "desc"},
    "series": {"data_type": "text", "precision": 32, "nullable": False},
}
"""The hints for dlt, in the order of the columns."""

SCHEMA = pa.schema(
    pa.field(name, _TYPES[hints["data_type"]], nullable=hints["nullable"])
    for name, hints in COLUMNS.items()
)


def series_key(feed: str, ids: Sequence[str | None]) -> str:
    """Return 32 hexadecimal digits for a series of a feed.

    Ids may be null, and SQL's nulls are not equal: with plain ids as the key, each load would
    insert such a point again.
    """
    text = json.dumps([feed, *ids], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def rows_of(page: Page) -> pa.Table:
    given: Any = page.to_arrow().combine_chunks()
    feed = page.feed or ""
    columns = {name: given[name] for name in (*IDS, "timestamp", *VALUES)}
    codes, series = _series(given)
    keys = pa.array([series_key(feed, ids) for ids in series], pa.string())
    columns["series"] = keys.take(codes)
    columns["feed"] = pa.repeat(pa.scalar(feed, pa.string()), len(given))
    columns["sequence"] = pa.repeat(pa.scalar(page.sequence, pa.int64()), len(given))
    for name in IDS:
        # Some formats of dlt do not support dictionaries.
        columns[name] = columns[name].cast(pa.string())
    return newest(pa.table([columns[name] for name in COLUMNS], schema=SCHEMA))


def newest(rows: pa.Table) -> pa.Table:
    """Return the last row of each point."""
    keys = list(KEY)
    numbered = rows.select(keys).append_column("row", pa.array(range(len(rows)), pa.int64()))
    last = numbered.group_by(keys, use_threads=False).aggregate([("row", "max")])["row_max"]
    return rows if len(last) == len(rows) else rows.take(last)


def _series(given: Any) -> tuple[Any, list[_Ids]]:
    """Return the number of each row's series, and the ids of the series."""
    codes: Any = pa.repeat(pa.scalar(0, pa.int64()), len(given))
    series: list[_Ids] = [()]
    for name in IDS:
        column = given[name].chunk(0)
        values = [*column.dictionary.to_pylist(), None]
        indices = pc.fill_null(column.indices.cast(pa.int64()), len(values) - 1)
        # Numbered again after each id, so no number exceeds the square of the rows.
        both = pc.add(pc.multiply(codes, len(values)), indices).dictionary_encode()
        found = (divmod(one, len(values)) for one in both.dictionary.to_pylist())
        series = [(*series[before], values[index]) for before, index in found]
        codes = both.indices.cast(pa.int64())
    return codes, series
