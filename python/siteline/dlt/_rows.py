"""The rows that a destination gets."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteline.page import Page

    _Ids: TypeAlias = tuple[str | None, ...]

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
VALUES = ("value", "minimum", "maximum", "sample_count")
KEY = ("series", "timestamp")

_TYPES = {
    "text": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "double": pa.float64(),
    "bigint": pa.int64(),
}

COLUMNS: dict[str, dict[str, Any]] = {
    "feed": {"data_type": "text", "nullable": False},
    **{name: {"data_type": "text", "nullable": True} for name in IDS},
    "timestamp": {"data_type": "timestamp", "precision": 6, "timezone": True, "nullable": False},
    **{name: {"data_type": "double", "nullable": True} for name in VALUES[:3]},
    "sample_count": {"data_type": "bigint", "nullable": True},
    # Of several rows of a point in one load a destination keeps the one of the newest page.
    "sequence": {"data_type": "bigint", "nullable": False, "dedup_sort": "desc"},
    "series": {"data_type": "text", "precision": 32, "nullable": False},
}
"""The hints that dlt is given; the columns have this order."""

SCHEMA = pa.schema(
    [
        pa.field(name, _TYPES[hints["data_type"]], nullable=hints["nullable"])
        for name, hints in COLUMNS.items()
    ]
)


def series_key(feed: str, ids: Sequence[str | None]) -> str:
    """Return 32 hexadecimal digits for a series of a feed.

    An id may be null, and for SQL no null equals another one: a key of the ids themselves would let
    a point of such a series in again with each load.
    """
    text = json.dumps([feed, *ids], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def rows_of(page: Page) -> pa.Table:
    """Return the points of a page that has some, each once."""
    given: Any = page.to_arrow().combine_chunks()
    feed = page.feed or ""
    columns = {name: given[name] for name in (*IDS, "timestamp", *VALUES)}
    codes, series = _series(given)
    keys = pa.array([series_key(feed, ids) for ids in series], pa.string())
    columns["series"] = keys.take(codes)
    columns["feed"] = pa.repeat(pa.scalar(feed, pa.string()), len(given))
    columns["sequence"] = pa.repeat(pa.scalar(page.sequence, pa.int64()), len(given))
    for name in IDS:
        # Plain text: not all formats of dlt know dictionaries.
        columns[name] = columns[name].cast(pa.string())
    return newest(pa.table([columns[name] for name in COLUMNS], schema=SCHEMA))


def newest(rows: pa.Table) -> pa.Table:
    """Return each point once: of its rows the last."""
    keys = list(KEY)
    numbered = rows.select(keys).append_column("row", pa.array(range(len(rows)), pa.int64()))
    last = numbered.group_by(keys, use_threads=False).aggregate([("row", "max")])["row_max"]
    return rows if len(last) == len(rows) else rows.take(last)


def _series(given: Any) -> tuple[Any, list[_Ids]]:
    """Return for each row which series it is of, and the ids of these."""
    codes: Any = pa.repeat(pa.scalar(0, pa.int64()), len(given))
    series: list[_Ids] = [()]
    for name in IDS:
        column = given[name].chunk(0)
        values = [*column.dictionary.to_pylist(), None]
        indices = pc.fill_null(column.indices.cast(pa.int64()), len(values) - 1)
        # Numbered anew at each id, so that no number is greater than the rows are many, squared.
        both = pc.add(pc.multiply(codes, len(values)), indices).dictionary_encode()
        found = (divmod(one, len(values)) for one in both.dictionary.to_pylist())
        series = [(*series[before], values[index]) for before, index in found]
        codes = both.indices.cast(pa.int64())
    return codes, series
