"""The points of a partition as record batches for the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from siteline.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

    from siteline.client import Client
    from siteline.spark._partitions import Part

DDL = (
    "site_id string, line_id string, machine_id string, device_id string, tag_guid string, "
    "timestamp timestamp, value double, minimum double, maximum double, sample_count bigint"
)
_NAMES = [column.split()[0] for column in DDL.split(", ")]


def has_zone(schema: Any) -> bool:
    """Return whether an engine's timestamps have a zone. Reject other columns."""
    if list(schema.names) != _NAMES:
        raise QueryError(
            "The schema of siteline is fixed, and another one was given.",
            hint="Leave schema() out, and select() the columns that you want.",
        )
    if hasattr(schema, "types"):  # Sail passes an Arrow schema with naive timestamps
        return schema.types[5].tz is not None
    return type(schema["timestamp"].dataType).__name__ == "TimestampType"


def _schema(zone: bool) -> pa.Schema:
    import pyarrow as pa

    ids = [(name, pa.string()) for name in _NAMES[:5]]
    values = [(name, pa.float64()) for name in _NAMES[6:9]]
    time = ("timestamp", pa.timestamp("us", "UTC" if zone else None))
    return pa.schema([*ids, time, *values, ("sample_count", pa.int64())])


def read(
    client: Client, query: dict[str, Any], part: Part, zone: bool, max_pages: int | None
) -> Iterator[pa.RecordBatch]:
    """Read a part to its end, then yield its points in batches of ``page_size``.

    A later page may revise a point of an earlier one, and a batch cannot be recalled. So a task
    holds all points of its partition.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    scan = client.scan(
        **{**query, "start": part.start, "end": part.end}, labels=False, max_pages=max_pages
    )
    points = scan.to_arrow()
    del scan
    if not part.is_last:
        end = pa.scalar(part.end, points["timestamp"].type)
        # If the service includes `end`, the next partition has these points too.
        points = points.filter(pc.less(points["timestamp"], end))
    schema = _schema(zone)
    for batch in points.to_batches(max_chunksize=query["page_size"]):
        if batch.num_rows:
            yield batch.cast(schema)
