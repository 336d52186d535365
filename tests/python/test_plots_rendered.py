"""No text of a picture overlaps another or is cut off, by an estimate of its width.

The pictures have long names, many series, every length of an axis, clock changes, and numbers of
all sizes.
"""

import re
from datetime import UTC, datetime, timedelta
from itertools import product

import pandas as pd
import pytest
import siteline
from kit.pictures import Box, estimated, faults, parsed
from siteline.types import Allowance, Coverage, CoverageWindow, Lateness

pytestmark = pytest.mark.once
WIDTHS = (400, 1_400)
DAY = 86_400
# Seconds of the whole axis; each is of 40 buckets.
LENGTHS = (40, 600, 7 * 3_600, 26 * 3_600, 12 * DAY, 90 * DAY, 3 * 365 * DAY, 70 * 365 * DAY)
SCALES = [1, 1e-9, 1e12, -0.003, 3e300, 17.25, 1_234_567.0]


def plot_of(length, scales, zone, width):
    """Series over a length of time that begins in the night of a clock change, with gaps."""
    step = length // 40
    first = int(datetime(2026, 10, 24, 21, 7, tzinfo=UTC).timestamp()) // step * step
    rows = [n for n in range(40) if n not in (7, 8, 20, 22)]
    points = pd.DataFrame(
        {"timestamp": pd.to_datetime([first + step * n for n in rows], unit="s", utc=True)}
    )
    tags = [f"{'temperature of bearing ' * (n % 4)}{n}" for n in range(len(scales))]
    with siteline.Sandbox(now="2100-01-01T00:00Z") as sandbox:
        for tag, scale in zip(tags, scales, strict=True):
            values = [scale * (n - 11) for n in range(len(rows))]
            numbers = dict.fromkeys(("value", "minimum", "maximum"), values)
            loaded = points.assign(sample_count=1, **numbers)
            sandbox.load(loaded, bucket=step, site="Ä1", tag=tag)
        start, end = (datetime.fromtimestamp(at, UTC) for at in (first, first + 40 * step))
        table = sandbox.expected(site="Ä1", start=start, end=end, interval=step)
    return table.plot(labels={tag: (tag, "m³/h") for tag in tags[::2]}, tz=zone, width=width)


def of_series(width):
    zones = ("Europe/Berlin", "Asia/Kathmandu") if width == WIDTHS[0] else ("UTC",)
    for length, zone in product(LENGTHS, zones):
        yield plot_of(length, SCALES[:3], zone, width)
    yield plot_of(12 * DAY, SCALES * 3, "UTC", width)


def feeds(count, start="2026-09-01T00:00Z"):
    return [
        siteline.Feed(f"{'a feed of a long name ' * (n % 5)}{n}", site="S1", interval="1h",
                      start=start) for n in range(count)
    ]  # fmt: skip


def coverage_of(feed, now, states=("settled", "due", "provisional", "unread")):
    day = timedelta(days=1)
    days = max((now - feed.start) // day, 1)
    windows = []
    for n in range(days):
        state = states[min(n * len(states) // days, len(states) - 1)]
        read = None if state == "unread" else now
        aside = now + day if state == "unread" and n % 5 == 4 else None
        empty = None if read is None else n % 11 == 3
        bounds = (feed.start + n * day, feed.start + (n + 1) * day)
        windows.append(CoverageWindow(*bounds, state, read, None, empty, aside))
    return Coverage(feed, now, tuple(windows))


def of_coverages(width):
    for count, days, zone in ((1, 1, "UTC"), (9, 90, "Europe/Berlin"), (42, 200, "UTC")):
        now = datetime(2026, 9, 1, tzinfo=UTC) + timedelta(days=days)
        given = [coverage_of(feed, now) for feed in feeds(count)]
        yield siteline.plots.coverage(given, tz=zone, width=width)


def lateness_of(feed, count, scale=1):
    shares = {60: 0, 90: 500_000, 4_000: 990_000, 9_000: 1_000_000}
    curve = [(delay * scale, share) for delay, share in shares.items()]
    quantiles = [delay * scale for delay in (90, 3_000, 3_500, 4_000, 8_000, 9_000)]
    part = {"count": count, "late": 0, "looked": 900_000 if count else None,
            "quantiles": quantiles if count else None, "curve": curve if count else []}  # fmt: skip
    return Lateness._restore({"feed": feed, "points": part, "revisions": part, "settled": 86_400})


def of_latenesses(width):
    given = [lateness_of(feed, n * 999, scale=10 ** (n % 4)) for n, feed in enumerate(feeds(14))]
    yield siteline.plots.lateness(given[:1], width=width)
    yield siteline.plots.lateness(given, width=width)


class Store:
    """A store's page log: so many pages of each feed a day."""

    def __init__(self, names, now, a_day):
        self.feeds = dict.fromkeys(names)
        self._now, self._a_day = now, a_day

    def _page_times(self, feed):
        each = 1 + len(feed) % self._a_day
        times = (self._now - timedelta(hours=24 * n / each) for n in range(each * 20))
        return [int(at.timestamp()) * 1_000_000 for at in times]


def of_allowances(width):
    resets = datetime(2026, 11, 21, 6, tzinfo=UTC)
    now = resets - timedelta(hours=9)
    for limit, count, days in ((None, 1, 14), (5_000, 3, 14), (60, 9, 60), (10_000_000, 30, 366)):
        store = Store([feed.name for feed in feeds(count)], now, 7)
        left = None if limit is None else max(limit - 50, 0)
        known = Allowance(50, limit, left, resets, 3, 1)
        yield siteline.plots.allowance(known, [store], days=days, width=width, now=now)
        yield siteline.plots.allowance(known, width=width)


def all_pictures(width):
    for make in (of_series, of_coverages, of_latenesses, of_allowances):
        yield from make(width)


@pytest.mark.parametrize("width", WIDTHS)
def test_by_the_estimated_widths_no_text_overlaps_or_is_cut_off(width):
    for plot in all_pictures(width):
        assert not faults(*estimated(plot.svg())), plot
        assert not re.search(r"[ ,\"](nan|-?inf)\b", plot.svg())
        assert parsed(plot.svg()).get("width") == f"{width}"


def test_an_overlap_and_a_cut_are_found():
    boxes = [Box(0, 0, 10, 10, "a"), Box(9, 5, 20, 15, "b"), Box(30, 0, 41, 10, "c")]
    assert faults(boxes, 40, 20) == [boxes[2], (boxes[0], boxes[1])]
