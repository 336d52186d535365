"""The ranges that a batch of a stream reads: pure functions of two offsets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline._times import iso
from siteline.spark._partitions import LEAST_PAGES, longest

if TYPE_CHECKING:
    from siteline import Feed
    from siteline.spark._partitions import Density

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Offset(NamedTuple):
    """The position of a stream: the end of the read range, and of the settled range."""

    read: datetime
    settled: datetime

    @classmethod
    def from_dict(cls, record: Mapping[str, str]) -> Offset:
        return cls(*(datetime.fromisoformat(record[name]) for name in cls._fields))

    def to_dict(self) -> dict[str, str]:
        return {name: iso(at) for name, at in self._asdict().items()}


Range = tuple[datetime, datetime]


def length(found: list[Range]) -> timedelta:
    return sum((end - start for start, end in found), timedelta())


def expected(density: Density, found: list[Range], feed: Feed) -> int:
    """Return the expected pages of some ranges, cut into partitions of at most 31 days."""
    assert feed.interval is not None
    most, pages = longest(feed.interval), 0
    for start, end in found:
        count = (end - start) / feed.interval
        pieces = math.ceil(count / most)
        pages += pieces * density.pages(count / pieces)
    return pages


def ranges(before: Offset, after: Offset, feed: Feed) -> list[Range]:
    """Return the ranges that the batch between two offsets reads: at most two.

    One range is fresh, with the unsettled part of the overlap before it. The other has become due
    and is read again. A replayed batch has the same two offsets, so it reads the same ranges.
    """
    found = []
    if after.settled > before.settled:
        found.append((before.settled, after.settled))
    if after.read > before.read:
        start = _edge(before, feed)
        if found and found[0][1] >= start:
            start, _ = found.pop()
        found.append((start, max(after.read, after.settled)))
    return found


def advance(before: Offset, now: datetime, feed: Feed, density: Density, pages: int) -> Offset:
    """Return the offset after the next batch, which has at most ``pages`` pages.

    Fresh data is read before data that has become due. With nothing to read the offset stays.
    """
    width = feed.interval
    assert width is not None
    newest = max(before.read, _floor(now - feed.settle_lag, feed))
    due = max(before.settled, min(newest, _windows(now - feed.lateness, feed)))
    # The last page of each partition is partly filled.
    pages = max(1, pages - pages // LEAST_PAGES)
    start = _edge(before, feed)
    room = width * min(_buckets(density, pages, width), (newest - start) // width)
    read = min(newest, max(start + room, before.read + width))
    if read > before.read and before.settled >= start:
        # This read settles fresh data if its lateness has passed.
        return Offset(read, max(before.settled, min(due, read)))
    spent = expected(density, [(start, read)], feed) if read > before.read else 0
    due = min(due, read)
    # One bucket more, because a window can end inside a bucket.
    left = min(_buckets(density, pages - spent, width), (due - before.settled) // width + 1)
    settled = min(due, before.settled + width * left)
    whole = _windows(settled, feed)
    return Offset(read, whole if whole > before.settled else settled)


def _edge(before: Offset, feed: Feed) -> datetime:
    """Return the start of the overlap. Settled data is not read again."""
    assert feed.interval is not None
    overlap = -(-feed.overlap // feed.interval) * feed.interval
    return max(before.settled, before.read - overlap)


def _buckets(density: Density, pages: int, width: timedelta) -> int:
    """Return the buckets that fit on some pages, in partitions of at most 31 days."""
    most = longest(width)
    whole = density.pages(most)
    if whole < LEAST_PAGES and pages >= whole:
        return pages // whole * most
    return int(max(0, pages) * density.full / density.rate) if density.rate else 0


def _floor(at: datetime, feed: Feed) -> datetime:
    """Return the newest bound of a bucket. Buckets are counted from the feed's start."""
    assert feed.interval is not None
    return feed.start + (at - feed.start) // feed.interval * feed.interval


def _windows(at: datetime, feed: Feed) -> datetime:
    """Return the newest bound of a window (a grid in UTC), rounded down to a bucket."""
    return _floor(_EPOCH + (at - _EPOCH) // feed.window * feed.window, feed)
