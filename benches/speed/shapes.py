"""A column for each series: siteline and pandas, each from its own long form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from speed.outcome import Outcome, timed

SERIES, MINUTES, MINUTE = 20, 50_000, 60_000_000
START = 1_735_689_600_000_000
"""2025-01-01."""


def _table() -> Any:
    """A table, by way of the sandbox and without a request."""
    import siteline

    rows, chance = SERIES * MINUTES, np.random.default_rng(5)
    values = chance.normal(50, 9, rows).round(3)
    tags = pl.Series([f"tag-{number:02}" for number in range(SERIES)])
    times = np.arange(MINUTES, dtype=np.int64) * MINUTE + START
    points = pl.DataFrame(
        {
            "tag_guid": tags.gather(np.repeat(np.arange(SERIES), MINUTES)),
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
        columns = frame[[name for name in frame if name != "timestamp"]]
        columns = columns.rename(columns=lambda name: name.rsplit("/", 1)[-1])
        cells = columns.sort_index(axis="columns").to_numpy(dtype=np.float64)
        nulls, total = int(np.isnan(cells).sum()), float(np.nansum(cells))
        return {"shape": list(cells.shape), "nulls": nulls, "sum": total}

    return Outcome(figures, summary)


def siteline() -> Outcome:
    """siteline, to a pandas frame."""
    table = _table()
    return _wide(lambda: table.wide().to_pandas(flat=True))


def pandas() -> Outcome:
    """pandas, by one id alone, which is faster than by five."""
    frame = _table().to_pandas(ids="category")
    return _wide(lambda: frame.pivot(columns="tag_guid", index="timestamp", values="value"))
