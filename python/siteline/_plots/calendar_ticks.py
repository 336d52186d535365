"""Ticks of an axis of time, on the clock of a zone: full hours, midnights, Mondays, months, years.

Ticks are found on the zone's clock and then placed in time, so that a day has 23 or 25 hours where
clocks are set; a time that the clock leaves out has no tick, one that it shows twice has two.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

__all__: list[str] = []

SECOND = 1_000_000
"""Times are microseconds since the Unix epoch."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400
# Steps in seconds, those of a day and more in days, then in months.
_SECONDS = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1_800,
    3_600,
    7_200,
    10_800,
    21_600,
    43_200,
)
_DAYS = (1, 2, 7, 14)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200, 6_000)
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# The first and the last day that every zone's clock can show.
_FIRST, _LAST = datetime(1, 1, 3), datetime(9999, 12, 29)


class Tick(NamedTuple):
    """A tick: when, its label, and the label below it that holds until another one does."""

    at: int
    label: str
    below: str


def local(at: int, zone: tzinfo) -> datetime:
    """Return a time on the clock of a zone, without the zone."""
    try:
        return (_EPOCH + timedelta(microseconds=at)).astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        return _FIRST if at < 0 else _LAST


def instants(on_clock: datetime, zone: tzinfo) -> list[int]:
    """Return when a clock of the zone shows a time: once, twice where it is set back, or never."""
    found = []
    for fold in (0, 1):
        aware = on_clock.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        at = (aware - _EPOCH) // timedelta(microseconds=1)
        if local(at, zone).replace(fold=0) == on_clock and at not in found:
            found.append(at)
    return found


def ticks(start: int, end: int, zone: tzinfo, most: int) -> list[Tick]:
    """Return at most about so many ticks between two times, both included."""
    bounds = [local(at, zone).replace(fold=0) for at in (start, end)]
    # Where the clock was set between the bounds, the later one may show the earlier time.
    set_by = timedelta(microseconds=end - start) - (bounds[1] - bounds[0])
    first = _moved(min(bounds), -abs(set_by))
    last = _moved(max(bounds), abs(set_by))
    seconds = max((end - start) / SECOND, 1e-6) / max(most, 1)
    found = [
        Tick(at, label, below)
        for on_clock, label, below in _steps(first, last, seconds)
        for at in instants(on_clock, zone)
        if start <= at <= end
    ]
    return sorted(found)


def _moved(at: datetime, by: timedelta) -> datetime:
    return min(max(at, _FIRST + abs(by)) + by, _LAST)


def _steps(first: datetime, last: datetime, least: float) -> Iterator[tuple[datetime, str, str]]:
    """Yield round times of a clock, at least so many seconds apart, with their labels."""
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    if least <= _SECONDS[-1]:
        step = timedelta(seconds=next(one for one in _SECONDS if one >= least))
        form = "%H:%M:%S" if step < timedelta(minutes=1) else "%H:%M"
        at = midnight + (first - midnight) // step * step
        while at <= last:
            yield at, at.strftime(form), f"{at:%Y-%m-%d}"
            at += step
    elif least <= _DAYS[-1] * _DAY:
        days = next(one for one in _DAYS if one * _DAY >= least)
        # Weeks begin on Mondays, and days are counted from a fixed one, so that a longer range has
        # the same ticks. The first day of the calendar was a Monday.
        at = midnight - timedelta(
            days=min((midnight.toordinal() - 1) % days, (midnight - _FIRST).days)
        )
        while at <= last:
            yield at, f"{_NAMES[at.month - 1]} {at.day}", f"{at.year}"
            at += timedelta(days=days)
    else:
        yield from _by_months(first, last, least)


def _by_months(
    first: datetime, last: datetime, least: float
) -> Iterator[tuple[datetime, str, str]]:
    months = least / (30.4 * _DAY)
    step = next((one for one in _MONTHS if one >= months), _MONTHS[-1])
    count = first.year * 12 // step * step
    while (at := _month(count)) is not None and at <= last:
        if at >= _FIRST:
            name = _NAMES[at.month - 1]
            yield (at, name, f"{at.year}") if step < 12 else (at, f"{at.year}", "")
        count += step


def _month(count: int) -> datetime | None:
    """Return the first day of a month, counted from the year 0."""
    year, month = divmod(count, 12)
    if year < 1:
        return _FIRST - timedelta(days=2)
    return datetime(year, month + 1, 1) if year <= 9999 else None
