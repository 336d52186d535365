"""What a read costs, and the partitions into which it is cut."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline.errors import QueryError
from siteline.types import Plan, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from siteline import Scan
    from siteline.client import Client
    from siteline.page import Page

LEAST_PAGES = 10
"""Of a partition. The last page of each is partly filled, so that this costs a tenth at most."""
MOST_PAGES = 100
"""Of a batch of a stream, and of a bucket that is measured, where ``maxPages`` does not say it."""
_LONGEST = timedelta(days=31)
_MOST_PARTS = 10_000


class Density(NamedTuple):
    """How many points a query has in a bucket, all its series together, and on a full page.

    A rate of 0 is that nothing was found, and not that nothing is there.
    """

    rate: float
    full: float

    def pages(self, buckets: float) -> int:
        """Return the expected pages of a range of so many buckets: at least one."""
        return max(1, math.ceil(self.rate * buckets / self.full))


@dataclass(frozen=True)
class Part:
    """The range of a partition, half-open but for the last one, and what it may cost."""

    start: datetime
    end: datetime
    pages: int
    is_last: bool = True
    """A point at ``end`` belongs to it, where the service sends one."""
    share: int | None = None
    """Of what may be requested: the allowance of a task whose requests only it counts."""
    most: int | None = None
    """The pages that it may have with ``maxPages``: what others are not expected to need is its."""


def buckets(scan: Scan) -> int:
    """Return how many buckets a scan has; the last one may be shorter."""
    query = scan.query
    assert query.start is not None
    assert query.end is not None
    assert query.interval is not None
    return math.ceil((query.end - query.start) / query.interval)


def longest(width: timedelta) -> int:
    """Return the most buckets of a partition, 31 days, however few pages these are.

    The longest range that a service answers is not documented (§8).
    """
    return max(1, _LONGEST // width)


def measure(
    client: Client,
    scan: Scan,
    options: dict[str, Any],
    most: int = MOST_PAGES,
    too_dense: float | None = None,
) -> tuple[Density, int]:
    """Read a page of a hundredth of the range, and return the density and the pages it cost.

    The hundredth is its middle: data at the end may be late. Where nothing is there, one or two
    others are looked at. With ``too_dense``, in pages of a bucket, four are looked at until one has
    more, and the densest counts: the beginning and the end, because a tag that is added or removed
    makes data denser on one side, and two between. At most ``most`` pages are read: what was found
    by then is too little rather than too much.
    """
    width, start, count = _width(scan), scan.query.start, buckets(scan)
    assert start is not None
    wide = max(1, min(count // 100, longest(width)))
    full = float(options["page_size"])

    def reading(first: int, many: int, most: int) -> Iterator[Page]:
        bounds = {"start": start + first * width, "end": start + (first + many) * width}
        # Without max_pages one more would be under way than is taken.
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
    """Read a page of some buckets; where they have more, one of them to its end."""
    again = wide > 1
    pages = reading(place, wide, 1 if again else most)
    first = next(pages)
    if first.is_last:
        # A page with more points than it was asked for counts something else.
        return Density(len(first) / wide, max(full, len(first))), 1
    one = reading(place, 1, most - 1) if again else chain([first], pages)
    lengths = [len(page) for page in one]
    rate = max(sum(lengths), len(first) / wide)
    return Density(float(rate), max(1.0, len(first))), len(lengths) + again


def parts(scan: Scan, density: Density, by: str | int | None) -> list[Part]:
    """Cut a scan between buckets, into parts of at least ten pages, or of 31 days.

    ``by`` is the length of a part (``"1d"``), of which as many are joined as it takes, or the most
    that there may be, where none is longer than 31 days.
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
    """Return the least multiple of a length that has ten pages; at most the whole, or 31 days."""
    first = scan.split(by)[0]
    count, many, width = buckets(scan), buckets(first), _width(scan)
    needed = math.ceil(LEAST_PAGES * density.full / density.rate) if density.rate else count
    times = max(1, min(math.ceil(needed / many), longest(width) // many))
    return width * min(many * times, max(count, many))


def _width(scan: Scan) -> timedelta:
    return scan.query.interval or timedelta()


def plan_of(client: Client, scan: Scan, parts: list[Part]) -> Plan:
    """Show the parts and the allowance."""
    tasks = tuple(Task("", "backfill", part.start, part.end, part.pages) for part in parts)
    allowance, pages = client.allowance, sum(part.pages for part in parts)
    now = client.plan(scan).now
    return Plan(tasks, pages, allowance, reserve=0, skipped=0, now=now, kind="scan")


def shared(plan: Plan, parts: list[Part], max_pages: int | None) -> list[Part]:
    """Give each part its share of what may be requested; refuse what is not enough.

    Raises :class:`AllowanceExhausted`, or :class:`QueryError` where ``maxPages`` was given. Each
    names both numbers, and is raised before any task.
    """
    pages, left = sum(part.pages for part in parts), plan.allowance.left
    if max_pages is not None:
        if pages > max_pages:
            raise QueryError(
                f"{pages} pages are expected, and maxPages is {max_pages}.",
                hint="Raise maxPages, read a shorter range, or take a larger page_size or "
                "interval.",
            )
        parts = [replace(part, most=part.pages + max_pages - pages) for part in parts]
        left = max_pages if left is None else min(left, max_pages)
    plan.raise_for_allowance()
    return with_shares(parts, left)


def with_shares(parts: list[Part], limit: int | None) -> list[Part]:
    """Divide a limit among parts, by their pages; none stays none."""
    if limit is None:
        return parts
    pages = sum(part.pages for part in parts)
    return [replace(part, share=limit * part.pages // pages) for part in parts]
