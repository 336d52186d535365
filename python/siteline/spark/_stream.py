"""``spark.readStream.format("siteline")``: new points, and a second read after the lateness."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from siteline import Feed
from siteline._times import iso
from siteline.client import Client
from siteline.errors import AllowanceExhausted, ConfigError, FeedChanged
from siteline.spark import _batches
from siteline.spark._partitions import LEAST_PAGES, MOST_PAGES, Density, measure, parts, with_shares
from siteline.spark._ranges import Offset, Range, advance, expected, length, ranges
from siteline.spark._source import Partition

if TYPE_CHECKING:
    import pyarrow as pa

    from siteline import Scan
    from siteline.spark._reading import Reading
    from siteline.types import Allowance

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SLACK = 4
"""A batch may need this multiple of its expected pages and still fits in a day's allowance."""
_UNKNOWN = Density(0.0, 1.0)
_LOOKS = 4
"""Minimum pages of a careful measurement."""


class PointStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a query without an end in batches.

    Spark keeps it in a worker process of the driver, and pickles it for tasks.
    """

    def __init__(self, reading: Reading, schema: Any) -> None:
        query: dict[str, Any] = {**reading.options.query, **reading.options.times}
        if "end" in query:
            raise ConfigError("A stream has no end: leave the option out, or use spark.read.")
        self._reading = reading
        self._zone = _batches.has_zone(schema)
        start = query.pop("start")
        self._feed = Feed("stream", start=start, **query)
        self._until: datetime | None = None
        self._density: Density | None = None
        self._is_of_batch = False
        self._query = _digest(self._feed, query)
        self._client: Client | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def initialOffset(self) -> dict[str, str]:
        return self._offset(Offset(self._feed.start, self._feed.start))

    def getDefaultReadLimit(self) -> ReadLimit:
        # latestOffset limits the pages of a batch.
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the time: later data is for the next run."""
        self._until = self._now()

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        """Return the end of the next batch, within the limits of a batch and the allowance.

        If the allowance is used up, a stream waits for the next day, but one with the trigger
        ``availableNow`` raises :class:`AllowanceExhausted`.
        """
        self._check(start)
        before = Offset.from_dict(start)
        now = self._until or self._clock()
        if advance(before, now, self._feed, _UNKNOWN, 1) == before:
            return start
        after = self._fitting(before)
        if after != before:
            return self._offset(after)
        if self._until is None:
            return start
        raise AllowanceExhausted(
            "the daily allowance is used up, and the stream has not read all that there is",
            retry_at=self._open().allowance.resets_at,
            retryable=True,
            hint="Start it again after retry_at: it continues where it stopped.",
        )

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[Partition]:
        """Return the partitions between two offsets: the same for a replayed batch."""
        self._check(start)
        self._check(end)
        read = ranges(Offset.from_dict(start), Offset.from_dict(end), self._feed)
        if not read:
            return []
        # A replayed batch may need the whole allowance, so its measurement reads few pages.
        density = self._density or self._measure(read, self._pages() // LEAST_PAGES)
        found = [
            part
            for first, last in read
            for part in parts(self._scan(first, last), density, self._reading.options.by)
        ]
        shares = with_shares(found, self._open().allowance.left)
        return [Partition(replace(part, is_last=False)) for part in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from self._reading.read(partition.value, self._zone, is_bounded=False)

    def stop(self) -> None:
        # The agent gets the unused allowance of the driver.
        if self._client is not None:
            self._client.close()

    def _open(self) -> Client:
        if self._client is None:
            self._client = self._reading.access.client()
        return self._client

    def _scan(self, start: datetime, end: datetime) -> Scan:
        query = self._reading.options.between(start, end).query
        return self._open().scan(**query, labels=False)

    def _now(self) -> datetime:
        """Return the service's time, after a page has set it if the allowance permits one."""
        clock, since = self._clock(), self._feed.start
        if self._density is None and self._pages() and clock > since + self._width:
            whole = since + (clock - since) // self._width * self._width
            self._density = self._measure([(since, whole)], self._pages())
        return self._clock()

    def _clock(self) -> datetime:
        """Return the client's time, from a plan."""
        return self._open().plan(self._scan(_EPOCH, _EPOCH + self._width)).now

    def _pages(self) -> int:
        pages, allowance = self._reading.options.max_pages or MOST_PAGES, self._open().allowance
        if allowance.limit is None or allowance.left is None:
            return pages
        # Spark stores the range of a batch before the read, so a batch cannot end early.
        return min(pages, max(1, allowance.limit // _SLACK), allowance.left)

    def _fitting(self, before: Offset) -> Offset:
        """Return the end of a batch that fits the allowance, or ``before`` if none fits today.

        A batch that does not fit waits for the next day. If at least half of the allowance is left,
        it is tried anyway: a batch that never fits must fail instead of waiting forever.
        """
        allowance = self._open().allowance
        after = self._measured(before, allowance)
        left = self._open().allowance.left
        if left is None or allowance.limit is None or allowance.left is None:
            return after
        is_late = allowance.left * 2 < allowance.limit
        needed = self._expected(ranges(before, after, self._feed))
        return before if left == 0 or (needed > left and is_late) else after

    def _measured(self, before: Offset, allowance: Allowance) -> Offset:
        """Return the end of a batch after measuring the density in its own range.

        A short batch uses the density of the batch before it. If no page is left for the
        measurement, the batch is one bucket.
        """
        pages, left = self._pages(), allowance.left
        # A batch that needs much of a day's allowance needs an exact density.
        limit = allowance.limit
        is_careful = limit is not None and limit < _SLACK * LEAST_PAGES * pages
        looks = _LOOKS if is_careful else 1
        if left is not None and left <= looks:
            return before if self._density is None else self._advance(before, self._density, 0)
        pages = pages if left is None else min(pages, left - looks)
        after = self._advance(before, self._density or _UNKNOWN, pages)
        while True:
            read = ranges(before, after, self._feed)
            if self._is_of_batch and self._expected(read) <= pages // LEAST_PAGES:
                return after
            self._density = self._measure(read, pages, is_careful=is_careful)
            is_careful = False  # the next range is shorter, and its density is known
            self._is_of_batch = True
            # The measurement has set the client's clock to the service's time.
            less = self._advance(before, self._density, pages)
            longer, shorter = length(read), length(ranges(before, less, self._feed))
            if shorter >= longer:
                return after
            after = less
            if shorter * 2 >= longer or not self._pages():
                return after

    def _advance(self, before: Offset, density: Density, pages: int) -> Offset:
        return advance(before, self._until or self._clock(), self._feed, density, pages)

    def _expected(self, read: list[Range]) -> int:
        return expected(self._density or _UNKNOWN, read, self._feed)

    def _measure(self, read: list[Range], most: int, *, is_careful: bool = False) -> Density:
        query = self._reading.options.query
        # A bucket that is twice as dense as a batch allows ends the measurement.
        enough = 2 * most * (self._width / length(read)) if is_careful else None
        scans, most = [self._scan(*one) for one in read], max(1, most)
        found = [measure(self._open(), scan, query, most, enough)[0] for scan in scans]
        return max(found, key=lambda density: density.rate / density.full)

    def _offset(self, at: Offset) -> dict[str, str]:
        return {**at.to_dict(), "query": self._query}

    def _check(self, offset: dict[str, str]) -> None:
        if offset.get("query") != self._query:
            raise FeedChanged(
                "The checkpoint has another site, line, filters, interval or start.",
                hint="Choose another checkpointLocation, and another table, for the new query.",
            )

    @property
    def _width(self) -> timedelta:
        assert self._feed.interval is not None
        return self._feed.interval


def _digest(feed: Feed, query: dict[str, Any]) -> str:
    named = {name: query.get(name) for name in ("site", "line", "filters")}
    of = [named, str(feed.interval), iso(feed.start)]
    return hashlib.sha256(json.dumps(of, sort_keys=True, default=str).encode()).hexdigest()
