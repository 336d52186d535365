"""Pages as a sync delivers them, and the loads of these pages into siteline's stores and others.

A load stores a million points, each page with its checkpoint; then all points again, one in a
hundred revised and one in a hundred new.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import siteline

from speed.outcome import Figures
from speed.render import START
from speed.service import KEY

FEED = "bench"
SIZES = {"narrow": (20, 50_000), "wide": (5_000, 100)}
"""Series, and minutes of each: a page of 10,000 points has 500 or two points of each series."""
Pages = list[tuple[Any, bytes]]
"""Pages, each with the state to store."""


def frame(size: str) -> pd.DataFrame:
    """The original points: doubles of many digits, one in a hundred is null."""
    generator = np.random.default_rng(7)
    series, minutes = shape = SIZES[size]
    value = 50 + np.cumsum(generator.normal(0, 0.1, shape), axis=1)
    spread = generator.uniform(0, 1, shape)
    value[generator.uniform(0, 1, shape) < 0.01] = np.nan
    times = pd.date_range(START, periods=minutes, freq="min", unit="us")
    points = pd.DataFrame({"timestamp": times.take(np.tile(np.arange(minutes), series))})
    columns = {"value": value, "minimum": value - spread, "maximum": value + spread}
    for name, numbers in columns.items():
        points[name] = numbers.ravel()
    points["sample_count"] = pd.array(generator.integers(1, 61, series * minutes), dtype="Int64")
    ids = [("S1", "L1", f"M{n // 4}", f"D{n}", f"tag-{n:032d}") for n in range(series)]
    for column, names in zip(KEY[:5], zip(*ids, strict=True), strict=True):
        points[column] = np.repeat(np.array(names, dtype=object), minutes)
    return points


class _Capture:
    """A store that keeps the pages that it receives."""

    def __init__(self) -> None:
        self.pages: Pages = []
        self.last: bytes | None = None
        self.batch: Any = 1

    def state(self, _: str) -> bytes | None:
        return self.last

    def apply(self, _: str, page: Any, state: bytes) -> tuple[int, int, int]:
        self.last = state
        self.pages.append((page, state))
        return (0, 0, 0)


def captured(size: str = "narrow", page: int = 10_000, batch: Any = None) -> tuple[Pages, Pages]:
    """The pages of the first and of the second read, with their states."""
    capture = _Capture()
    capture.batch = 1 if batch is None else batch
    stop = START + timedelta(minutes=SIZES[size][1])
    # One window for all data, so that one chain reads it.
    feed = siteline.Feed(
        FEED, site="S1", interval="1m", start=START, page_size=page, window="70d", lateness="1d"
    )
    last = frame(size)
    draw = np.random.default_rng(11).uniform(0, 1, len(last))
    old, revised = draw >= 0.01, draw > 0.99
    with siteline.Sandbox(
        now=stop + timedelta(minutes=10), variant=siteline.testing.Variant(order="time")
    ) as sandbox:
        sandbox.load(last[old], bucket="1m")
        client = sandbox.client()
        client.sync(feed, capture)
        before, capture.pages = capture.pages, []
        last.loc[revised, "value"] += 0.125
        sandbox.load(last[~old], bucket="1m")
        sandbox.load(last[revised & last["value"].notna()], bucket="1m")
        client.sync(feed, capture, reread=(START, stop))
    return before, capture.pages


def load_ours(
    store: Any,
    pages: tuple[Pages, Pages],
    lock: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> Figures:
    """Seconds of both reads into siteline's store or target."""
    figures = {}
    for name, part in zip(("first", "again"), pages, strict=True):
        started = time.perf_counter()
        with lock(FEED):
            applied = [store.apply(FEED, page, state) for page, state in part]
        figures[name] = time.perf_counter() - started
    inserted, revised, _, *withdrawn = map(sum, zip(*applied, strict=True))
    points = sum(len(page) for page, _ in pages[1])
    if {round(100 * count / points) for count in (inserted, revised)} != {1} or any(withdrawn):
        raise RuntimeError(f"of {points} points {inserted} new, {revised} revised, {withdrawn}")
    return figures


def load_theirs(
    pages: tuple[Pages, Pages],
    convert: Callable[[Any], Any],
    apply: Callable[[Any, bytes], None],
    part: int = 1,
    join: Callable[[list[Any]], Any] = list,
) -> Figures:
    """Seconds of both reads into another store, a transaction for each page.

    Of ``part`` pages one is timed, and the others are joined. The conversion is not timed.
    """
    figures = {}
    for name, read in zip(("first", "again"), pages, strict=True):
        converted = [(convert(page), state) for page, state in read]
        seconds = []
        for start in range(0, len(converted), part):
            *others, (page, state) = converted[start : start + part]
            if others:
                apply(join([other for other, _ in others]), others[-1][1])
            started = time.perf_counter()
            apply(page, state)
            seconds.append(time.perf_counter() - started)
        figures[name] = sum(seconds) / len(seconds) * len(converted)
    return figures
