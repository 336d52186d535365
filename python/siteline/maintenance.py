"""What the long work on a store removed."""

from __future__ import annotations

from typing import Any, NamedTuple

from siteline._counts import counted

__all__ = ["Freed"]


class Freed(NamedTuple):
    """What :meth:`Store.forget` or :meth:`Store.compact` removed.

    - ``points``: points that are no longer stored
    - ``versions``: older versions of points that are still stored
    - ``bytes``: bytes of points that the file has room for again
    - ``returned``: bytes by which the file became smaller

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> report = client.sync(feed, store)
    >>> freed = store.forget(feed, before="2026-11-16T00:00Z")
    >>> freed.points, freed.versions
    (144, 0)
    """

    points: int
    """Points that are no longer stored."""
    versions: int
    """Older versions of points that are still stored."""
    bytes: int
    """Bytes of points that the file has room for again."""
    returned: int
    """Bytes by which the file became smaller."""

    @classmethod
    def _restore(cls, record: dict[str, Any]) -> Freed:
        return cls(**record)

    def __str__(self) -> str:
        """Print one line."""
        size = f"{self.bytes / 1e6:,.1f} MB"
        returned = f", {self.returned / 1e6:,.1f} MB given back to the disk"
        return (
            f"{counted(self.points, 'point')} and {counted(self.versions, 'older version')} "
            f"removed: {size}{returned if self.returned else ''}"
        )
