"""DataFrames with the dtypes of the core's columns, without pyarrow.

pandas 3 shares the core's numbers and timestamps, and copies a column that is written to; for
pandas 2 each column is copied once.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from siteline._core import zone_name as zone_name
from siteline._labels import checked
from siteline._records.series import Record
from siteline._zero_copy import can_share, share, timestamps
from siteline.errors import ConfigError, QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._core import Frame, _Stream
    from siteline._discovered import Ids

    _Ids = Literal["str", "category"]

__all__: list[str] = []


def to_pandas(
    frame: Frame, ids: _Ids, tz: str, labels: dict[Ids, str] | None, about: dict[str, Any]
) -> pd.DataFrame:
    """Build a pandas frame. Its dtypes do not depend on the rows.

    The ids are ``str`` or categories, timestamps ``datetime64[us, tz]``, numbers ``float64`` with
    NaN for null, counts ``Int64`` with ``<NA>``.
    """
    with needing("pandas", "to_pandas()"):
        import pandas as pd
    given, provenance = frame.columns((tz, labels, None))
    shared = can_share(pd)
    made: pd.DataFrame = (
        _pivoted(pd, given, shared) if frame.kind == "pivoted" else _long(pd, given, ids, shared)
    )
    if shared:
        share(made)
    made.attrs["siteline"] = {**provenance, **about}
    return made


def _long(pd: Any, given: list[tuple[Any, ...]], ids: _Ids, shared: bool) -> Any:
    import numpy as np

    columns = {}
    while given:
        # pop() frees each column after its copy.
        name, kind, *payload = given.pop(0)
        if kind == "timestamp":
            columns[name] = _pandas_times(pd, np.asarray(payload[0]), payload[1], shared)
        else:
            coded = "category" if name == "label" else ids
            columns[name] = _pandas_column(pd, kind, payload, coded, shared)
    return pd.DataFrame(columns, copy=False)


def _pivoted(pd: Any, given: list[tuple[Any, ...]], shared: bool) -> Any:
    import numpy as np

    (_, _, times, zone), (names, _, cells, missing_cells) = given
    columns = pd.Index(names, dtype=text_dtype(pd))
    values = np.asarray(cells).reshape(len(names), len(np.asarray(times)))
    if not shared:
        values = values.copy()
    instants = _pandas_times(pd, np.asarray(times), zone, shared)
    index = pd.DatetimeIndex(instants, name="timestamp")
    if missing_cells is None:
        return pd.DataFrame(values.T, index=index, columns=columns, copy=False)
    nulls = np.frombuffer(missing_cells, dtype=np.bool_).reshape(values.shape)
    counts = map(partial(pd.arrays.IntegerArray, copy=False), values, nulls)
    frame = pd.DataFrame(dict(enumerate(counts)), index=index, copy=False)
    frame.columns = columns
    return frame


def _pandas_column(pd: Any, kind: str, payload: list[Any], ids: _Ids, shared: bool) -> Any:
    import numpy as np

    if kind in ("runs", "codes"):
        return _identity_column(pd, payload, ids)
    if kind == "text":
        return pd.Series(payload[0], dtype=text_dtype(pd))
    if kind == "bool":
        return np.frombuffer(payload[0], dtype=np.bool_).copy()
    if kind == "flags":
        return pd.array(payload[0], dtype="boolean")
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
    """Build a column of codes of runs with the lengths of the runs, or of codes of rows."""
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


def _pandas_times(pd: Any, microseconds: Any, zone: str, shared: bool) -> Any:
    if shared:
        return timestamps(pd, microseconds, zone)
    times = pd.Series(microseconds.copy().view("datetime64[us]")).dt.tz_localize("UTC")
    return times if zone == "UTC" else times.dt.tz_convert(zone)


def to_polars(stream: _Stream, ids: _Ids) -> pl.DataFrame:
    """Build a polars frame, without pyarrow.

    The ids are ``String`` or ``Categorical``, labels ``Categorical``, timestamps
    ``Datetime("us", tz)``, the numbers ``Float64`` and ``Int64``.
    """
    import_polars("to_polars()")
    import polars as pl

    frame: pl.DataFrame = _consumed(stream, pl.DataFrame)
    given = [name for name in Record._fields[:5] if name in frame.columns]
    text = pl.String if ids == "str" else pl.Categorical
    casts = [pl.col(name).cast(text) for name in given]
    casts += [pl.col(name).cast(pl.String) for name in ("change",) if name in frame.columns]
    return frame.with_columns(casts) if casts else frame


def _consumed(stream: _Stream, consume: Any) -> Any:
    """Read a stream. The error of a store replaces the error of the consumer."""
    try:
        return consume(stream)
    except BaseException:
        # A panic of polars 1.32 is not an Exception.
        stream.check()
        raise


def import_polars(what: str) -> ModuleType:
    """Import polars. Reject versions that lose all batches of a stream but one."""
    with needing("polars", what):
        import polars as pl
    major, minor = pl.__version__.split(".")[:2]
    if (int(major), int(minor)) < (1, 32):
        raise ConfigError(
            f"polars {pl.__version__} loses points of a stream of several batches.",
            hint="pip install -U 'siteline[polars]' brings one that does not.",
        )
    return pl


def to_arrow(stream: _Stream) -> pa.Table:
    """Build a ``pyarrow.Table``; the ids are dictionary-encoded."""
    with needing("pyarrow", "to_arrow()"):
        import pyarrow as pa
    # pa.table() would import pandas, to check for a frame.
    table: pa.Table = _consumed(
        stream, lambda one: pa.RecordBatchReader.from_stream(one).read_all()
    )
    return table


def check_options(ids: str = "str", tz: Any = None, labels: Any = None) -> None:
    """Reject wrong options before anything is read."""
    check_ids(ids)
    zone_name("UTC" if tz is None else tz)
    checked(labels)


def check_ids(ids: str) -> None:
    if ids not in ("str", "category"):
        raise QueryError(f'ids={ids!r} is unknown: give ids="str" or ids="category".')


@contextmanager
def needing(packages: str, what: str, extra: str | None = None) -> Iterator[None]:
    """Explain the failed import of a package, or of one of several.

    ``extra`` is the extra that installs it, if it has another name.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in packages.split():
            raise
        raise ImportError(
            f"{what} needs {error.name}, which is not installed: "
            f"pip install 'siteline[{extra or error.name}]'",
            name=error.name,
        ) from error.__cause__
