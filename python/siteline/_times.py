"""Times and durations as text. Times are aware and in UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta, tzinfo


@overload
def iso(at: datetime) -> str: ...
@overload
def iso(at: datetime | None) -> str | None: ...
def iso(at: datetime | None) -> str | None:
    """Write ISO 8601 text such as ``2026-11-01T00:00:00Z``; ``None`` stays ``None``."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def zone_of(name: str) -> tzinfo:
    from datetime import UTC
    from zoneinfo import ZoneInfo

    return UTC if name == "UTC" else ZoneInfo(name)


def in_zone(at: datetime, zone: tzinfo) -> datetime:
    """Convert a time, unless its local year is not 1 to 9999."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at


def local_microseconds(at: Any, zone: str) -> int:
    """Convert a date, a time or a time of day to microseconds of a zone's clock since 1970.

    Raises ValueError or TypeError for anything else, and for a time of day with an offset.
    """
    from datetime import date, datetime, time, timedelta

    from siteline._arguments import local_text

    at = local_text(at) or at
    if isinstance(at, str):
        written = at.strip()
        is_time = ":" in written[:3]
        at = time.fromisoformat(written) if is_time else datetime.fromisoformat(written)
    if isinstance(at, time):
        at = datetime.combine(date(1970, 1, 1), at)
        if at.tzinfo is not None:
            raise ValueError
    elif not isinstance(at, datetime):
        raise TypeError
    local: datetime = at if at.tzinfo is None else at.astimezone(zone_of(zone)).replace(tzinfo=None)
    return (local - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def from_microseconds(count: int) -> datetime:
    """Convert microseconds since the Unix epoch."""
    from datetime import UTC, datetime, timedelta

    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=count)


def to_minute(at: datetime) -> str:
    """Write ``2026-11-01 00:00``."""
    return at.strftime("%Y-%m-%d %H:%M")


def to_second(at: datetime) -> str:
    """Write ``2026-11-01 00:00:30``; seconds of 0 are omitted."""
    return at.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def to_microsecond(at: datetime) -> str:
    """Write ``2026-11-01 00:00:30.25``; a fraction of 0, and seconds of 0, are omitted."""
    if not at.microsecond:
        return to_second(at)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond:06d}".rstrip("0")


def reached(
    settled_through: datetime | None,
    read_through: datetime | None,
    newest: datetime,
    text: Callable[[datetime], str],
) -> str:
    """Write how far a feed is settled and read, with the gaps before the newest read."""
    settled = "nothing settled yet"
    if settled_through is not None:
        settled = f"settled through {text(settled_through)}"
    if read_through == newest:
        return f"{settled}, read through {text(newest)}"
    read = "not from its beginning" if read_through is None else f"through {text(read_through)}"
    return f"{settled}, read {read}, with gaps up to {text(newest)}"


def duration(length: timedelta) -> str:
    """Write a duration to a tenth, such as ``2.9 d``, ``25 h``, ``90 min`` or ``5 s``.

    The unit is the largest one that fits at least twice, or without a remainder.
    """
    seconds = round(length.total_seconds(), 3) + 0.0  # no "-0 s"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:g} s"
