"""Reads a CSV or Parquet file with polars or pandas."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from siteline.errors import ConfigError

# An id such as 007 is text.
_IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")

_HEAD = 65_536


def read_table(path: str, *, utc: bool) -> Any:
    """Returns a frame for ``Sandbox.load``; with ``utc``, times without a zone are UTC."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    is_parquet = head.startswith(b"PAR1")
    if not is_parquet and b"\0" in head:
        # polars aborts the process for a NUL in a column name, as in UTF-16.
        raise ConfigError(
            f"{path}: it cannot be read as CSV: it contains NUL bytes, so it is not UTF-8."
        )
    reader = _reader()
    try:
        return reader(path, is_parquet, utc)
    except OSError:
        raise
    except Exception as error:
        kind = "Parquet" if is_parquet else "CSV"
        told = str(error).strip().partition("\n")[0]
        raise ConfigError(f"{path}: it cannot be read as {kind}: {told}") from error


def _reader() -> Callable[[str, bool, bool], Any]:
    for reader, package in ((_polars, "polars"), (_pandas, "pandas")):
        if find_spec(package) is not None:
            return reader
    raise ConfigError(
        "--data needs polars or pandas, and neither is installed.",
        hint="pip install 'siteline[polars]'",
    )


def _polars(path: str, is_parquet: bool, utc: bool) -> Any:
    import polars as pl

    if is_parquet:
        frame = pl.read_parquet(path)
    else:
        frame = pl.read_csv(path, schema_overrides=dict.fromkeys(_IDS, pl.String))
    kind = frame.schema.get("timestamp")
    if not utc or kind is None:
        return frame
    times = pl.col("timestamp")
    if isinstance(kind, pl.String):
        return frame.with_columns(times.str.to_datetime(time_unit="us", time_zone="UTC"))
    if isinstance(kind, pl.Datetime) and kind.time_zone is None:
        return frame.with_columns(times.dt.replace_time_zone("UTC"))
    return frame


def _pandas(path: str, is_parquet: bool, utc: bool) -> Any:
    import pandas as pd

    if is_parquet:
        frame = pd.read_parquet(path)
    else:
        frame = pd.read_csv(path, dtype=dict.fromkeys(_IDS, "str"))
    if utc and "timestamp" in frame:
        frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True)
    return frame
