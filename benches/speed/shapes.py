"""A table in another shape: siteline, pandas and polars, each from its own long form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from speed.measure import Row
from speed.outcome import Outcome, timed
from speed.service import ours

PAGES = "a"
WIDE = {"index": "timestamp", "values": "value"}


def _table() -> Any:
    _, scan = ours()
    return scan(PAGES).collect()


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


def siteline() -> Outcome:
    """siteline, to a pandas frame."""
    table = _table()
    return _wide(lambda: table.wide().to_pandas(flat=True))


def siteline_polars() -> Outcome:
    """siteline, to a polars frame."""
    table = _table()
    return _wide(lambda: table.wide().to_polars())


def pandas() -> Outcome:
    """pandas, by one id alone, which is faster than by five."""
    frame = _table().to_pandas(ids="category")
    return _wide(lambda: frame.pivot(columns="tag_guid", **WIDE))


def pandas_all() -> Outcome:
    """pandas, by all five ids."""
    frame = _table().to_pandas()
    ids = list(frame.columns[:5])

    def work() -> Any:
        wide = frame.pivot(columns=ids, **WIDE)
        wide.columns = wide.columns.get_level_values("tag_guid")
        return wide

    return _wide(work)


def polars() -> Outcome:
    """polars, by one id alone."""
    frame = _table().to_polars()
    return _wide(lambda: frame.pivot(on="tag_guid", **WIDE))


OURS, WHAT = "shapes:siteline", "1 M points, a column for each series,"
ROWS = [
    replace(row, compared=True)
    for row in (
        Row(f"{WHAT} beside pandas by a tag", "seconds", OURS, "shapes:pandas", bar=0.3),
        Row(f"{WHAT} beside pandas by all ids", "seconds", OURS, "shapes:pandas_all"),
        Row(f"{WHAT} beside polars", "seconds", f"{OURS}_polars", "shapes:polars"),
    )
]
