"""No text of a picture overlaps another or is cut off, by an estimate of its width.

The pictures have long names, many series, every length of an axis, clock changes, and numbers of
all sizes.
"""

import re
import struct
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
import siteline
from kit.pictures import Box, estimated, faults, parsed
from siteline._plots.columns import NUMBERS
from siteline._plots.points_text import Grid, Options
from siteline.allowance import Allowance
from siteline.coverage import Coverage, CoverageWindow
from siteline.lateness import Lateness

pytestmark = pytest.mark.once
WIDTHS = (400, 1_400)
START = datetime(2026, 10, 24, 21, 7, tzinfo=UTC)
LENGTHS = ("40s", "9min", "7h", "26h", "12d", "90d", "3y", "80y")
UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "y": 365 * 86_400}


class Memory:
    """A column as the core hands it out."""

    def __init__(self, values, letter):
        import numpy as np

        self.values = np.array(values, dtype=f"<{letter}8")

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


class Holder:
    """Points without a table: so many series over a length of time."""

    def __init__(self, length, scales):
        number = length.rstrip("sminhdy")
        seconds = int(number) * UNITS[length[len(number) :]]
        step = seconds * 1_000_000 // 40
        first = int(START.timestamp()) * 1_000_000
        self.grid = (first, first + step * 40, step)
        times = [first + step * n for n in range(40) if n not in (7, 8, 20, 22)]
        self.tags = [f"{'temperature of bearing ' * (n % 4)}{n}" for n in range(len(scales))]
        values = [scale * (n - 11) for scale in scales for n in range(len(times))]
        self.columns = [*times] * len(scales), values, len(times)

    def _columns(self):
        times, values, length = self.columns
        count = len(self.tags)
        lengths = bytearray(struct.pack(f"={count}q", *[length] * count))
        for name in ("site_id", "line_id", "machine_id", "device_id"):
            yield name, "runs", bytearray(struct.pack(f"={count}i", *[0] * count)), lengths, ["Ä1"]
        codes = bytearray(struct.pack(f"={count}i", *range(count)))
        yield "tag_guid", "runs", codes, lengths, self.tags
        yield "timestamp", "timestamp", Memory(times, "i"), "UTC"
        for name in NUMBERS[:3]:
            yield name, "float", Memory(values, "f")
        yield "sample_count", "integer", Memory([1] * len(values), "i"), None

    def _provenance(self):
        return {}

    def plot(self, zone, width):
        from siteline import plots
        from siteline._plots import points

        labels = {tag: (tag, "m³/h") for tag in self.tags[::2]}
        start, end, interval = self.grid
        options = Options("value", plots._zone(zone), labels, None, width, 12)
        drawing = points.picture(self, Grid(start, end, interval), options).drawing
        return plots.Plot(drawing, lambda: None)


SCALES = [1, 1e-9, 1e12, -0.003, 3e300, 17.25, 1_234_567.0]


def of_series(width):
    zones = ("UTC", "Europe/Berlin", "Asia/Kathmandu")
    for length, zone in product(LENGTHS, zones[1:] if width == WIDTHS[0] else zones[:1]):
        yield Holder(length, SCALES[:3]).plot(zone, width)
    yield Holder("12d", SCALES * 3).plot("UTC", width)


def feeds(count, since="2026-09-01T00:00Z"):
    return [
        siteline.Feed(f"{'a feed of a long name ' * (n % 5)}{n}", site="S1", interval="1h",
                      since=since) for n in range(count)
    ]  # fmt: skip


def coverage_of(feed, now, states=("settled", "settling", "provisional", "unread")):
    day = timedelta(days=1)
    days = max((now - feed.since) // day, 1)
    windows = []
    for n in range(days):
        state = states[min(n * len(states) // days, len(states) - 1)]
        read = None if state == "unread" else now
        aside = now + day if state == "unread" and n % 5 == 4 else None
        empty = None if read is None else n % 11 == 3
        bounds = (feed.since + n * day, feed.since + (n + 1) * day)
        windows.append(CoverageWindow(*bounds, state, read, None, empty, aside))
    return Coverage(feed, now, windows)


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
    return Lateness(feed, {"points": part, "revisions": part, "settled": 86_400})


def of_latenesses(width):
    given = [lateness_of(feed, n * 999, scale=10 ** (n % 4)) for n, feed in enumerate(feeds(14))]
    yield siteline.plots.lateness(given[:1], width=width)
    yield siteline.plots.lateness(given, width=width)


class Pages:
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
        store = Pages([feed.name for feed in feeds(count)], now, 7)
        left = None if limit is None else max(limit - 50, 0)
        known = Allowance(50, limit, left, resets, 3, 1)
        yield siteline.plots.allowance(known, store, days=days, width=width, now=now)
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
