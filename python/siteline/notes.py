"""What is told of each request of a client: ``on_request=`` of :class:`siteline.Client`.

The core does not call Python code while it works. A request is told when it has ended, at the
latest with the page that it was made for, on the thread (in asyncio: on the event loop) that waits
for that page, without a lock and with the context variables of the call that sent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from siteline.errors import ConfigError

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["RequestNote"]


class RequestNote(NamedTuple):
    """One request that has ended: what the callable passed as ``on_request=`` gets.

    Each attempt is told once, repeats included, in the order in which they ended. No field holds a
    token, an assertion or a cursor.

    - ``kind``: ``"token"``, ``"discovery"`` or ``"data"``
    - ``method``, ``url``: the HTTP method, and the address without its query
    - ``status``: the HTTP status; ``None`` where no reply came
    - ``error``: the name of the class of its error in :mod:`siteline.errors`, also with status 200,
      where the body was cut; ``"abandoned"`` where its caller gave up before the reply was
      complete: Ctrl-C, a cancelled task, a prefetched page that nobody took; ``None`` if it was
      good
    - ``started``: when it began, by the client's clock: this machine's
    - ``duration``: seconds until the reply was complete, or until it failed
    - ``bytes``: the length of the reply's body as it came, compressed or not
    - ``points``: the points on its page, repeats included; ``None`` if it brought no page
    - ``attempt``: which attempt of its call it was, from 1
    - ``reason``: how the attempt before it ended, in a few words: ``"503"``, ``"body cut"``
    - ``waited``: seconds of the pause after that
    - ``feed``: the name of the feed of a sync that it read; ``None`` elsewhere
    - ``allowance_left``: requests left today after it; ``None`` where no limit is known (§8), and
      for what does not count
    - ``sent``: ``False`` where no byte of it left: then it does not count

    An exception of the callable is raised by the call, in the place of its result. No page is lost:
    the next ``collect()``, or the next ``next(pages)``, continues after it, and a sync has applied
    it. A sync with ``concurrency`` above 1 may request its other pages again. A request that is
    under way then is ended, and stays counted. The remaining requests are told with the next
    call of the client, as are those of calls that were given up; ``client.close()`` tells what
    is left. Requests that the callable makes itself are not told.

    >>> notes = []
    >>> with sandbox.client(on_request=notes.append) as client:
    ...     table = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
    ...                         interval="1h", page_size=50).collect()
    >>> [(note.kind, note.status, note.points) for note in notes if note.kind == "data"]
    [('data', 200, 50), ('data', 200, 22)]
    """

    kind: str
    """``"token"``, ``"discovery"`` or ``"data"``."""
    method: str
    """The HTTP method."""
    url: str
    """The address without its query."""
    status: int | None
    """The HTTP status; ``None`` where no reply came."""
    error: str | None
    """The name of its error's class, or ``"abandoned"``; ``None`` if it was good."""
    started: datetime
    """When it began, by the client's clock."""
    duration: float
    """Seconds until the reply was complete, or until it failed."""
    bytes: int
    """The length of the reply's body as it came."""
    points: int | None
    """The points on its page; ``None`` if it brought no page."""
    attempt: int
    """Which attempt of its call it was, from 1."""
    reason: str | None
    """How the attempt before it ended."""
    waited: float
    """Seconds of the pause before it."""
    feed: str | None
    """The feed of a sync that it read."""
    allowance_left: int | None
    """Requests left today after it, where that is known."""
    sent: bool
    """Whether a byte of it may have left."""


def note(
    request: tuple[str, str, str, int | None, str | None],
    times: tuple[datetime, float],
    body: tuple[int, int | None],
    attempt: tuple[int, str | None, float],
    others: tuple[str | None, int | None, bool],
) -> RequestNote:
    """Return the note with these fields, in their order."""
    return RequestNote._make((*request, *times, *body, *attempt, *others))


def checked(on_request: Any) -> Any:
    """Return the argument ``on_request=``."""
    if not callable(on_request):
        raise ConfigError("on_request= is a callable that takes a siteline.RequestNote.")
    from inspect import iscoroutinefunction

    if iscoroutinefunction(on_request):
        raise ConfigError("on_request= is an async function, which nobody would await.")
    return on_request
