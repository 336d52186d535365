"""The records of work on a store, and of reads through one."""

from dataclasses import dataclass
from datetime import datetime

from siteline._counts import counted
from siteline._records.record import FrozenRecord


@dataclass(frozen=True)
class Freed(FrozenRecord):
    """The points and bytes that :meth:`Store.forget` or :meth:`Store.compact` removed."""

    points: int
    """Points that are no longer stored."""
    versions: int
    """Older versions of points that are still stored."""
    bytes: int
    """Bytes in the file that can be used again."""
    returned: int
    """Bytes by which the file became smaller."""

    def __str__(self) -> str:
        """Print one line."""
        size = f"{self.bytes / 1e6:,.1f} MB"
        returned = f", {self.returned / 1e6:,.1f} MB given back to the disk"
        return (
            f"{counted(self.points, 'point')} and {counted(self.versions, 'older version')} "
            f"removed: {size}{returned if self.returned else ''}"
        )


@dataclass(frozen=True)
class StoreProgress(FrozenRecord):
    """The progress of long work on a store, passed to the callable of ``progress=``.

    :meth:`Store.check`, :meth:`Store.backup`, :meth:`Store.forget` and :meth:`Store.compact` report
    it. An exception in the callable ends the work. Everything committed stays.

    >>> seen = []
    >>> store.check(progress=seen.append)
    >>> seen[-1].finished, seen[-1].fraction
    (True, 1.0)
    """

    done: int
    """Finished steps: blocks of points, or pages of the file."""
    total: int
    """All steps found so far."""
    finished: bool
    """Whether the work has ended."""

    @property
    def fraction(self) -> float:
        """The finished part, from 0 to 1."""
        if self.finished:
            return 1.0
        return self.done / self.total if self.total else 0.0


@dataclass(frozen=True)
class StoreShare(FrozenRecord):
    """The ranges that a read with ``store=`` took from a feed of the store, or requested for it.

    Ranges are half-open, in UTC.
    """

    store: str
    """The path of the store."""
    feed: str
    """The name of the feed."""
    from_store: tuple[tuple[datetime, datetime], ...]
    """The settled ranges, which cost no request."""
    from_service: tuple[tuple[datetime, datetime], ...]
    """The ranges requested from the service, which the store keeps."""
