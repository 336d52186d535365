"""What a batch of a stream reads: pure functions of two offsets."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline._times import iso
from siteline.spark._partitions import LEAST_PAGES, longest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteline import Feed
    from siteline.spark._partitions import Density

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Offset(NamedTuple):
    """How far a stream is: up to where it has read, and up to where what it read is final."""

    read: datetime
    settled: datetime

    @classmethod
    def from_dict(cls, record: Mapping[str, str]) -> Offset:
        """Return the offset that Spark kept."""
        return cls(*(datetime.fromisoformat(record[name]) for name in cls._fields))

    def to_dict(self) -> dict[str, str]:
        """Return what Spark keeps: text."""
        return {name: iso(at) for name, at in self._asdict().items()}


Range = tuple[datetime, datetime]


def length(found: list[Range]) -> timedelta:
    """Return how much is read in all."""
    return sum((end - start for start, end in found), timedelta())


def expected(density: Density, found: list[Range], feed: Feed) -> int:
    """Return the pages of some ranges, each in partitions that are not too long."""
    assert feed.interval is not None
    most, pages = longest(feed.interval), 0
    for start, end in found:
        count = (end - start) / feed.interval
        pieces = math.ceil(count / most)
        pages += pieces * density.pages(count / pieces)
    return pages


def ranges(before: Offset, after: Offset, feed: Feed) -> list[Range]:
    """Return what the batch between two offsets reads: one range, or two apart.

    That is what is fresh, with the overlap before it as far as that is not settled; and what has
    become due, once more as a whole. A replayed batch has the same two offsets, so that it reads
    the same.
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
    """Return the offset after the next batch, which has at most so many pages.

    What is fresh comes before what has become due. Where nothing is to be read, the offset stays.
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
        # What is fresh is read after its lateness, as far as that is over.
        return Offset(read, max(before.settled, min(due, read)))
    spent = expected(density, [(start, read)], feed) if read > before.read else 0
    due = min(due, read)
    # One more than that is due, where a bound of windows lies between two buckets.
    left = min(_buckets(density, pages - spent, width), (due - before.settled) // width + 1)
    settled = min(due, before.settled + width * left)
    whole = _windows(settled, feed)
    return Offset(read, whole if whole > before.settled else settled)


def _edge(before: Offset, feed: Feed) -> datetime:
    """Return where the overlap begins: what is settled is not read again."""
    assert feed.interval is not None
    overlap = -(-feed.overlap // feed.interval) * feed.interval
    return max(before.settled, before.read - overlap)


def _buckets(density: Density, pages: int, width: timedelta) -> int:
    """Return how many buckets so many pages hold, in partitions that are not too long."""
    most = longest(width)
    whole = density.pages(most)
    if whole < LEAST_PAGES and pages >= whole:
        return pages // whole * most
    return int(max(0, pages) * density.full / density.rate) if density.rate else 0


def _floor(at: datetime, feed: Feed) -> datetime:
    """Return the newest bound of buckets, counted from the feed's beginning."""
    assert feed.interval is not None
    return feed.start + (at - feed.start) // feed.interval * feed.interval


def _windows(at: datetime, feed: Feed) -> datetime:
    """Return the newest bound of windows, which lie on a grid in UTC, as one of buckets."""
    return _floor(_EPOCH + (at - _EPOCH) // feed.window * feed.window, feed)
