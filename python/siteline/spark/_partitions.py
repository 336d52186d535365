"""What a read costs, and the partitions into which it is cut."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline.errors import QueryError
from siteline.sync import Plan, Task

if TYPE_CHECKING:
    from datetime import datetime

    from siteline._siteline import Client, Scan

LEAST_PAGES = 10
"""Of a partition. The last page of each is partly filled, so that this costs a tenth at most."""
_MOST_PARTS = 10_000


class Density(NamedTuple):
    """How many points a query has in a bucket, all its series together, and on a full page."""

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
    """Of the allowance, or of ``maxPages``."""


def buckets(scan: Scan) -> int:
    """Return how many buckets a scan has; the last one may be shorter."""
    query = scan.query
    assert query.start is not None
    assert query.end is not None
    assert query.interval_seconds is not None
    return math.ceil((query.end - query.start) / timedelta(seconds=query.interval_seconds))


def measure(client: Client, scan: Scan, options: dict[str, Any]) -> tuple[Density, int]:
    """Read a page of a hundredth of the range, and return the density and the pages it cost.

    The hundredth is its middle: data at the end may be late. Where nothing is there, one or two
    others are looked at. Where it has more than a page, one bucket is read to its end.
    """
    width = timedelta(seconds=scan.query.interval_seconds or 0)
    start, count = scan.query.start, buckets(scan)
    assert start is not None
    wide, cost, full = max(1, count // 100), 0, float(options["page_size"])

    def reading(first: int, many: int) -> Scan:
        bounds = {"start": start + first * width, "end": start + (first + many) * width}
        return client.data(**{**options, **bounds})

    for place in (count // 2, count // 4, count * 3 // 4):
        page = next(reading(place, wide).pages())
        cost += 1
        if not page.is_last:
            bucket = reading(place, 1).collect()
            cost += bucket.report["pages"]
            return Density(float(len(bucket)), max(1.0, len(page))), cost
        if len(page):
            # A page with more points than it was asked for counts something else.
            return Density(len(page) / wide, max(full, len(page))), cost
        if count < 4:
            break
    return Density(0.0, full), cost


def parts(scan: Scan, density: Density, by: str | int | None) -> list[Part]:
    """Cut a scan between buckets, into parts of at least ten pages.

    ``by`` is the length of a part (``"1d"``), of which as many are joined as it takes, or the most
    that there may be.
    """
    count = buckets(scan)
    most = min(max(1, density.pages(count) // LEAST_PAGES), count, _MOST_PARTS)
    if isinstance(by, str):
        pieces = scan.split(_joined(scan, density, by))
    else:
        pieces = scan.split(min(by or most, most))
    bounds = [(piece.query.start, piece.query.end, buckets(piece)) for piece in pieces]
    return [
        Part(start, end, density.pages(many), end == scan.query.end)
        for start, end, many in bounds
        if start is not None and end is not None
    ]


def _joined(scan: Scan, density: Density, by: str) -> timedelta:
    """Return the least multiple of a length that has ten pages; at most the whole."""
    first = scan.split(by)[0]
    count, many = buckets(scan), buckets(first)
    width = timedelta(seconds=scan.query.interval_seconds or 0)
    needed = math.ceil(LEAST_PAGES * density.full / density.rate) if density.rate else count
    return width * min(many * math.ceil(needed / many), max(count, many))


def plan_of(client: Client, scan: Scan, parts: list[Part]) -> Plan:
    """Show the parts and the allowance."""
    tasks = tuple(Task("", "fill", part.start, part.end, part.pages) for part in parts)
    allowance, pages = client.allowance, sum(part.pages for part in parts)
    now = client.plan(scan).now
    return Plan(tasks, pages, allowance, reserve=0, set_aside=0, now=now, kind="scan")


def shared(plan: Plan, parts: list[Part], max_pages: int | None) -> list[Part]:
    """Give each part its share of what may be requested; refuse what is not enough.

    Raises :class:`AllowanceExhausted`, or :class:`QueryError` where ``maxPages`` was given. Each
    names both numbers, and is raised before any task.
    """
    pages = sum(part.pages for part in parts)
    if max_pages is None:
        plan.raise_for_allowance()
        limit = plan.allowance.left
    elif pages > max_pages:
        raise QueryError(
            f"{pages} pages are expected, and maxPages is {max_pages}.",
            hint="Raise maxPages, read a shorter range, or take a larger page_size or interval.",
        )
    else:
        limit = max_pages
        plan.raise_for_allowance()
    return with_shares(parts, limit)


def with_shares(parts: list[Part], limit: int | None) -> list[Part]:
    """Divide a limit among parts, by their pages; none stays none."""
    if limit is None:
        return parts
    pages = sum(part.pages for part in parts)
    return [replace(part, share=limit * part.pages // pages) for part in parts]
