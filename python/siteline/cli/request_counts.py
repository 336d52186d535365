"""The requests of a run, counted from what the client tells of them."""

from __future__ import annotations

from collections import Counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from siteline.types import RequestEvent

__all__ = ["RequestCounts"]


class RequestCounts:
    """What a client's requests were since :meth:`clear`: it takes its ``on_request=``."""

    def __init__(self) -> None:
        """Count from nothing."""
        self.clear()

    def clear(self) -> None:
        """Forget the last run."""
        self.requests: Counter[tuple[str, str]] = Counter()
        """By kind, and by status; without a reply, by the class of the error."""
        self.bytes: int = 0
        self.points: int = 0
        self.exchanges: int = 0

    def __call__(self, note: RequestEvent) -> None:
        """Count one request."""
        status = str(note.error) if note.status is None else str(note.status)
        self.requests[note.kind, status] += 1
        self.bytes += note.bytes
        self.points += note.points or 0
        self.exchanges += note.kind == "token" and note.error is None
