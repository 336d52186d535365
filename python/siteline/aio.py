"""The client for asyncio: the same core behind awaitable methods.

Cancelling a call (``task.cancel()``, ``asyncio.wait_for``, a failing sibling in a ``TaskGroup``)
drops its request and closes its connection at once, also that of a page that is read ahead;
``CancelledError`` is raised unchanged. Any number of loops, uvloop included, may share a client.

Under anyio it needs the asyncio backend. It does not work under trio.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import AsyncIterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from siteline import _series
from siteline._awaiting import await_for
from siteline._handles import AsyncClosing
from siteline._keywords import like, strict
from siteline._points import Points
from siteline._records.discovery import Discovery
from siteline.client import Client, _Settings
from siteline.frames import check_options
from siteline.page import Page
from siteline.scan import Pages, Scan, ScanBase
from siteline.sync import AsyncSyncPages, planning, syncing

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._records.plan import Plan
    from siteline._records.series import Record
    from siteline._records.sync import SyncReport
    from siteline.table import Table

__all__ = ["AsyncClient", "AsyncPages", "AsyncRecords", "AsyncScan"]

# Without its check of the arguments, which AsyncClient.scan has too.
_scan: Any = inspect.unwrap(Client.scan)

_T = TypeVar("_T")
_Item_co = TypeVar("_Item_co", covariant=True)

# An iterator lets the loop work after so many items: about a millisecond of points.
_ITEMS_AT_A_TIME = 1_000


class AsyncClient(_Settings, AsyncClosing):
    """:class:`siteline.Client` for asyncio: the same parameters and names, awaitable.

    ``read``, ``series``, ``discover``, ``sync`` and ``plan`` are awaited.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.scan(site="S1", start="2026-11-01T00:00Z",
    ...                            end="2026-11-01T06:00Z", interval="1h", page_size=30)
    ...         return sum([len(page) async for page in scan.pages()]) == len(await scan.collect())
    >>> asyncio.run(main())
    True
    """

    @like(Client.discover)
    async def discover(self) -> Discovery:
        """Request the list of readable resources: see :meth:`Client.discover`."""
        return Discovery(await self._handle.discover())

    @like(Client.series)
    async def series(self) -> Table:
        """Request the series that discovery lists: see :meth:`Client.series`."""
        body = await self._handle.discover()
        return _series.of_client(body, *self._handle.seen(), self._labels)

    @like(Client.scan)
    def scan(self, **query: Any) -> AsyncScan:
        """Make a lazy :class:`AsyncScan`. Takes the parameters of :meth:`Client.scan`."""
        scan: AsyncScan = _scan(self, **query)
        return scan

    @like(Client.scan)
    async def read(self, **query: Any) -> Table:
        """Read every page, and merge them. Takes the parameters of :meth:`Client.scan`.

        Every exception, ``CancelledError`` included, has the attribute ``scan``:
        ``await error.scan.collect()`` continues with the pages that were kept. The ``TimeoutError``
        of ``asyncio.timeout()`` has it in ``__cause__`` only.
        """
        return await self.scan(**query).collect()

    @like(Client.sync)
    async def sync(self, feeds: Any, store: Any, **options: Any) -> SyncReport:
        """Bring feeds up to date in a store: see :meth:`Client.sync`.

        A :class:`siteline.Store` is written on a separate thread; your own target may be a
        :class:`siteline.targets.AsyncStoreTarget`. A cancelled sync first completes its write.
        """
        return await await_for(syncing(self._handle, feeds, store, options, awaits=True))

    @like(Client.sync_pages)
    def sync_pages(self, feeds: Any, states: Any = None, **options: Any) -> AsyncSyncPages:
        """Sync in the pull form, ``async for``: see :meth:`Client.sync_pages`.

        >>> import asyncio
        >>> async def main(states):
        ...     async with sandbox.async_client() as client:
        ...         async for page, state in client.sync_pages(feed, states):
        ...             states.update(state)
        ...     return list(states)
        >>> asyncio.run(main({}))
        ['line-2']
        """
        return AsyncSyncPages(self._handle, feeds, states, options)

    @like(Client.plan)
    async def plan(self, what: Any, store: Any = None, **options: Any) -> Plan:
        """Plan what the next sync, or a scan, would read and cost: see :meth:`Client.plan`."""
        return await await_for(planning(self._handle, what, store, options))


async def _converted(convert: Callable[..., _T], **options: Any) -> _T:
    """Convert a table on a separate thread, in the caller's context.

    The threads of the loop's executor may all be waiting for the task that awaits this.
    """
    run = functools.partial(contextvars.copy_context().run, convert, **options)
    try:
        from concurrent.futures import ThreadPoolExecutor

        executor = ThreadPoolExecutor(1, thread_name_prefix="siteline-convert")
        converting = asyncio.get_running_loop().run_in_executor(executor, run)
    except RuntimeError:  # the interpreter is ending, and starts no threads
        return run()
    executor.shutdown(wait=False)
    return await converting


class AsyncScan(ScanBase):
    """:class:`siteline.Scan` for asyncio: the same methods, awaitable.

    Made by :meth:`AsyncClient.scan`. Its frames are made on a separate thread. A
    :class:`siteline.Table` uses the calling thread: ``await asyncio.to_thread(table.to_pandas)``.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.scan(site="S1", start="2026-11-01T00:00Z", interval="1h")
    ...         return (await scan.to_pandas()).shape[1]
    >>> asyncio.run(main())
    11
    """

    _waits = "await "

    @like(Scan.collect)
    async def collect(self) -> Table:
        """Read the complete range once and merge it: see :meth:`siteline.Scan.collect`."""
        return await await_for(self._reading())

    @like(Scan.head)
    async def head(self, n: int = 5) -> Table:
        """Read the first points: see :meth:`siteline.Scan.head`."""
        return (await await_for(self._reading(n))).head(n)

    @like(Scan.pages)
    def pages(self) -> AsyncPages:
        """Read page by page, on a new chain: see :meth:`siteline.Scan.pages`."""
        return AsyncPages(self)

    @overload
    def records(self, *, named: Literal[False] = False) -> AsyncRecords[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> AsyncRecords[Record]: ...
    @strict
    def records(self, *, named: bool = False) -> AsyncRecords[Any]:
        """Read point by point: see :meth:`siteline.Scan.records`."""
        return AsyncRecords(self, named)

    @like(Scan.to_pandas)
    async def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return the pandas frame of ``collect()``: see :meth:`Table.to_pandas`."""
        check_options(**options)
        return await _converted((await self.collect()).to_pandas, **options)

    @like(Scan.to_polars)
    async def to_polars(self, **options: Any) -> pl.DataFrame:
        """Return the polars frame of ``collect()``: see :meth:`Table.to_polars`."""
        check_options(**options)
        return await _converted((await self.collect()).to_polars, **options)

    @like(Scan.to_arrow)
    async def to_arrow(self, **options: Any) -> pa.Table:
        """Return the ``pyarrow.Table`` of ``collect()``: see :meth:`Table.to_arrow`."""
        check_options(**options)
        return await _converted((await self.collect()).to_arrow, **options)


