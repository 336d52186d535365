"""Frames of a :class:`Catalogue`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from siteline._discovered import LEVELS
from siteline.frames import missing, text_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._display.protocols import SeriesInfo

__all__: list[str] = []

_TEXTS = (*(f"{level}_id" for level in LEVELS[:-1]), "tag_guid", "name", "unit", "label", "path")


def _columns(rows: Sequence[SeriesInfo]) -> dict[str, tuple[type, list[Any]]]:
    """Return the columns: the type of their values, and the values."""
    columns: dict[str, tuple[type, list[Any]]] = {
        name: (str, [getattr(row, name) for row in rows]) for name in _TEXTS
    }
    columns["listed"] = (bool, [row.listed for row in rows])
    for place, level in enumerate(LEVELS[:-1]):
        names = [row.names[place] for row in rows]
        if any(names):
            columns[f"{level}_name"] = (str, names)
    for member in dict.fromkeys(name for row in rows for name in row.members):
        name = member
        while name in columns:
            name += "_"
        columns[name] = _typed([row.members.get(member) for row in rows])
    return columns


def _typed(values: list[Any]) -> tuple[type, list[Any]]:
    """Return values of one type as they are, others as JSON text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and (kind := kinds.pop()) in (str, bool, float):
        return kind, values
    whole = all(
        type(value) is int and abs(value) < 1 << 63 for value in values if value is not None
    )
    if whole and any(value is not None for value in values):
        return int, values
    return str, [None if value is None else json.dumps(value) for value in values]


def to_pandas(rows: Sequence[SeriesInfo]) -> pd.DataFrame:
    """Build the pandas frame."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise missing(error, "pandas", "to_pandas()") from error.__cause__
    dtypes = {str: text_dtype(pd), bool: "boolean", int: "Int64", float: "float64"}
    columns = {
        name: pd.Series(values, dtype=dtypes[kind])
        for name, (kind, values) in _columns(rows).items()
    }
    columns["listed"] = columns["listed"].astype("bool")
    return pd.DataFrame(columns)


def to_polars(rows: Sequence[SeriesInfo]) -> pl.DataFrame:
    """Build the polars frame."""
    try:
        import polars as pl
    except ModuleNotFoundError as error:
        raise missing(error, "polars", "to_polars()") from error.__cause__
    kinds = {str: pl.String, bool: pl.Boolean, int: pl.Int64, float: pl.Float64}
    return pl.DataFrame(
        [pl.Series(name, values, kinds[kind]) for name, (kind, values) in _columns(rows).items()]
    )


def to_arrow(rows: Sequence[SeriesInfo]) -> pa.Table:
    """Build the ``pyarrow.Table``."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise missing(error, "pyarrow", "to_arrow()") from error.__cause__
    kinds = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    return pa.table(
        {name: pa.array(values, kinds[kind]) for name, (kind, values) in _columns(rows).items()}
    )
