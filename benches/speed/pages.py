"""Pages of ten thousand points: the input of the stores, as a sync delivers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import pandas as pd
import siteline

Batch = int | Literal["chain"] | None
PAGE = 10_000
START = datetime(2026, 9, 1, tzinfo=UTC)
FEED = "bench"


@dataclass(frozen=True)
class Plant:
    """How many series there are, and how many minutes of each."""

    series: int
    minutes: int

    @property
    def end(self) -> datetime:
        """The end of the data."""
        return START + timedelta(minutes=self.minutes)


NARROW = Plant(20, 50_000)
"""A page has 500 points of each series."""
WIDE = Plant(5_000, 100)
"""A page has two points of each series."""


def frame(plant: Plant) -> pd.DataFrame:
    """The original points: doubles of many digits, one in a hundred is null."""
    generator = np.random.default_rng(7)
    series, minutes = plant.series, plant.minutes
    values, spreads, counts = [], [], []
    for _ in range(series):
        value = 50 + np.cumsum(generator.normal(0, 0.1, minutes))
        spreads.append(generator.uniform(0, 1, minutes))
        value[generator.uniform(0, 1, minutes) < 0.01] = np.nan
        values.append(value)
        counts.append(generator.integers(1, 61, minutes))
    value, spread = np.concatenate(values), np.concatenate(spreads)
    times = pd.date_range(START, periods=minutes, freq="min", unit="us")
    every = times.take(np.tile(np.arange(minutes), series))
    points = pd.DataFrame({"timestamp": every, "value": value})
    points["minimum"], points["maximum"] = value - spread, value + spread
    points["sample_count"] = pd.array(np.concatenate(counts), dtype="Int64")
    ids = [("S1", "L1", f"M{n // 4}", f"D{n}", f"tag-{n:032d}") for n in range(series)]
    columns = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
    for column, names in zip(columns, zip(*ids, strict=True), strict=True):
        points[column] = np.repeat(np.array(names, dtype=object), minutes)
    return points


def revised(points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The data of the first read (99 of 100 points) and of the second (all, 1 % revised)."""
    generator = np.random.default_rng(11)
    draw = generator.uniform(0, 1, len(points))
    after = points.copy()
    after.loc[draw > 0.99, "value"] += 0.125
    return points[draw >= 0.01], after


class Capture:
    """A store that keeps the pages that it receives."""

    def __init__(self) -> None:
        """Start without pages."""
        self.pages: list[tuple[Any, bytes]] = []
        self.known: dict[str, bytes] = {}

    def state(self, feed: str) -> bytes | None:
        """The last state."""
        return self.known.get(feed)

    def apply(self, feed: str, page: Any, state: bytes) -> tuple[int, int, int]:
        """Keep the page and the state."""
        self.known[feed] = state
        self.pages.append((page, state))
        return (0, 0, 0)


def feed(window: str, page: int = PAGE) -> siteline.Feed:
    """The feed, with one window for all data, so that one chain reads it."""
    return siteline.Feed(
        FEED, site="S1", interval="1m", since=START, page_size=page, window=window, lateness="1d"
    )


@contextmanager
def served(plant: Plant) -> Iterator[tuple[siteline.Sandbox, Callable[[], None]]]:
    """A sandbox with the data of the first read, and a function that loads that of the second."""
    first, last = revised(frame(plant))
    now = (plant.end + timedelta(minutes=10)).isoformat()
    with siteline.Sandbox(now=now, order="time") as sandbox:
        sandbox.load(first, bucket="1m")

        def revise() -> None:
            sandbox.load(last[~last.index.isin(first.index)], bucket="1m")
            changed = last.loc[first.index]
            changed = changed[changed["value"].ne(first["value"]) & first["value"].notna()]
            sandbox.load(changed, bucket="1m")

        yield sandbox, revise


def captured(
    plant: Plant = NARROW, page: int = PAGE, batch: Batch = None
) -> tuple[list[Any], list[Any]]:
    """The pages of the first and of the second read, with their states."""
    capture = Capture()
    with served(plant) as (sandbox, revise):
        client = sandbox.client()
        client.sync(feed("70d", page), capture, batch=batch)
        before = list(capture.pages)
        capture.pages.clear()
        revise()
        client.sync(feed("70d", page), capture, reread=(START, plant.end), batch=batch)
    return before, capture.pages
