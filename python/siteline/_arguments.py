"""Converts the times of users to whole numbers for the core. Raises ValueError."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from math import nan
from typing import Any

from siteline._escape import described

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(at: Any) -> int | str:
    """Return a time in nanoseconds since 1970, and a date or a naive datetime as text."""
    text = local_text(at)
    return nanoseconds(at) if text is None else text


def nanoseconds(at: Any) -> int:
    if not hasattr(at, "astimezone"):
        raise ValueError(f"is {described(at)}, not a time with a zone.")
    try:
        is_naive = at.utcoffset() is None
        if not is_naive:
            since = at - _EPOCH
            exists = at.tzinfo is UTC
            if not exists:
                # A local time that clocks skip is another time after a round trip through UTC.
                back = at.astimezone(UTC).astimezone(at.tzinfo)
                exists = back.isoformat()[:19] == at.isoformat()[:19]
    except Exception as error:  # NaT, and years that UTC does not have
        raise ValueError("is not a time between the years 1 and 9999.") from error
    if is_naive:
        raise ValueError("is a naive datetime: its zone is unknown.")
    if not exists:
        raise ValueError("does not exist in its zone: clocks were set forward over it.")
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    # Only pandas has nanoseconds.
    return int(microseconds * 1_000 + getattr(since, "nanoseconds", 0))


def local_text(at: Any) -> str | None:
    """Return a date, or a naive datetime such as NumPy's, as text; ``None`` for other values."""
    if type(at).__name__ == "datetime64":
        if at.dtype.str[-3:] in ("ns]", "ps]", "fs]", "as]"):
            # A coarser unit would overflow without an error.
            at = at.astype("datetime64[us]")
        at = at.item()
        if not isinstance(at, date):  # NaT, and years that Python does not have
            raise ValueError("is not a time between the years 1 and 9999.")
    if isinstance(at, datetime):
        return at.isoformat() if at.tzinfo is None else None
    return at.isoformat() if isinstance(at, date) else None


def fixed_length(given: Any) -> float | None:
    """Return a duration of Python, NumPy or pandas in seconds; ``None`` for other values."""
    if _is_of_numpy(given):
        # Months and years have no fixed length.
        if given.dtype.str[3:] in ("", "[M]", "[Y]"):
            return None
        given = given.astype("timedelta64[us]").item()
        if given is None:  # NaT
            return nan
    try:
        if hasattr(given, "total_seconds"):
            return float(given.total_seconds())
        return float(given.nanos / 1e9)
    except (AttributeError, TypeError, ValueError):
        # It is no offset of pandas, or one without a fixed length.
        return None


def seconds(given: Any) -> float | None:
    """Return a duration of Python, NumPy or pandas, or a number, in seconds; otherwise ``None``."""
    found = fixed_length(given)
    is_number = hasattr(given, "__float__") or hasattr(given, "__index__")
    if found is not None or not is_number or _is_of_numpy(given):
        return found
    try:
        return float(given)
    except (ArithmeticError, TypeError, ValueError):  # an array, or a class
        return None


def _is_of_numpy(given: Any) -> bool:
    return type(given).__name__ == "timedelta64"


def time_of_day(at: time) -> tuple[int, int]:
    """Return the seconds since midnight, and the zone's offset in seconds."""
    offset = at.utcoffset()
    if offset is None:
        # A zone whose offset depends on the date has none either.
        raise ValueError("has no fixed offset from UTC.")
    return (at.hour * 60 + at.minute) * 60 + at.second, offset.days * 86_400 + offset.seconds
