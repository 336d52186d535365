"""Reads the columns of a pandas frame for ``Sandbox.load`` with NumPy.

The Arrow export of pandas would need pyarrow.
"""

from __future__ import annotations

import sys
from datetime import UTC
from typing import Any

from siteline._arguments import nanoseconds
from siteline._arrow_check import check_column
from siteline._records.series import Record
from siteline.errors import ConfigError

_NAMES = ("site_name", "line_name", "machine_name", "device_name", "name", "unit")


def columns(frame: object) -> list[tuple[str, str, Any]] | None:
    """Return the name, kind and values of each column; ``None`` for anything but a pandas frame.

    The kinds are ``"double"`` (an array of float64, NaN for missing), ``"time"`` (an array of
    int64: microseconds since the Unix epoch, NumPy's NaT for missing) and ``"text"`` (an array of
    int64 with the index of each row's text, -1 for missing, and the list of texts).
    """
    pd = sys.modules.get("pandas")
    if pd is None or not isinstance(frame, pd.DataFrame):
        return None
    readers = {
        **dict.fromkeys((*Record._fields[:5], *_NAMES), _texts),
        **dict.fromkeys(("timestamp", "available_at"), _times),
        **dict.fromkeys(("value", "minimum", "maximum", "sample_count"), _doubles),
    }
    found = []
    for name, read in readers.items():
        if name in frame.columns:
            column = frame[name]
            if isinstance(column, pd.DataFrame):
                raise ConfigError(f'The frame has two columns "{name}".')
            try:
                check_column(column)
            except ValueError as error:
                raise ConfigError(f'The column "{name}" is broken: {error}') from None
            found.append((name, *read(name, column)))
    if "timestamp" not in frame.columns and str(frame.index.dtype).startswith("datetime64"):
        raise ConfigError(
            'The frame has no column "timestamp", but its index has times: '
            '.rename_axis("timestamp").reset_index() makes the index a column.'
        )
    return found


def _texts(name: str, column: Any) -> tuple[str, tuple[Any, list[str]]]:
    codes, texts = column.factorize()
    return "text", (codes.astype("int64", copy=False), [str(text) for text in texts.tolist()])


def _iso_text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        nanoseconds(value)
    except ValueError:
        kind = type(value).__name__
        raise ConfigError(
            f'The column "{name}" holds a {kind}, not a time with a zone. Use '
            'pd.to_datetime(..., utc=True), for epoch numbers with unit="s" or "ms".'
        ) from None
    return str(value.astimezone(UTC).isoformat())


def _doubles(name: str, column: Any) -> tuple[str, Any]:
    try:
        return "double", column.to_numpy(dtype="float64", na_value=float("nan"))
    except Exception as error:
        raise ConfigError(f'The column "{name}" does not hold numbers: {error}') from error


def _times(name: str, column: Any) -> tuple[str, Any]:
    if not str(column.dtype).startswith("datetime64"):
        texts = column.map(lambda value: _iso_text(name, value), na_action="ignore")
        return _texts(name, texts)
    if column.dt.tz is None:
        raise ConfigError(
            f'The column "{name}" holds naive times, whose zone is unknown. '
            'Use .dt.tz_localize("UTC") or another zone.'
        )
    # NumPy's type has no zone: these are UTC. astype() converts any unit.
    naive = column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    return "time", naive.astype("datetime64[us]").view("int64")
