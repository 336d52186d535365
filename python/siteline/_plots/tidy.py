"""The frames behind the pictures: a row for each thing that was drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline._plots.axis import microseconds
from siteline._plots.columns import IDS, NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo

    import pandas as pd

    from siteline._plots.allowance import Part as Requests
    from siteline._plots.coverage import Part
    from siteline._plots.lateness import Curve
    from siteline._plots.points import Picture

__all__: list[str] = []


def pandas() -> Any:
    """Import pandas, or say how to install it."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        from siteline.frames import missing

        raise missing(error, "pandas", "to_pandas()") from error.__cause__
    return pd


def _frame(columns: dict[str, Any]) -> pd.DataFrame:
    frame: pd.DataFrame = pandas().DataFrame(columns)
    return frame


def times(pd: Any, microseconds: Any, zone: Any) -> Any:
    """Return a column of times in a zone, of the same dtype with and without rows."""
    import numpy as np

    naive = pd.Series(np.array(microseconds, dtype=np.int64).view("datetime64[us]"))
    return naive.dt.tz_localize("UTC").dt.tz_convert(zone).array


def text(pd: Any, values: list[Any]) -> Any:
    """Return a column of texts."""
    dtype = "str" if int(pd.__version__.split(".", 1)[0]) >= 3 else "object"
    return pd.Series(values, dtype=dtype).array


def points_frame(shown: Picture) -> pd.DataFrame:
    """Build the frame of the series of a picture: their points, and which stretch each is of."""
    pd = pandas()
    import numpy as np

    # A column at a time, of all series, so that its dtype does not depend on what is in it.
    stamps = [np.array(shown.points.times(ids), dtype=np.int64) for ids in shown.names]
    counts = list(map(len, stamps))

    def repeated(texts: Iterable[str | None]) -> Any:
        pairs = zip(texts, counts, strict=True)
        return text(pd, [one for one, count in pairs for _ in range(count)])

    def numbers(name: str) -> Any:
        parts = [np.array(shown.points.numbers(ids, name), dtype=float) for ids in shown.names]
        return np.concatenate([np.empty(0), *parts])

    columns = {"series": repeated(name.label for name in shown.names.values())}
    for place, name in enumerate(IDS):
        columns[name] = repeated(ids[place] for ids in shown.names)
    none = np.empty(0, dtype=np.int64)
    columns["timestamp"] = times(pd, np.concatenate([none, *stamps]), shown.zone)
    columns.update((name, numbers(name)) for name in NUMBERS[:3])
    columns["sample_count"] = pd.Series(numbers(NUMBERS[3])).astype("Int64").array
    stretches = [_stretches(np, one, shown.widest) for one in stamps]
    columns["stretch"] = np.concatenate([none, *stretches])
    return _frame(columns)


def _stretches(np: Any, stamps: Any, widest: int | None) -> Any:
    """Number the points of a series by how many gaps are before them."""
    after_gap = np.zeros(len(stamps), dtype=np.int64)
    if widest is not None:
        after_gap[1:] = np.diff(stamps) > widest
    return after_gap.cumsum()


def coverage_frame(parts: list[Part], zone: tzinfo) -> pd.DataFrame:
    """Build the frame of a coverage: a row for each feed, day and state."""
    pd = pandas()
    return _frame(
        {
            "feed": text(pd, [part.feed for part in parts]),
            "day": times(pd, [part.day for part in parts], zone),
            "state": text(pd, [part.state for part in parts]),
            "share": pd.Series([part.length / part.of for part in parts], dtype=float),
        }
    )


def lateness_frame(curves: list[Curve]) -> pd.DataFrame:
    """Build the frame of a lateness: a row for each step of a curve."""
    pd = pandas()
    rows = [(one.feed, one.kind, at, share) for one in curves for at, share in one.steps]
    delays = pd.to_timedelta(pd.Series([row[2] for row in rows], dtype="int64"), unit="s")
    return _frame(
        {
            "feed": text(pd, [row[0] for row in rows]),
            "kind": text(pd, [row[1] for row in rows]),
            "delay": delays.astype("timedelta64[us]"),
            "share": pd.Series([row[3] for row in rows], dtype=float),
        }
    )


def allowance_frame(parts: list[Requests]) -> pd.DataFrame:
    """Build the frame of an allowance: a row for each day and part."""
    pd = pandas()
    days = [microseconds(part.day) for part in parts]
    return _frame(
        {
            "day": times(pd, days, "UTC"),
            "part": text(pd, [part.part for part in parts]),
            "kind": text(pd, [part.kind for part in parts]),
            "requests": pd.Series([part.requests for part in parts], dtype="int64"),
        }
    )
