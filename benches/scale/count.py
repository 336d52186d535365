"""Requests of one feed, of its first fill and of a day, as they are planned and sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import siteline

from scale.plant import HISTORY, SINCE, TAGS, Cut, points, service

Span = tuple[datetime, datetime]
LEAD_DAYS = 2
"""Days after the first fill that are not counted: the first ones have less to settle."""


@dataclass(frozen=True)
class Reading:
    """When runs begin, and the times of a feed."""

    name: str
    every: timedelta = timedelta(hours=1)
    overlap: str = "1h"
    lateness: str = "1d"
    window: str = "1d"
    interval: int = 60
    whole_days: bool = False
    """Each run reads up to the last midnight (``until=``)."""

    @property
    def runs(self) -> int:
        """Runs of a day."""
        return int(timedelta(days=1) / self.every)

    def feed(self, name: str, page_size: int) -> siteline.Feed:
        """A feed of these times."""
        return siteline.Feed(
            name,
            site="S1",
            since=SINCE,
            interval=self.interval,
            page_size=page_size,
            overlap=self.overlap,
            lateness=self.lateness,
            window=self.window,
        )


HOURLY = Reading("each hour")
NIGHTLY = Reading("once a night", every=timedelta(days=1))
ONCE = Reading(
    "once a night, each day once",
    every=timedelta(days=1),
    overlap="0s",
    lateness="5m",
    whole_days=True,
)
COARSE = Reading("each hour, buckets of 5 minutes", interval=300)
COARSE_NIGHTLY = Reading(
    "once a night, buckets of 5 minutes", every=timedelta(days=1), interval=300
)
READINGS = (
    HOURLY,
    Reading("each hour, no overlap", overlap="0s"),
    Reading("each hour, windows of 6 hours", window="6h"),
    Reading("each hour, lateness of 36 hours", lateness="36h"),
    Reading("each 6 hours", every=timedelta(hours=6)),
    NIGHTLY,
    ONCE,
    COARSE,
    COARSE_NIGHTLY,
)


class Classified:
    """A target that keeps the states alone, and counts pages by the class that was planned."""

    def __init__(self, *, planned: bool = True) -> None:
        """Start without a state; without plans all pages are of one class."""
        self._is_planned = planned
        self.known: dict[str, bytes] = {}
        self.pages: Counter[str] = Counter()
        self.points = 0
        self._planned: list[tuple[Span, str]] = []

    def state(self, feed: str) -> bytes | None:
        """The last state."""
        return self.known.get(feed)

    def apply(self, feed: str, page: siteline.Page | None, state: bytes) -> tuple[int, int, int]:
        """Keep the state; count the page."""
        self.known[feed] = state
        if page is not None:
            self.pages[self._why(page.query) if self._is_planned else ""] += 1
            self.points += len(page)
        return (0, 0, 0)

    def expect(self, tasks: Iterable[siteline.Task]) -> None:
        """The ranges of the next run. The classes of a feed have no range in common."""
        self._planned = [((task.start, task.end), task.why) for task in tasks]

    def _why(self, query: Any) -> str:
        """The class of a chain: of the planned range that its beginning lies in.

        The run may cut and join chains anew, as it learns how many points a range has.
        """
        for (start, end), why in self._planned:
            if start <= query.start < end:
                return why
        raise RuntimeError(f"{query} was not planned")


@dataclass
class Counts:
    """Requests of one feed."""

    fill: int = 0
    """Of the first fill."""
    day: Counter[str] = field(default_factory=Counter)
    """Of a day, by class."""
    reserve: int = 0
    """The most pages that a plan of that day reserves."""
    reads: float = 0.0
    """How often a point is read, with the points of a day as 1."""

    @property
    def total(self) -> int:
        """Requests of a day."""
        return sum(self.day.values())


def counted(cut: Cut, page_size: int, reading: Reading, *, is_scaled: bool = True) -> Counts:
    """Fill a feed, then run a few days; count the last of them."""
    series, page = cut.scaled(page_size) if is_scaled else (cut.lines * TAGS, page_size)
    a_day = series * 86_400 // reading.interval
    frame = points(series, SINCE, (HISTORY + LEAD_DAYS + 2) * 1_440, reading.interval)
    counts = Counts()
    with service(frame, interval=reading.interval) as sandbox:
        # An allowance that is never spent: a plan then tells its reserve.
        client = sandbox.client(daily_allowance=100_000_000)
        feed = reading.feed("feed", page)
        target = Classified()
        _run(client, feed, target, reading)
        counts.fill = sum(target.pages.values())
        for run in range((LEAD_DAYS + 1) * reading.runs):
            sandbox.clock.advance(reading.every)
            if run == LEAD_DAYS * reading.runs:
                target.pages.clear()
                target.points = 0
            plan = _run(client, feed, target, reading)
            if run >= LEAD_DAYS * reading.runs:
                counts.reserve = max(counts.reserve, plan.reserve)
        counts.day = Counter(target.pages)
        counts.reads = target.points / a_day
    return counts


def midnight(client: siteline.Client) -> datetime:
    """The last midnight: the allowance is reset at the next one."""
    return client.allowance.resets_at - timedelta(days=1)


def _run(
    client: siteline.Client, feed: siteline.Feed, target: Classified, reading: Reading
) -> siteline.Plan:
    """One run to its end; the plan of it."""
    until = midnight(client) if reading.whole_days else None
    plan = client.plan(feed, target, until=until)
    target.expect(plan.tasks)
    before = sum(target.pages.values())
    report = client.sync(feed, target, until=until)
    pages = sum(target.pages.values()) - before
    if not report.complete or report.requests != pages:
        raise RuntimeError(f"{report.requests} requests, {pages} pages: {report}")
    return plan
