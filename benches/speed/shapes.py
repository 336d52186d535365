"""A table in another shape: siteline, pandas and polars, each from its own long form.

Millions of points of 20 series in buckets of a minute: a column for each series, local days.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from speed.measure import Row
from speed.outcome import Outcome, timed

SERIES, MINUTE = 20, 60_000_000
START = 1_735_689_600_000_000
"""2025-01-01: ten million points are until June 2026, over three nights in which clocks are set."""
ZONE = "Europe/Berlin"
WIDE = {"index": "timestamp", "values": "value"}
MEASURES = ["value", "minimum", "maximum", "sample_count"]


def _table(millions: str) -> Any:
    """A table, by way of the sandbox and without a request."""
    import siteline

    minutes = int(millions) * 1_000_000 // SERIES
    rows, chance = minutes * SERIES, np.random.default_rng(5)
    values = chance.normal(50, 9, rows).round(3)
    tags = pl.Series([f"tag-{number:02}" for number in range(SERIES)])
    times = np.arange(minutes, dtype=np.int64) * MINUTE + START
    points = pl.DataFrame(
        {
            "tag_guid": tags.gather(np.repeat(np.arange(SERIES), minutes)),
            "timestamp": pl.Series(np.tile(times, SERIES)).cast(pl.Datetime("us", "UTC")),
            "value": values,
            "minimum": values - 1,
            "maximum": values + 1,
            "sample_count": chance.integers(1, 60, rows),
        }
    )
    with siteline.Sandbox(now="2026-11-20T00:00Z") as sandbox:
        sandbox.load(points, bucket="1m", site="S9")
        del points
        return sandbox.truth(site="S9", interval="1m")


def _wide(work: Callable[[], Any]) -> Outcome:
    """Time ``work``; of its columns, sorted by tag, what can be compared."""
    frame, figures = timed(work)

    def summary() -> dict[str, Any]:
        columns = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
        columns = columns[[name for name in columns if name != "timestamp"]]
        columns = columns.rename(columns=lambda name: name.rsplit("/", 1)[-1])
        cells = columns.sort_index(axis="columns").to_numpy(dtype=np.float64)
        nulls, total = int(np.isnan(cells).sum()), float(np.nansum(cells))
        return {"shape": list(cells.shape), "nulls": nulls, "sum": total}

    return Outcome(figures, summary)


def siteline(millions: str) -> Outcome:
    """siteline, to a pandas frame."""
    table = _table(millions)
    return _wide(lambda: table.wide().to_pandas(flat=True))


def siteline_polars(millions: str) -> Outcome:
    """siteline, to a polars frame."""
    table = _table(millions)
    return _wide(lambda: table.wide().to_polars())


def pandas(millions: str) -> Outcome:
    """pandas, by one id alone, which is faster than by five."""
    frame = _table(millions).to_pandas(ids="category")
    return _wide(lambda: frame.pivot(columns="tag_guid", **WIDE))


def pandas_all(millions: str) -> Outcome:
    """pandas, by all five ids."""
    frame = _table(millions).to_pandas()
    ids = list(frame.columns[:5])

    def work() -> Any:
        wide = frame.pivot(columns=ids, **WIDE)
        wide.columns = wide.columns.get_level_values("tag_guid")
        return wide

    return _wide(work)


def polars(millions: str) -> Outcome:
    """polars, by one id alone."""
    frame = _table(millions).to_polars()
    return _wide(lambda: frame.pivot(on="tag_guid", **WIDE))


def _days(work: Callable[[], Any]) -> Outcome:
    """Time ``work``; of its rows, whatever their order, what can be compared."""
    frame, figures = timed(work)

    def summary() -> dict[str, Any]:
        days = frame.to_pandas() if hasattr(frame, "to_pandas") else frame.reset_index()
        sums = {f"sum of {name}": float(days[name].sum()) for name in MEASURES}
        return {"rows": len(days), **sums, "first": str(days["timestamp"].min())}

    return Outcome(figures, summary)


def siteline_days(millions: str) -> Outcome:
    """siteline, to a pandas frame."""
    table = _table(millions)
    days = {"value": "mean", "tz": ZONE}
    return _days(lambda: table.rebucket("1d", **days).to_pandas(ids="category"))


def pandas_days(millions: str) -> Outcome:
    """pandas: a mean weighted by hand, over groups of the tag alone: faster than five ids."""
    import pandas as pd

    frame = _table(millions).to_pandas(ids="category")

    def work() -> Any:
        local = frame["timestamp"].dt.tz_convert(ZONE)
        weighted = frame["value"] * frame["sample_count"]
        rows = frame.assign(timestamp=local, value=weighted)
        by = ["tag_guid", pd.Grouper(key="timestamp", freq="1D")]
        how = {"value": "sum", "minimum": "min", "maximum": "max", "sample_count": "sum"}
        days = rows.groupby(by, observed=True).agg(how)
        days["value"] /= days["sample_count"]
        return days

    return _days(work)


def polars_days(millions: str) -> Outcome:
    """polars: the same, with both cores."""
    frame = _table(millions).to_polars(ids="category")

    def work() -> Any:
        local = frame.with_columns(pl.col("timestamp").dt.convert_time_zone(ZONE))
        groups = local.group_by_dynamic("timestamp", every="1d", group_by="tag_guid")
        count = pl.col("sample_count")
        return groups.agg(
            (pl.col("value") * count).sum() / count.sum(),
            pl.col("minimum").min(),
            pl.col("maximum").max(),
            count.sum(),
        )

    return _days(work)


def _rows(millions: int) -> list[Row]:
    wide, days = (
        f"{millions} M points, a column for each series,",
        f"{millions} M points to local days,",
    )
    of, bar = f":{millions}", 0.3 if millions == 1 else None
    rows = (
        Row(f"{wide} beside pandas by a tag", "seconds", "siteline", "pandas", bar=bar),
        Row(f"{wide} beside pandas by all ids", "seconds", "siteline", "pandas_all"),
        Row(f"{wide} beside polars", "seconds", "siteline_polars", "polars"),
        Row(f"{days} beside pandas", "seconds", "siteline_days", "pandas_days"),
        Row(f"{days} beside polars", "seconds", "siteline_days", "polars_days"),
    )
    return [_of(row, of) for row in rows if millions == 1 or "all ids" not in row.name]


def _of(row: Row, of: str) -> Row:
    ours, peer = f"shapes:{row.ours}{of}", f"shapes:{row.peer}{of}"
    slow = (ours, peer) if of != ":1" else ()
    return replace(row, ours=ours, peer=peer, slow=slow, compared=True)


ROWS = [*_rows(1), *_rows(10)]
