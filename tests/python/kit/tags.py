"""Loads a series with a given tag into a sandbox."""

from typing import Any

SINCE, UNTIL = "2026-11-18T00:00Z", "2026-11-20T00:00Z"


def load_tag(
    sandbox: Any, tag: str, start: str = SINCE, end: str = UNTIL, line: str = "L1"
) -> None:
    """Loads a series with a point every five minutes. The first call replaces the default data."""
    import pandas as pd

    times = pd.date_range(start, end, freq="5min", inclusive="left")
    data = pd.DataFrame({"timestamp": times, "value": range(len(times)), "sample_count": 1})
    sandbox.load(data, bucket="5m", line=line, tag=tag)
