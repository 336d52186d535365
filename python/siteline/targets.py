"""What a sync needs of a home for its points, where that is not :class:`siteline.Store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from siteline._siteline import Page

__all__ = ["StoreTarget"]


@runtime_checkable
class StoreTarget(Protocol):
    """A store of your own: an object with these two methods can be given to :meth:`Client.sync`.

    ``apply()`` puts the points of a page in **and** keeps ``state``, both or neither: in one
    transaction, so that the data can't be behind its checkpoint (§4.5.2). A point is the same by
    its five ids and ``timestamp``; of two, that of the page with the higher ``page.sequence`` wins,
    then the later row, in whatever order pages arrive (§4.5.3). ``state`` is opaque, and as secret
    as a bookmark: it holds cursors. Give it back byte for byte.

    Both are called on the thread that called ``sync()`` (in asyncio on the loop's, which they hold
    up), never at the same time for one sync. What they raise ends the sync and comes through
    untouched; what was applied stays. They are plain functions, not ``async``.

    Where it also has ``lock(feed)``, that gives a context manager, which is held for the whole
    sync: raise :class:`StoreBusy` there where another one holds the feed.

    >>> class Memory:
    ...     def __init__(self):
    ...         self.rows, self.states = {}, {}
    ...     def state(self, feed):
    ...         return self.states.get(feed)
    ...     def apply(self, feed, page, state):
    ...         counts = [0, 0, 0]
    ...         for record in page.records() if page is not None else ():
    ...             key, values = tuple(record.values())[:6], tuple(record.values())[6:]
    ...             version, known = self.rows.get(key, (0, None))
    ...             counts[0 if known is None else 2 if known == values else 1] += 1
    ...             if page.sequence >= version:
    ...                 self.rows[key] = (page.sequence, values)
    ...         self.states[feed] = state
    ...         return tuple(counts)
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> memory = Memory()
    >>> client.sync(feed, memory).inserted == len(memory.rows) > 0
    True
    """

    def state(self, feed: str) -> bytes | None:
        """Return the state that was applied last for a feed; ``None`` for one that is not there."""

    def apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int]:
        """Put a page in, and keep the state, both or neither; ``None``: the state alone.

        ``page`` has ``sequence``, ``is_last``, ``query`` (what was asked: the range is that of its
        chain) and the ways to its points: ``records()``, ``to_pandas()``, the Arrow stream.

        Return how many points were inserted, revised and unchanged.
        """
