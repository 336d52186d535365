"""The columns of a pandas frame for ``Sandbox.load``, with NumPy alone.

pandas' own Arrow export needs pyarrow.
"""

from __future__ import annotations

import sys
from typing import Any

from siteline.errors import ConfigError
from siteline.frames import Record

__all__: list[str] = []


def columns(frame: object) -> list[tuple[str, str, Any]] | None:
    """Give the name, kind and values of each column to load; ``None`` for no pandas frame.

    The kinds are ``"double"`` (an array of float64, NaN where it is missing), ``"time"`` (an array
    of int64: microseconds since the Unix epoch, NumPy's NaT where it is missing), ``"text"`` (an
    array of int64 with the place of each row's text, -1 where it is missing, and the list of texts)
    and ``"object"`` (a list of what should be times, ``None`` where it is missing).
    """
    pd = sys.modules.get("pandas")
    if pd is None or not isinstance(frame, pd.DataFrame):
        return None
    readers = {
        **dict.fromkeys(Record._fields[:5], _texts),
        **dict.fromkeys(("timestamp", "available_at"), _times),
        **dict.fromkeys(("value", "minimum", "maximum", "sample_count"), _doubles),
    }
    found = []
    for name, read in readers.items():
        if name in frame.columns:
            column = frame[name]
            if isinstance(column, pd.DataFrame):
                raise ConfigError(f'The frame has two columns "{name}".')
            found.append((name, *read(name, column)))
    if "timestamp" not in frame.columns and str(frame.index.dtype).startswith("datetime64"):
        raise ConfigError(
            'The frame has no column "timestamp". Its index holds times: '
            '.rename_axis("timestamp").reset_index() makes them a column.'
        )
    return found


def _texts(name: str, column: Any) -> tuple[str, tuple[Any, list[str]]]:
    codes, texts = column.factorize()
    return "text", (codes.astype("int64", copy=False), [str(text) for text in texts.tolist()])


def _doubles(name: str, column: Any) -> tuple[str, Any]:
    try:
        return "double", column.to_numpy(dtype="float64", na_value=float("nan"))
    except Exception as error:
        raise ConfigError(f'The column "{name}" does not hold numbers: {error}') from error


def _times(name: str, column: Any) -> tuple[str, Any]:
    if not str(column.dtype).startswith("datetime64"):
        pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
        return "object", [None if missing else value for value, missing in pairs]
    if column.dt.tz is None:
        raise ConfigError(
            f'The column "{name}" holds naive times: nobody knows which zone they mean. '
            'Use .dt.tz_localize("UTC") or another zone.'
        )
    # NumPy's own type: UTC without saying so, whatever the unit was.
    naive = column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    return "time", naive.astype("datetime64[us]").view("int64")
