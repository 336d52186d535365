"""A duration of the command line, such as ``5m``, where the command itself needs its length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["duration_of"]


def duration_of(option: str, text: str) -> timedelta:
    """Read a duration as siteline reads all of them; an error names the option."""
    from datetime import UTC, datetime

    from siteline.errors import QueryError
    from siteline.testing import Clock

    begin = datetime(2000, 1, 1, tzinfo=UTC)
    clock = Clock(begin)
    try:
        # The reader of durations is the core's, and this is its shortest way in.
        clock.advance(text)
    except QueryError as error:
        raise QueryError(f"{option} {text!r} is not a duration.", hint=error.hint) from None
    return clock.now() - begin
