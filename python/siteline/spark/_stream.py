"""``spark.readStream.format("siteline")``: fresh points, and again what may have changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from siteline._siteline import Client, Feed
from siteline.errors import AllowanceExhausted, ConfigError
from siteline.spark import _batches
from siteline.spark._partitions import Density, measure, parts, with_shares
from siteline.spark._ranges import Offset, advance, ranges
from siteline.spark._task import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from siteline._siteline import Scan
    from siteline.spark._reading import Reading

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_PAGES = 100
"""Of a batch, where ``maxPages`` does not say how many."""


class PointStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a query without an end, batch after batch.

    It lives in a worker process of the driver for as long as the stream runs, and in each task as
    its pickle.
    """

    def __init__(self, reading: Reading, schema: Any) -> None:
        """Prepare a stream; ``schema`` is that of the engine."""
        query: dict[str, Any] = {**reading.options.query, **reading.options.times}
        if "end" in query:
            raise ConfigError("A stream has no end: leave the option out, or use spark.read.")
        self._reading = reading
        self._zone = _batches.has_zone(schema)
        since = query.pop("start")
        self._feed = Feed("stream", since=since, **query)
        self._until: datetime | None = None
        self._density: Density | None = None
        self._client: Client | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the client of this process out."""
        return {**self.__dict__, "_client": None}

    def initialOffset(self) -> dict[str, str]:
        """Begin where the query does: nothing is read, nothing settled."""
        return Offset(self._feed.since, self._feed.since).to_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Ask for all: the pages of a batch are limited here."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the time: what comes later is for the next run."""
        self._until = self._now()

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        """Say how far the next batch goes, within the pages of a batch and of the allowance.

        With nothing left of the allowance it goes nowhere, and a stream waits for the next day. One
        that reads what is available now, and no more, raises :class:`AllowanceExhausted`.
        """
        before = Offset.from_dict(start)
        now = self._until or self._now()
        if advance(before, now, self._feed, Density(0, 1), 1) == before:
            return start
        allowance = self._open().allowance
        pages = self._reading.options.max_pages or MOST_PAGES
        if allowance.left is not None:
            pages = min(pages, allowance.left)
        if pages == 0 and self._until is None:
            return start
        if pages == 0:
            raise AllowanceExhausted(
                "the daily allowance is used up, and the stream has not read all that there is",
                retry_at=allowance.resets_at,
                retryable=True,
                hint="Start it again after retry_at: it continues where it stopped.",
            )
        return advance(before, now, self._feed, self._measured(), pages).to_dict()

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[Partition]:
        """Cut the ranges between two offsets, as a batch does, and as its replay does again."""
        before, after = Offset.from_dict(start), Offset.from_dict(end)
        density = self._measured()
        found = [
            part
            for first, last in ranges(before, after, self._feed)
            for part in parts(self._scan(first, last), density, self._reading.options.by)
        ]
        shares = with_shares(found, self._open().allowance.left)
        return [Partition(replace(part, is_last=False)) for part in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a partition within a task."""
        yield from self._reading.read(partition.value, self._zone, is_bounded=False)

    def stop(self) -> None:
        """Give back what the agent lent to the driver's side."""
        if self._client is not None:
            self._client.close()

    def _open(self) -> Client:
        if self._client is None:
            self._client = self._reading.access.client()
        return self._client

    def _scan(self, start: datetime, end: datetime) -> Scan:
        shape = self._reading.access.shape
        return self._open().data(**self._reading.options.between(start, end).query, shape=shape)

    def _now(self) -> datetime:
        """Return the service's time, which the page tells that is read first."""
        if self._clock() > self._feed.since + self._width:
            self._measured()
        return self._clock()

    def _clock(self) -> datetime:
        """Return the time of the client: a plan of any scan has it."""
        return self._open().plan(self._scan(_EPOCH, _EPOCH + self._width)).now

    def _measured(self) -> Density:
        """Return the density, for which each start of a stream reads a page."""
        if self._density is None:
            since, width = self._feed.since, self._width
            end = since + max(1, (self._clock() - since) // width) * width
            query = {**self._reading.options.query, "shape": self._reading.access.shape}
            self._density, _ = measure(self._open(), self._scan(since, end), query)
        return self._density

    @property
    def _width(self) -> timedelta:
        assert self._feed.interval is not None
        return self._feed.interval
