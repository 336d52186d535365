"""The records that callables of the user get: the event of a request, and the progress of a read.

An event is delivered at the latest with the page of its request, on the thread or event loop that
waits for that page, without a lock and with the context variables of the call.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from siteline._records.record import FrozenRecord


@dataclass(frozen=True)
class RequestEvent(FrozenRecord):
    """A finished attempt of a request, passed to the callable of ``on_request=``.

    Each attempt is reported once, in the order in which they ended. No field contains a token, an
    assertion or a cursor.

    The call raises an exception of the callable. No page is lost: the next ``collect()``, or the
    next ``next(pages)``, continues after it, and a sync has applied it. A request in flight is
    cancelled and stays counted. Remaining events, also of abandoned calls, are delivered with the
    client's next call or by ``client.close()``. Requests of the callable itself are not reported.

    >>> events = []
    >>> with sandbox.client(on_request=events.append) as client:
    ...     table = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
    ...                         interval="1h", page_size=50).collect()
    >>> [(event.kind, event.status, event.points) for event in events if event.kind == "data"]
    [('data', 200, 50), ('data', 200, 22)]
    """

    kind: Literal["token", "discovery", "data"]
    """``"token"``, ``"discovery"`` or ``"data"``."""
    method: str
    """The HTTP method."""
    url: str
    """The address without its query."""
    status: int | None
    """The HTTP status; ``None`` without a reply."""
    error: str | None
    """The name of its error in :mod:`siteline.errors`; ``None`` after success.

    A reply with status 200 has one if its body was cut. ``"abandoned"`` if the caller gave up
    before the reply was complete: Ctrl-C, a cancelled task, an unused prefetched page."""
    started: datetime
    """When it began, by this machine's clock."""
    duration: float
    """Seconds until the reply was complete, or until it failed."""
    bytes: int
    """The length of the reply's body as received."""
    points: int | None
    """The points on its page, repeated ones included; ``None`` without a page."""
    attempt: int
    """The number of the attempt of its call, from 1."""
    reason: str | None
    """How the attempt before it ended: ``"503"``, ``"body truncated"``."""
    waited: float
    """Seconds of the pause before it."""
    feed: str | None
    """The name of the feed; ``None`` outside of a sync."""
    allowance_left: int | None
    """Requests left today after it; ``None`` without a known limit, and for uncounted requests."""
    sent: bool
    """``False`` if no byte was sent: the request is not counted."""


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
