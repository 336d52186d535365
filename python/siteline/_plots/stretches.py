"""A line in pixels, with its gaps.

Where a series has more points than there is room for, a column of pixels shows the lowest and the
highest of its points, so that no spike is lost. A bucket that is missing breaks the line. A gap
that lies within one column cannot be seen, and is counted.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from operator import sub
from typing import NamedTuple

__all__: list[str] = []

COLUMN = 2
"""The width of a column, in pixels."""


class Place(NamedTuple):
    """The lowest and highest number at a place."""

    x: float
    low: float
    high: float


class Line(NamedTuple):
    """The stretches of a line without a gap, and the number of gaps, seen or not."""

    stretches: list[list[Place]]
    gaps: int
    hidden: int
    longest: int
    """The longest gap, in microseconds: the time between the two points around it."""


def line(
    times: list[int], lows: list[float], highs: list[float],
    span: tuple[int, int], pixels: float, widest: int | None,
) -> Line:  # fmt: skip
    """Return a line over a span of time that is so many pixels wide, beginning at 0.

    ``times`` ascend; two that are further apart than ``widest`` have a gap between them.
    """
    start, length = span[0], max(span[1] - span[0], 1)
    steps = list(map(sub, islice(times, 1, None), times))
    gaps = [step for step in steps if step > widest] if widest is not None else []
    count = max(int(pixels / COLUMN), 1)
    if len(times) <= count:
        parts = _each(times, lows, highs, start, pixels / length, widest)
        return Line(parts, len(gaps), 0, max(gaps, default=0))
    parts, seen = [], 0
    first, before = bisect_left(times, start), None
    for column in range(count):
        # The last column has its end, and what is beyond it.
        bound = start + length * (column + 1) // count
        last = bisect_left(times, bound, first) if column + 1 < count else len(times)
        if last == first:
            continue
        x = (column + 0.5) * pixels / count
        place = Place(x, min(lows[first:last]), max(highs[first:last]))
        after_gap = before is not None and widest is not None and times[first] - before > widest
        seen += after_gap
        if parts and not after_gap:
            parts[-1].append(place)
        else:
            parts.append([place])
        first, before = last, times[last - 1]
    return Line(parts, len(gaps), len(gaps) - seen, max(gaps, default=0))


def _each(
    times: list[int], lows: list[float], highs: list[float],
    start: int, scale: float, widest: int | None,
) -> list[list[Place]]:  # fmt: skip
    parts: list[list[Place]] = []
    before = None
    for at, low, high in zip(times, lows, highs, strict=True):
        place = Place((at - start) * scale, low, high)
        if before is None or (widest is not None and at - before > widest):
            parts.append([place])
        else:
            parts[-1].append(place)
        before = at
    return parts
