"""Writes points as Parquet, by pyarrow or else by polars, a group of rows at a time."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from siteline import Table

    _Writer = Callable[[Table, Sequence[str], str], int]

__all__ = ["parquet_writer"]

# Rows of a group, at least, which is in memory as a whole. A batch of the core has some 65,000.
_GROUP = 50_000
# Bytes that are no room for the end of a file.
_LITTLE = 65_536


def parquet_writer() -> _Writer:
    """Return what writes points to a path, and gives their number.

    Raises :class:`ConfigError` where no package can write Parquet, so before any request.
    """
    from siteline.errors import ConfigError

    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        pass
    else:
        return _by_pyarrow
    try:
        from polars.io.plugins import register_io_source  # noqa: F401
    except ImportError:
        old = " (the polars here is too old)" if sys.modules.get("polars") else ""
        raise ConfigError(
            f"Parquet needs pyarrow or polars, and neither is installed{old}.",
            hint="pip install 'siteline[pyarrow]', or write --format csv, jsonl or arrow, which "
            "need no package.",
        ) from None
    return _by_polars


def _by_pyarrow(points: Table, columns: Sequence[str], path: str) -> int:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    # Arrow's own allocators keep what was freed.
    pa.set_memory_pool(pa.system_memory_pool())
    batches = pa.RecordBatchReader.from_stream(points)
    count = 0
    schema = batches.schema.empty_table().select(list(columns)).schema
    # Without Arrow's schema in the file the ids are read back as text, whoever wrote it.
    with ParquetWriter(path, schema, store_schema=False) as writer:
        for group in _groups(batches):
            writer.write_table(pa.Table.from_batches(group).select(schema.names))
            count += sum(batch.num_rows for batch in group)
    return count


def _groups(batches: Any) -> Iterator[list[Any]]:
    group: list[Any] = []
    for batch in batches:
        group.append(batch)
        if sum(batch.num_rows for batch in group) >= _GROUP:
            yield group
            group = []
    if group:
        yield group


def _by_polars(points: Table, columns: Sequence[str], path: str) -> int:
    import polars as pl
    from polars.io.plugins import register_io_source

    from siteline.cli.writers import rows_of

    schema = _polars_schema(pl, columns)
    rows = iter(rows_of(points, columns))
    count = 0

    def frames(*_pushed_down: object) -> Iterator[pl.DataFrame]:
        nonlocal count
        while some := list(islice(rows, _GROUP)):
            count += len(some)
            yield _polars_frame(schema, some)

    # polars would need the whole frame in memory to write the stream itself.
    try:
        register_io_source(frames, schema=schema).sink_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise _of_system(error, path) from error
    return count


def _of_system(error: Exception, path: str) -> Exception:
    """Return the error of the system, such as a full disk, that polars tells in its text or not."""
    found = re.search(r"\(os error (\d+)\)", str(error))
    if found is None:
        # Where the end of the file fails it has no number.
        is_full = shutil.disk_usage(os.path.dirname(path) or ".").free < _LITTLE
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path) if is_full else error
    number = int(found[1])
    if sys.platform == "win32":
        return OSError(None, str(error), path, number)
    return OSError(number, os.strerror(number), path)


def _polars_schema(pl: Any, columns: Sequence[str]) -> dict[str, Any]:
    known = {
        "timestamp": pl.Datetime("us", "UTC"),
        "value": pl.Float64,
        "minimum": pl.Float64,
        "maximum": pl.Float64,
        "sample_count": pl.Int64,
    }
    return {name: known.get(name, pl.String) for name in columns}


def _polars_frame(schema: dict[str, Any], rows: list[Sequence[Any]]) -> pl.DataFrame:
    from datetime import UTC, datetime, timedelta

    import polars as pl

    epoch, microsecond = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
    made: dict[str, pl.Series] = {}
    for (name, kind), values in zip(schema.items(), zip(*rows, strict=True), strict=True):
        if name == "timestamp":
            # From datetimes it takes ten times as long.
            counts = [(at - epoch) // microsecond for at in values]
            made[name] = pl.Series(name, counts, dtype=pl.Int64).cast(kind)
        else:
            made[name] = pl.Series(name, values, dtype=kind)
    return pl.DataFrame(made)
