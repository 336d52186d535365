"""The plant of the simulation, and the ways to cut it into feeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import gcd

import numpy as np
import pandas as pd
import siteline

LINES, TAGS = 10_000, 20
"""Lines of the plant, and tags of each."""
HISTORY = 30
"""Days of the first fill."""
NOW = datetime(2026, 11, 20, 0, 10, tzinfo=UTC)
"""The time of the first run; runs begin ten minutes after the hour."""
SINCE = (NOW - timedelta(days=HISTORY)).replace(minute=0)
PAGE_SIZES = (1_000, 10_000, 50_000)


@dataclass(frozen=True)
class Cut:
    """A way to cut the plant into feeds."""

    name: str
    lines: int
    """Lines of a feed."""

    @property
    def feeds(self) -> int:
        """Feeds of the plant."""
        return LINES // self.lines

    def scaled(self, page_size: int) -> tuple[int, int]:
        """Series of a feed and points of a page, both divided by the same number.

        A range of a feed has as many pages as with all series and the whole page size.
        """
        series = self.lines * TAGS
        divisor = gcd(series, page_size)
        return series // divisor, page_size // divisor


CUTS = (
    Cut("a line", 1),
    Cut("10 lines", 10),
    Cut("100 lines", 100),
    Cut("a site of 1,000 lines", 1_000),
)


def points(series: int, start: datetime, minutes: int, interval: int = 60) -> pd.DataFrame:
    """Every bucket of so many series, with doubles of many digits."""
    generator = np.random.default_rng(7)
    buckets = minutes * 60 // interval
    times = pd.date_range(start, periods=buckets, freq=f"{interval}s", unit="us")
    value = 50 + generator.normal(0, 0.1, (series, buckets)).cumsum(axis=1).ravel()
    spread = generator.uniform(0, 1, series * buckets)
    frame = pd.DataFrame({"timestamp": times.take(np.tile(np.arange(buckets), series))})
    frame["value"], frame["minimum"], frame["maximum"] = value, value - spread, value + spread
    frame["sample_count"] = generator.integers(1, 61, series * buckets)
    tags = np.array([f"tag-{number:032d}" for number in range(series)], dtype=object)
    frame["tag_guid"] = np.repeat(tags, buckets)
    return frame


@contextmanager
def service(
    frame: pd.DataFrame, *, now: datetime = NOW, allowance: int | None = None, interval: int = 60
) -> Iterator[siteline.Sandbox]:
    """A service with these points at this time, in the order of time, with pages of any size."""
    with siteline.Sandbox(
        now=now.isoformat(),
        order="time",
        max_page_size=max(PAGE_SIZES),
        daily_allowance=allowance,
        token_rate=1_000_000,
    ) as sandbox:
        sandbox.load(frame, bucket=f"{interval}s")
        yield sandbox
