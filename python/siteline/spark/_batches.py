"""The columns of the record batches for the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

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


def schema_of(zone: bool) -> pa.Schema:
    import pyarrow as pa

    ids = [(name, pa.string()) for name in _NAMES[:5]]
    values = [(name, pa.float64()) for name in _NAMES[6:9]]
    time = ("timestamp", pa.timestamp("us", "UTC" if zone else None))
    return pa.schema([*ids, time, *values, ("sample_count", pa.int64())])
