"""Ticks of an axis of numbers: multiples of 1, 2 or 5 times a power of ten."""

from __future__ import annotations

from math import ceil, floor, isfinite, log10
from typing import NamedTuple

__all__: list[str] = []


class Scale(NamedTuple):
    """The range of an axis of numbers, and its ticks with their labels."""

    low: float
    high: float
    ticks: list[tuple[float, str]]

    def share(self, value: float) -> float:
        """Return where a value lies, from 0 at the low end to 1."""
        # Divided by two first: the difference of two doubles may overflow.
        span = self.high / 2 - self.low / 2
        return min(max((value / 2 - self.low / 2) / span, 0.0), 1.0) if span > 0 else 0.5


def scale(low: float, high: float, most: int, *, whole: bool = False) -> Scale:
    """Return an axis that holds both numbers and has at most so many ticks, at least two.

    ``whole``: ticks are whole numbers, as of counts.
    """
    low, high = _apart(low, high)
    span = high / 2 - low / 2
    step = _step(span, max(most - 1, 1) / 2)
    step = max(step, 1.0) if whole else step
    if not (isfinite(step) and step > abs(low + (high / 2 - low / 2)) * 1e-13):
        # Further digits than a double has.
        return Scale(low, high, [(low, f"{low:.4g}"), (high, f"{high:.4g}")])
    first, last = floor(low / step), ceil(high / step)
    if not (isfinite(first * step) and isfinite(last * step)):
        first, last = ceil(low / step), floor(high / step)
    places = [index * step for index in range(first, last + 1)]
    low, high = min(low, places[0]), max(high, places[-1])
    return Scale(low, high, list(zip(places, _labels(places, step), strict=True)))


def _apart(low: float, high: float) -> tuple[float, float]:
    """Return the range, or one around a single number."""
    if high / 2 - low / 2 > abs(high) * 1e-12:
        return low, high
    room = abs(high) * 0.1 or 1.0
    return max(low - room, -1.7e308), min(high + room, 1.7e308)


def _step(half_span: float, half_count: float) -> float:
    """Return the smallest round step with which so many fit."""
    least = half_span / half_count
    if least <= 0 or not isfinite(least):
        return least
    power = floor(log10(least))
    for factor in (1, 2, 5, 10):
        try:
            # A power below 1 as a quotient, so that 0.1 is the double that is written so.
            step = factor * 10.0**power if power >= 0 else factor / 10.0**-power
        except (OverflowError, ZeroDivisionError):
            return least
        if step >= least * (1 - 1e-9):
            return step
    return least


def _labels(places: list[float], step: float) -> list[str]:
    most = max(map(abs, places))
    power = floor(log10(step) + 1e-9)
    if 1e-4 <= most < 1e7 and power >= -6:
        digits = max(0, -power)
        return [_signed(f"{place:,.{digits}f}") for place in places]
    # As many digits as tell two ticks apart.
    digits = max(0, floor(log10(most)) - power)
    return [_signed(f"{place:.{digits}e}".replace("e+", "e")) if place else "0" for place in places]


def _signed(label: str) -> str:
    unsigned = label.removeprefix("-")
    if not unsigned.strip("0.,"):
        return unsigned
    return label if unsigned == label else f"\N{MINUS SIGN}{unsigned}"
