"""A column for each series: siteline and pandas, each from its own long form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from speed.outcome import Outcome, timed
from speed.pages import frame


def _table() -> Any:
    """A table, by way of the sandbox and without a request."""
    import siteline

    with siteline.Sandbox(now="2026-11-20T00:00Z") as sandbox:
        # S1 has points of the sandbox.
        sandbox.load(frame("narrow").assign(site_id="S9"), bucket="1m")
        return sandbox.expected(site="S9", interval="1m")


def _wide(work: Callable[[], Any]) -> Outcome:
    wide, figures = timed(work)
    cells = wide.select_dtypes("float64").to_numpy()
    # The order of the columns differs.
    sums = sorted(np.nansum(cells, axis=0).tolist())
    return Outcome(figures, lambda: {"rows": len(wide), "sums": [f"{each:.6f}" for each in sums]})


def siteline() -> Outcome:
    """siteline, to a pandas frame."""
    table = _table()
    return _wide(lambda: table.pivot().to_pandas())


def pandas() -> Outcome:
    """pandas, by one id, which is faster than by five."""
    points = _table().to_pandas(ids="category")
    return _wide(lambda: points.pivot(columns="tag_guid", index="timestamp", values="value"))
