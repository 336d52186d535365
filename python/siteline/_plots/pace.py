"""The pace of a day: how many requests it would have if its rest were as its beginning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline._times import to_minute
from siteline.errors import QueryError

if TYPE_CHECKING:
    from siteline.types import Allowance, Plan

__all__: list[str] = []

_DAY = timedelta(days=1)
_EARLY = timedelta(hours=1)
"""Before that much of a day is over, one read more or less would be most of its pace."""


class Pace(NamedTuple):
    """What a day would have at its end."""

    at_end: int
    """All its requests, those that were sent included."""
    spent_at: datetime | None
    """When the limit would be reached; ``None`` if not on this day, or if it has been already."""


def instant(given: datetime | str) -> datetime:
    """Return an aware time in UTC, of one or of its ISO 8601 text."""
    try:
        found = datetime.fromisoformat(given) if isinstance(given, str) else given
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (AttributeError, TypeError, ValueError):
        pass
    raise QueryError(f"now={given!r} is no time with a zone, such as 2026-11-20T12:00Z.")


def time_of(plan: Plan | None, known: Allowance) -> datetime | None:
    """Return the time of a plan, where that is in the day which the ledger has counted."""
    if plan is None or not timedelta(0) <= _gone(known, plan.now) <= _DAY:
        return None
    return plan.now.astimezone(UTC)


def _gone(known: Allowance, now: datetime) -> timedelta:
    """Return how much of the day is over."""
    return now - (known.resets_at - _DAY)


def pace(known: Allowance, now: datetime) -> Pace | None:
    """Return the pace of the day that the ledger has counted; ``None`` too early in the day."""
    ends = known.resets_at.astimezone(UTC)
    gone = _gone(known, now)
    if not timedelta(0) <= gone <= _DAY:
        raise QueryError(
            f"now={to_minute(now)} UTC is not in the day that ends {to_minute(ends)} UTC.",
            hint="Ask client.allowance and the clock at the same time.",
        )
    if gone < _EARLY:
        return None
    at_end = round(known.used * (_DAY / gone))
    spent_at = None
    if known.limit is not None and known.used < known.limit < at_end:
        spent_at = ends - _DAY + gone * (known.limit / known.used)
    return Pace(at_end, spent_at)
