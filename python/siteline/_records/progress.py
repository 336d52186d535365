"""The progress of a read."""

from dataclasses import dataclass
from datetime import datetime

from siteline._records.record import FrozenRecord


@dataclass(frozen=True)
class Progress(FrozenRecord):
    """The progress of a read or a sync, passed to the callable of ``progress=`` after each page.

    An exception in the callable ends the read without losing a page. The same ``collect()``, or the
    next ``next(pages)``, continues after the pages that were read.

    >>> events = []
    >>> frame = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
    ...                     interval="1h", page_size=50, progress=events.append).to_pandas()
    >>> [(event.pages, event.points, event.done) for event in events]
    [(1, 50, False), (2, 72, True)]
    """

    pages: int
    """Pages read so far."""
    points: int
    """Points on them, repeats included."""
    requests: int
    """Requests for them and for the next page, retries included."""
    allowance_left: int | None
    """Requests left today; ``None`` without a known limit."""
    newest: datetime | None
    """The newest bucket timestamp so far; ``None`` before the first point."""
    fraction: float | None
    """The part of the range before ``newest``, from 0 to 1; 1 after the last page.

    ``None`` unless pages arrive in order of time and have more than one series."""
    done: bool
    """Whether the last page was read."""
    pages_expected: int | None
    """All pages, estimated from earlier reads; ``None`` without a similar one."""
