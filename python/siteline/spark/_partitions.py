"""The cost of a read, and its partitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline.errors import QueryError
from siteline.types import Plan, Task

if TYPE_CHECKING:
    from siteline import Scan
    from siteline.client import Client
    from siteline.page import Page

LEAST_PAGES = 10
"""Minimum pages per partition. Keeps the waste in a partly filled last page below 10 %."""
MOST_PAGES = 100
"""Maximum pages of a stream's batch and of a measurement, unless ``maxPages`` is given."""
_LONGEST = timedelta(days=31)
_MOST_PARTS = 10_000


class Density(NamedTuple):
    """The points per bucket, of all series of a query together, and per full page.

    A rate of 0 means that the measurement found no points; there may be some.
    """

    rate: float
    full: float

    def pages(self, buckets: float) -> int:
        """Return the expected pages of some buckets, at least one."""
        return max(1, math.ceil(self.rate * buckets / self.full))


@dataclass(frozen=True)
class Part:
    """The range of a partition and its cost. Only the last partition contains its end."""

    start: datetime
    end: datetime
    pages: int
    is_last: bool = True
    """Whether a point at ``end`` belongs to it."""
    share: int | None = None
    """The allowance of a task that has its own request counter."""
    most: int | None = None
    """Its maximum of pages with ``maxPages``: all pages that the others do not need."""


def buckets(scan: Scan) -> int:
    """Return the number of buckets of a scan; the last one may be shorter."""
    query = scan.query
    assert query.start is not None
    assert query.end is not None
    assert query.interval is not None
    return math.ceil((query.end - query.start) / query.interval)


def longest(width: timedelta) -> int:
    # The service does not document the longest range that it accepts.
    return max(1, _LONGEST // width)


def measure(
    client: Client,
    scan: Scan,
    options: dict[str, Any],
    most: int = MOST_PAGES,
    too_dense: float | None = None,
) -> tuple[Density, int]:
    """Read a page of a hundredth of the range, and return the density and the pages read.

    It reads the middle, because data at the end may be late, and then one or two other places if
    the middle is empty. With ``too_dense`` (pages per bucket) it reads four places until one is
    denser than that, and returns the highest density. Two of them are the start and the end,
    because a tag that was added or removed makes one side denser. It reads at most ``most`` pages,
    so the density may be too low, but not too high.
    """
    width, start, count = _width(scan), scan.query.start, buckets(scan)
    assert start is not None
    wide = max(1, min(count // 100, longest(width)))
    full = float(options["page_size"])

    def reading(first: int, many: int, most: int) -> Iterator[Page]:
        bounds = {"start": start + first * width, "end": start + (first + many) * width}
        # Without max_pages the scan would prefetch a page that nobody reads.
        scan = client.scan(**options | bounds, labels=False, max_pages=max(1, most))
        return islice(scan.pages(), most)

    places = [count // 2, count // 4, count * 3 // 4]
    if too_dense is not None:
        places = [count - wide, 0, count * 2 // 3, count // 3]
    densest, cost = Density(0.0, full), 0
    for place in places[: 1 if count < 4 else None]:
        if cost >= most or densest.rate > (too_dense or 0.0) * densest.full:
            break
        found, pages = _look(reading, place, wide, full, most - cost)
        cost += pages
        densest = max(densest, found, key=lambda one: one.rate / one.full)
    return densest, cost


def _look(
    reading: Callable[[int, int, int], Iterator[Page]],
    place: int,
    wide: int,
    full: float,
    most: int,
) -> tuple[Density, int]:
    """Read a page of some buckets. If they have more pages, read one bucket to its end."""
    again = wide > 1
    pages = reading(place, wide, 1 if again else most)
    first = next(pages)
    if first.is_last:
        # The service may return more points than page_size.
        return Density(len(first) / wide, max(full, len(first))), 1
    one = reading(place, 1, most - 1) if again else chain([first], pages)
    lengths = [len(page) for page in one]
    rate = max(sum(lengths), len(first) / wide)
    return Density(float(rate), max(1.0, len(first))), len(lengths) + again


def parts(scan: Scan, density: Density, by: str | int | None) -> list[Part]:
    """Cut a scan between buckets, into parts of at least ten pages and at most 31 days.

    A part is a multiple of the length ``by`` (``"1d"``), or ``by`` is the most parts.
    """
    count = buckets(scan)
    if isinstance(by, str):
        pieces = scan.split(_joined(scan, density, by))
    else:
        most = min(max(1, density.pages(count) // LEAST_PAGES), count, _MOST_PARTS)
        least = math.ceil(count / longest(_width(scan)))
        pieces = scan.split(max(least, min(by or most, most)))
    bounds = [(piece.query.start, piece.query.end, buckets(piece)) for piece in pieces]
    return [
        Part(start, end, density.pages(many), end == scan.query.end)
        for start, end, many in bounds
        if start is not None and end is not None
    ]


def _joined(scan: Scan, density: Density, by: str) -> timedelta:
    """Return the smallest multiple of a length that has ten pages, at most 31 days."""
    first = scan.split(by)[0]
    count, many, width = buckets(scan), buckets(first), _width(scan)
    needed = math.ceil(LEAST_PAGES * density.full / density.rate) if density.rate else count
    times = max(1, min(math.ceil(needed / many), longest(width) // many))
    return width * min(many * times, max(count, many))


def _width(scan: Scan) -> timedelta:
    return scan.query.interval or timedelta()


def plan_of(client: Client, scan: Scan, parts: list[Part]) -> Plan:
    tasks = tuple(Task("", "backfill", part.start, part.end, part.pages) for part in parts)
    allowance, pages = client.allowance, sum(part.pages for part in parts)
    now = client.plan(scan).now
    return Plan(tasks, pages, allowance, reserve=0, skipped=0, now=now, kind="scan")


def shared(plan: Plan, parts: list[Part], max_pages: int | None) -> list[Part]:
    """Give each part its share of the allowance.

    Raises:
        AllowanceExhausted: The allowance is smaller than the expected pages.
        QueryError: ``maxPages`` is smaller than the expected pages.
    """
    pages, left = sum(part.pages for part in parts), plan.allowance.left
    if max_pages is not None:
        if pages > max_pages:
            text = f"{pages} pages are expected, and maxPages is {max_pages}."
            hint = "Raise maxPages, read a shorter range, or take a larger page_size or interval."
            raise QueryError(text, hint=hint)
        parts = [replace(part, most=part.pages + max_pages - pages) for part in parts]
        left = max_pages if left is None else min(left, max_pages)
    plan.raise_for_allowance()
    return with_shares(parts, left)


def with_shares(parts: list[Part], limit: int | None) -> list[Part]:
    """Divide a limit, if there is one, among parts by their pages."""
    if limit is None:
        return parts
    pages = sum(part.pages for part in parts)
    return [replace(part, share=limit * part.pages // pages) for part in parts]
