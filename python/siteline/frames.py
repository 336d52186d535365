"""DataFrames from the core's columns, without pyarrow.

NumPy reads the core's memory. pandas 3 and later share its numbers and timestamps, and copy a
column when it is written to; for pandas 2 they are copied once, one column after the other. pandas
and polars are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from siteline._core import Scan
from siteline._records.series import Record
from siteline._times import iso
from siteline._zero_copy import can_share, share, timestamps

if TYPE_CHECKING:
    from types import ModuleType

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._core import Wide

    _Ids = Literal["str", "category"]

__all__ = ["to_arrow", "to_pandas", "to_polars"]


class _Streamed(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class _Columns(_Streamed, Protocol):
    def _columns(self) -> list[tuple[Any, ...]]: ...
    def _provenance(self) -> Mapping[str, Any]: ...


def to_pandas(source: _Columns | Scan, *, ids: _Ids = "str", tz: str | None = None) -> pd.DataFrame:
    """Build the long frame: ten columns, one row for each point.

    The ids are ``str`` (or categories: ``ids="category"`` is faster and smaller), ``timestamp`` is
    ``datetime64[us, UTC]`` (or in the zone ``tz``), ``value``, ``minimum`` and ``maximum`` are
    ``float64`` with NaN for null, ``sample_count`` is ``Int64`` with ``<NA>``; the dtypes are the
    same for an empty result.
    Under pandas 3, numbers and timestamps are not copied: pandas copies a column when it is first
    written to. Writing to the read-only array itself
    (``column.array[0] = 1``) raises ``ValueError``.
    ``frame.attrs["siteline"]`` is a dict with the origin of the data. Its times are ISO text, so
    that ``to_parquet()`` keeps it.
    """
    _check_ids(ids)
    try:
        import numpy as np
        import pandas as pd
    except ModuleNotFoundError as error:
        raise missing(error, "pandas", "to_pandas()") from error.__cause__
    if isinstance(source, Scan):
        source = source.collect()
    given = source._columns()
    shared = can_share(pd)
    columns = {}
    while given:
        # Taken out, so that a column that is copied is freed before the next one is.
        name, kind, *payload = given.pop(0)
        if kind == "timestamp":
            columns[name] = _pandas_times(pd, np.asarray(payload[0]), tz or payload[1], shared)
        else:
            columns[name] = _pandas_column(pd, kind, payload, ids, shared)
    frame = pd.DataFrame(columns, copy=False)
    if shared:
        share(frame)
    frame.attrs["siteline"] = _plain(source._provenance())
    return frame


def _plain(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Convert to plain JSON: otherwise ``to_parquet()`` warns and drops all attrs."""
    from datetime import datetime

    return {
        name: iso(value) if isinstance(value, datetime) else value
        for name, value in provenance.items()
    }


def _pandas_column(pd: Any, kind: str, payload: list[Any], ids: _Ids, shared: bool) -> Any:
    import numpy as np

    if kind in ("runs", "codes"):
        return _identity_column(pd, payload, ids)
    if kind == "text":
        return pd.Series(payload[0], dtype=text_dtype(pd))
    values = np.asarray(payload[0])
    if not shared:
        values = values.copy()
    if kind == "integer":
        if payload[1] is None:
            missing = np.zeros(len(values), dtype=np.bool_)
        else:
            missing = np.frombuffer(payload[1], dtype=np.bool_)
        return pd.arrays.IntegerArray(values, missing, copy=False)
    return values


def _identity_column(pd: Any, payload: list[Any], ids: _Ids) -> Any:
    """Build the column from codes: one for each run and the runs' lengths, or bytes of the rows."""
    import numpy as np

    *coded, texts = payload
    if coded[1:]:
        kinds = (np.int8, np.int16, np.int32)
        width = next(kind for kind in kinds if len(texts) <= np.iinfo(kind).max)
        codes = np.frombuffer(coded[0], dtype=np.int32).astype(width, copy=False)
        codes = np.repeat(codes, np.frombuffer(coded[1], dtype=np.intp))
    else:
        codes = np.frombuffer(coded[0], dtype=np.int8)
    categories = pd.Index(texts, dtype=text_dtype(pd))
    if ids == "category":
        return pd.Categorical.from_codes(codes, categories=categories, validate=False)
    return categories.array.take(codes, allow_fill=True)


def text_dtype(pd: Any) -> str:
    # pandas 3 has a string type; before that, text is an object.
    return "str" if int(pd.__version__.split(".", 1)[0]) >= 3 else "object"


def wide_to_flat_pandas(wide: Wide, *, tz: str | None = None) -> pd.DataFrame:
    """Build the frame of a :class:`Wide`, whose columns have one name each."""
    return wide_to_pandas(wide, tz=tz, flat=True)