class AsyncPages(Pages, AsyncIterator[Page]):
    """The pages of one chain, read when they are needed. Each page is returned once.

    Made by :meth:`AsyncScan.pages`; tasks may share it. After a call was cancelled or has failed,
    the next one continues at the same page. One page is prefetched, as by
    :meth:`siteline.Scan.pages`: its request is dropped with the iterator or its last task.
    """

    # An async generator that was cancelled or has failed would end as if it had returned all pages.

    async def __anext__(self) -> Page:
        """Return the next page, also after a call that was cancelled."""
        if (page := await await_for(self._taking())) is None:
            raise StopAsyncIteration
        return page


class AsyncRecords(Points[_Item_co], AsyncIterator[_Item_co]):
    """The points of one chain, read when they are needed. Each point is returned once.

    Made by :meth:`AsyncScan.records`; tasks may share it. After a call was cancelled or has failed,
    the next one continues at the same point. Pages are prefetched as by :class:`AsyncPages`.
    """

    def __init__(self, scan: AsyncScan, named: bool) -> None:
        """Wrap the points of a scan."""
        super().__init__(None, named, scan)
        self._returned = 0

    async def __anext__(self) -> _Item_co:
        """Return the next point, also after a call that was cancelled."""
        self._returned += 1
        if self._returned % _ITEMS_AT_A_TIME == 0:
            await asyncio.sleep(0)
        while True:
            for record in chain.from_iterable(self._at_hand()):
                return record
            if not await await_for(self._more()):
                raise StopAsyncIteration


AsyncClient._scan_class = AsyncScan
