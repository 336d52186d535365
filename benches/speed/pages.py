"""A million points in a hundred pages: what the stores are given, as they would get it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import siteline

SERIES, MINUTES, PAGE = 20, 50_000, 10_000
START = datetime(2026, 9, 1, tzinfo=UTC)
END = START + timedelta(minutes=MINUTES)
FEED = "bench"


def frame(minutes: int = MINUTES) -> pd.DataFrame:
    """Points as they stand at first: doubles of many digits, one in a hundred is null."""
    chance = np.random.default_rng(7)
    times = pd.date_range(START, periods=minutes, freq="min", unit="us")
    frames = []
    for number in range(SERIES):
        value = 50 + np.cumsum(chance.normal(0, 0.1, minutes))
        spread = chance.uniform(0, 1, minutes)
        value[chance.uniform(0, 1, minutes) < 0.01] = np.nan
        one = pd.DataFrame({"timestamp": times, "value": value})
        one["minimum"], one["maximum"] = value - spread, value + spread
        one["sample_count"] = pd.array(chance.integers(1, 61, minutes), dtype="Int64")
        names = ("S1", "L1", f"M{number // 4}", f"D{number}", f"tag-{number:032d}")
        columns = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
        for column, name in zip(columns, names, strict=True):
            one[column] = name
        frames.append(one)
    return pd.concat(frames, ignore_index=True)


def revised(points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What is there at first (99 of 100 points), and in the end: the rest, and 1 % revised."""
    chance = np.random.default_rng(11)
    draw = chance.uniform(0, 1, len(points))
    after = points.copy()
    after.loc[draw > 0.99, "value"] += 0.125
    return points[draw >= 0.01], after


class Capture:
    """A store that keeps the pages as they come."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self.pages: list[tuple[Any, bytes]] = []
        self.known: dict[str, bytes] = {}

    def state(self, feed: str) -> bytes | None:
        """The state that came last."""
        return self.known.get(feed)

    def apply(self, feed: str, page: Any, state: bytes) -> tuple[int, int, int]:
        """Keep it."""
        self.known[feed] = state
        self.pages.append((page, state))
        return (0, 0, 0)


def feed(window: str) -> siteline.Feed:
    """Everything in one window, so that one chain reads it."""
    return siteline.Feed(
        FEED, site="S1", interval="1m", since=START, page_size=PAGE, window=window, lateness="1d"
    )


def captured() -> tuple[list[Any], list[Any]]:
    """The pages of the first read, and those of the second, with their states."""
    first, last = revised(frame())
    capture = Capture()
    now = (END + timedelta(minutes=10)).isoformat()
    with siteline.Sandbox(now=now, order="time") as sandbox:
        sandbox.load(first, bucket="1m")
        client = sandbox.client()
        client.sync(feed("70d"), capture)
        before = list(capture.pages)
        capture.pages.clear()
        sandbox.load(last[~last.index.isin(first.index)], bucket="1m")
        changed = last.loc[first.index]
        changed = changed[changed["value"].ne(first["value"]) & first["value"].notna()]
        sandbox.load(changed, bucket="1m")
        client.sync(feed("70d"), capture, reread=(START, END))
    return before, capture.pages