def wide_to_pandas(wide: Wide, *, tz: str | None = None, flat: bool = False) -> pd.DataFrame:
    """Build the frame of a :class:`Wide`: see :meth:`Wide.to_pandas`."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise missing(error, "pandas", "to_pandas()") from error.__cause__
    import numpy as np

    shared, series = can_share(pd), wide.series
    columns: pd.Index[Any]
    if flat:
        columns = pd.Index(wide._names(), dtype=text_dtype(pd))
    else:
        levels = [*zip(*series, strict=True)] if series else [()] * 5
        names = list(Record._fields[:5])
        if (labels := wide.labels) is not None:
            levels, names = [*levels, tuple(labels)], [*names, "label"]
        texts = [pd.Index(list(level), dtype=text_dtype(pd)) for level in levels]
        columns = pd.MultiIndex.from_arrays(texts, names=names)
    times, zone, cells, missing_cells = wide._columns()
    values = np.asarray(cells).reshape(len(series), len(wide))
    if not shared:
        values = values.copy()
    instants = _pandas_times(pd, np.asarray(times), tz or zone, shared)
    index = pd.DatetimeIndex(instants, name="timestamp")
    if missing_cells is None:
        frame = pd.DataFrame(values.T, index=index, columns=columns, copy=False)
    else:
        nulls = np.frombuffer(missing_cells, dtype=np.bool_).reshape(values.shape)
        counts = map(partial(pd.arrays.IntegerArray, copy=False), values, nulls)
        frame = pd.DataFrame(dict(enumerate(counts)), index=index, copy=False)
        frame.columns = columns
    if shared:
        share(frame)
    frame.attrs["siteline"] = _plain(wide._provenance())
    return frame


def _pandas_times(pd: Any, microseconds: Any, zone: str, shared: bool) -> Any:
    if shared:
        return timestamps(pd, microseconds, zone)
    times = pd.Series(microseconds.copy().view("datetime64[us]")).dt.tz_localize("UTC")
    return times if zone == "UTC" else times.dt.tz_convert(zone)


def wide_to_polars(wide: Wide, *, tz: str | None = None) -> pl.DataFrame:
    """Build the polars frame of a :class:`Wide`, without pyarrow."""
    return _polars_frame(wide, tz)


def to_polars(source: _Columns, *, ids: _Ids = "str", tz: str | None = None) -> pl.DataFrame:
    """Build a polars frame through the Arrow PyCapsule interface, without pyarrow.

    The ids are ``String`` (or ``Categorical``), ``timestamp`` is ``Datetime("us", "UTC")`` (or in
    the zone ``tz``), the numbers ``Float64`` and ``Int64``.
    """
    _check_ids(ids)
    frame = _polars_frame(source, tz)
    import polars as pl

    texts = [*Record._fields[:5], *({"label"} & {*frame.columns})]
    identity = pl.col(texts)
    return frame.with_columns(identity.cast(pl.String if ids == "str" else pl.Categorical))


def import_polars(what: str) -> ModuleType:
    """Refuse a polars that would leave out all batches of a stream but the first, in silence."""
    from siteline.errors import ConfigError

    try:
        import polars as pl
    except ModuleNotFoundError as error:
        raise missing(error, "polars", what) from error.__cause__
    major, minor = pl.__version__.split(".")[:2]
    if (int(major), int(minor)) < (1, 32):
        raise ConfigError(
            f"polars {pl.__version__} loses points of a stream of several batches.",
            hint="pip install -U 'siteline[polars]' brings one that does not.",
        )
    return pl


def _polars_frame(source: _Streamed, tz: str | None) -> pl.DataFrame:
    import_polars("to_polars()")
    import polars as pl

    frame = pl.DataFrame(source)
    if tz is None:
        return frame
    return frame.with_columns(pl.col("timestamp").dt.convert_time_zone(tz))


def to_arrow(source: _Streamed, *, tz: str | None = None) -> pa.Table:
    """Build a ``pyarrow.Table``; the ids are dictionary-encoded."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise missing(error, "pyarrow", "to_arrow()") from error.__cause__
    # pa.table() would import pandas, to check for a frame.
    table = pa.RecordBatchReader.from_stream(source).read_all()
    if tz is None:
        return table
    place = table.schema.get_field_index("timestamp")
    field = table.schema.field(place).with_type(pa.timestamp("us", tz=tz))
    return table.set_column(place, field, table.column(place).cast(field.type))


def _check_ids(ids: str) -> None:
    if ids not in ("str", "category"):
        from siteline.errors import QueryError

        raise QueryError(f'ids={ids!r} is unknown: give ids="str" or ids="category".')


def missing(
    error: ModuleNotFoundError, package: str, what: str, extra: str | None = None
) -> ImportError:
    """Say how to install a package that is not there; of one that lacks another, its own error.

    ``extra``: the extra that has it, if it does not have its name.
    """
    if error.name != package:
        return error
    return ImportError(
        f"{what} needs {package}, which is not installed: "
        f"pip install 'siteline[{extra or package}]'",
        name=package,
    )
