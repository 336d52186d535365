"""The interface of sync targets, and its async form."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing import TypeAlias

    from siteline.page import Page

    _Counts: TypeAlias = tuple[int, int, int] | tuple[int, int, int, int]

__all__ = ["AsyncStoreTarget", "StoreTarget"]


@runtime_checkable
class StoreTarget(Protocol):
    """A store of your own: :meth:`Client.sync` accepts an object with these two methods.

    ``apply()`` stores the points of a page **and** ``state`` in one transaction, so that no
    checkpoint is ahead of its data. The five ids and ``timestamp`` identify a point; the page with
    the higher ``page.sequence`` wins, then the later row, in whatever order pages arrive. ``state``
    contains cursors, so it is as secret as a bookmark. Return it byte for byte.

    Both are called on the thread that called ``sync()`` (in asyncio on the loop's thread, which
    they block), one at a time for each sync. Their exceptions end the sync and are raised
    unchanged; applied pages stay. For ``async`` methods see :class:`AsyncStoreTarget`.

    An optional attribute ``batch`` is the number of pages of a chain that ``apply()`` gets as one
    page (1 by default), or ``"chain"`` for all of them. They are in memory until then.
    :meth:`Page.diff` compares a page with stored points. ``state()`` and ``lock()`` run before any
    request, so raise there if the table has other columns.

    An optional method ``lock(feed)`` returns a context manager that is entered during the sync. It
    should raise :class:`StoreBusy` if another sync has locked the feed.

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
    ...                      start="2026-11-15T00:00Z")
    >>> memory = Memory()
    >>> client.sync(feed, memory).inserted == len(memory.rows) > 0
    True
    """

    def state(self, feed: str) -> bytes | None:
        """Return the state that was last applied for a feed; ``None`` for an unknown feed.

        Args:
            feed: The name of the feed.
        """

    def apply(self, feed: str, page: Page | None, state: bytes) -> _Counts:
        """Store a page and the state in one transaction; without a page, only the state.

        ``page`` has ``sequence``, ``is_last``, ``is_whole`` and ``query`` (with the range of its
        chain); ``records()``, ``to_pandas()`` and the Arrow stream return its points.

        With ``page.is_last`` the range of ``page.query`` is read completely. Points in it that no
        page since ``page.first_sequence`` contained are no longer there. A store that remembers the
        ``sequence`` of the newest page of each point, unchanged ones too, can flag them.

        Args:
            feed: The name of the feed.
            page: The points; ``None`` if only the state changed.
            state: The state of the feed after this page.

        Returns:
            The numbers of inserted, revised and unchanged points. A store that flags points returns
            a fourth count, of withdrawn points.
        """


@runtime_checkable
class AsyncStoreTarget(Protocol):
    """A :class:`StoreTarget` with ``async`` methods, one or both: for :meth:`AsyncClient.sync`.

    The calls are tasks of the event loop that runs the sync, one at a time. A cancelled sync waits
    until the current ``apply()`` has ended, so set a time limit in it (``asyncio.timeout``);
    ``state()`` and ``lock()`` are cancelled with the sync. When the loop itself ends, ``apply()``
    gets :class:`asyncio.CancelledError`: it must then also store both or neither.

    ``lock(feed)`` returns an ``async`` or a plain context manager; it may be a coroutine function.
    The context manager is entered and exited in separate tasks.

    A :class:`Client` raises :class:`ConfigError`, before any request.

    >>> import asyncio
    >>> class Memory:
    ...     def __init__(self):
    ...         self.rows, self.states = 0, {}
    ...     async def state(self, feed):
    ...         return self.states.get(feed)
    ...     async def apply(self, feed, page, state):
    ...         await asyncio.sleep(0)  # a database of yours
    ...         new = 0 if page is None else len(page)
    ...         self.rows, self.states[feed] = self.rows + new, state
    ...         return new, 0, 0
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> async def main(memory):
    ...     async with sandbox.async_client() as client:
    ...         return (await client.sync(feed, memory)).inserted == memory.rows > 0
    >>> asyncio.run(main(Memory()))
    True
    """

    def state(self, feed: str) -> bytes | Awaitable[bytes | None] | None:
        """See :meth:`StoreTarget.state`."""

    def apply(self, feed: str, page: Page | None, state: bytes) -> _Counts | Awaitable[_Counts]:
        """See :meth:`StoreTarget.apply`."""
