"""The series of a picture: which are drawn, their names, and their lines."""

from __future__ import annotations

from collections import Counter
from math import inf
from operator import sub
from typing import TYPE_CHECKING, NamedTuple

from siteline._plots.columns import known
from siteline._plots.stretches import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from siteline._plots.columns import Ids, Points
    from siteline._plots.stretches import Line

    _Labels: TypeAlias = Mapping[Ids, str] | None

__all__: list[str] = []

_TAG = 4


class Name(NamedTuple):
    """What a series is called, and the unit of its numbers, where one was given."""

    label: str
    unit: str | None


class Drawn(NamedTuple):
    """The lines of a series, and what is known of them."""

    ids: Ids
    points: int
    line: Line
    band: Line | None
    low: float
    high: float


def names(series: Sequence[Ids], labels: _Labels) -> tuple[dict[Ids, Name], str]:
    """Name the series; the ids that all of them share are returned apart."""
    differing = [n for n in range(_TAG + 1) if len({ids[n] for ids in series}) > 1]
    own = [n for n in range(_TAG + 1) if n in differing or n == _TAG]
    by_ids = {ids: _joined(ids, own) for ids in series}
    found = {ids: _named(ids, labels) for ids in series}
    given = Counter(name.label for name in found.values() if name is not None)
    named = {}
    for ids, name in found.items():
        if name is None:
            named[ids] = Name(by_ids[ids], None)
        elif given[name.label] > 1:
            # Two series of one name stay apart.
            named[ids] = Name(f"{name.label} ({by_ids[ids]})", name.unit)
        else:
            named[ids] = name
    return named, _joined(series[0], [n for n in range(_TAG) if n not in own]) if series else ""


def _joined(ids: Ids, places: list[int]) -> str:
    return "/".join(ids[n] or "\N{EN DASH}" for n in places if n == _TAG or ids[n] is not None)


def _named(ids: Ids, labels: _Labels) -> Name | None:
    if labels is None:
        return None
    label = labels.get(ids)
    return None if label is None else Name(label, None)


def smallest_step(points: Points, series: Sequence[Ids]) -> int | None:
    """Return the smallest time between two points of a series."""
    least = inf
    for ids in series:
        times = points.times(ids)
        least = min(least, min(map(sub, times[1:], times), default=inf))
    return None if least in (inf, 0) else int(least)


def drawn(
    points: Points, ids: Ids, measure: str, span: tuple[int, int], pixels: float, widest: int | None
) -> Drawn:
    """Return the line of a series, and its band where ``measure`` is the value."""
    times = points.times(ids)
    at, (values,) = known(times, points.numbers(ids, measure))
    found, band = line(at, values, values, span, pixels, widest), None
    low, high = min(values, default=inf), max(values, default=-inf)
    if measure == "value":
        both = (points.numbers(ids, "minimum"), points.numbers(ids, "maximum"))
        at, (lows, highs) = known(times, *both)
        if at:
            band = line(at, lows, highs, span, pixels, widest)
            # A minimum above its maximum is drawn as the service sent it.
            low, high = min(low, *lows, *highs), max(high, *lows, *highs)
    return Drawn(ids, len(times), found, band, low, high)
