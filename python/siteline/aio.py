"""The client for asyncio: the same core behind awaitable methods.

Each call starts the core's future on siteline's runtime and gives the running asyncio loop an
awaitable. Cancelling it (``task.cancel()``, ``asyncio.wait_for``, a failing sibling in a
``TaskGroup``) drops the request and closes its connection at once, also that of a page that is read
ahead; ``CancelledError`` is raised unchanged. Any number of loops, uvloop included, may share a
client.

Under anyio it needs the asyncio backend. It does not work under trio, which has no asyncio loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Iterable
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from siteline._keywords import check, like
from siteline._patching import Replaceable
from siteline._reads import Reads
from siteline._records.progress import Progress
from siteline.client import Client, _Settings
from siteline.errors import SitelineError
from siteline.page import Page
from siteline.progress import finish
from siteline.store import Store
from siteline.sync import AsyncSyncPages, _result, plan_of, planned, sync_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta, tzinfo

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._core import Bookmark, Query, Scan
    from siteline._core import Client as ClientHandle
    from siteline._labels import Labels
    from siteline._records.discovery import Discovery
    from siteline._records.plan import Plan
    from siteline._records.series import Record
    from siteline._records.sync import SyncReport
    from siteline._reports import ScanReport
    from siteline.gathered import Gathered
    from siteline.table import Table

__all__ = ["AsyncClient", "AsyncPages", "AsyncRecords", "AsyncScan"]

_T = TypeVar("_T")
_Item_co = TypeVar("_Item_co", covariant=True)

# Its methods that do not wait serve both clients.
_CLIENT: Any = Client

# An iterator lets the loop work after so many items: about a millisecond of points.
_ITEMS_AT_A_TIME = 1_000


class _Source(Protocol[_Item_co]):
    def _take(self) -> tuple[_Item_co | None, bool]: ...
    def _fill(self) -> Awaitable[None]: ...
    def _report(self) -> None: ...
    def _end(self) -> None: ...


class AsyncClient(_Settings):
    """:class:`siteline.Client` for asyncio: the same parameters and names, awaitable.

    ``read``, ``series``, ``discover``, ``sync``, ``plan`` and ``gather`` are awaited.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.scan(site="S1", start="2026-11-01T00:00Z",
    ...                            end="2026-11-01T06:00Z", interval="1h", page_size=30)
    ...         return sum([len(page) async for page in scan.pages()]) == len(await scan.collect())
    >>> asyncio.run(main())
    True
    """

    __slots__ = ()

    @like(Client.discover)
    async def discover(self) -> Discovery:
        """Request the list of readable resources: see :meth:`Client.discover`."""
        return await self._handle.discover()

    @like(Client.series)
    async def series(self) -> Table:
        """Request the series that discovery lists: see :meth:`Client.series`."""
        from siteline import _series

        return _series.of_client(*await self._handle.series())

    @like(Client.scan)
    def scan(self, **query: Any) -> AsyncScan:
        """Make a lazy :class:`AsyncScan`. Takes the parameters of :meth:`Client.scan`."""
        return AsyncScan(_CLIENT.scan(self, **query))

    @like(Client.scan)
    async def read(self, **query: Any) -> Table:
        """Read every page, and merge them. Takes the parameters of :meth:`Client.scan`.

        Every exception, ``CancelledError`` included, has the attribute ``scan``:
        ``await error.scan.collect()`` continues with the pages that were kept.

        >>> import asyncio
        >>> async def main():
        ...     async with sandbox.async_client() as client:
        ...         return await client.read(site="S1", start="2026-11-01T00:00Z",
        ...                                  end="2026-11-01T06:00Z", interval="1h")
        >>> asyncio.run(main())
        <Table 72 points, 12 series, 1 page>
        """
        scan = self.scan(**query)
        try:
            return await scan.collect()
        except BaseException as error:
            error.scan = scan  # type: ignore[attr-defined]
            raise

    @like(Client.sync)
    async def sync(self, feeds: Any, store: Any, **options: Any) -> SyncReport:
        """Bring feeds up to date in a store: see :meth:`Client.sync`.

        A :class:`siteline.Store` is written on a separate thread; a target of yours may have
        ``async`` methods: :class:`siteline.targets.AsyncStoreTarget`. A cancelled sync first
        completes the page that is being written; committed pages stay.
        """
        check(Client.sync, options)
        return await sync_async(self._handle, feeds, store, options)

    @like(Client.sync_pages)
    def sync_pages(self, feeds: Any, states: Any = None, **options: Any) -> AsyncSyncPages:
        """Sync in the pull form, ``async for``: see :meth:`Client.sync_pages`.

        >>> import asyncio
        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      start="2026-11-15T00:00Z")
        >>> async def main(states):
        ...     async with sandbox.async_client() as client:
        ...         async for page, state in client.sync_pages(feed, states):
        ...             states.update(state)
        ...     return list(states)
        >>> asyncio.run(main({}))
        ['line-2']
        """
        check(Client.sync_pages, options)
        return AsyncSyncPages(self._handle, feeds, states, options)

    @like(Client.plan)
    async def plan(self, what: Any, store: Any = None, **options: Any) -> Plan:
        """Plan what the next sync, or a scan, would read and cost: see :meth:`Client.plan`."""
        check(Client.plan, options)
        given = _core(what)
        if store is None or isinstance(store, Store):
            plan: Plan = _CLIENT.plan(self, given, store, **options)
            return plan
        feeds = planned(given, store, options)[1]
        states = {feed.name: await _result(store.state(feed.name)) for feed in feeds}
        return plan_of(self._handle, feeds, store, states, options)

    async def gather(self, scans: Iterable[AsyncScan], *, concurrency: int | None = 8) -> Gathered:
        """Read several scans of this client concurrently: see :meth:`Client.gather`.

        The ``.scans`` of an error are those to gather again. Cancelling drops the open requests;
        the scans keep the pages that were read.

        >>> import asyncio
        >>> async def main():
        ...     async with sandbox.async_client() as client:
        ...         scan = client.scan(site="S1", start="2026-11-01T00:00Z",
        ...                            end="2026-11-08T00:00Z", interval="1h")
        ...         return await client.gather(scan.split(2), concurrency=2)
        >>> asyncio.run(main())
        <Gathered 2 tables, 2007 points, 3 pages>
        """
        known = {}
        if isinstance(scans, Iterable):
            scans = list(scans)
            known = {id(one._scan): one for one in scans if isinstance(one, AsyncScan)}
        reads = Reads(self._handle, _core(scans), concurrency)
        try:
            with reads:
                while (page := await reads.core._step(reads.reported)) is not None:
                    reads.report(*page)
                return reads.gathered()
        except SitelineError as error:
            error.scans = [known.get(id(one)) or AsyncScan(one) for one in error.scans]
            raise

    async def __aenter__(self) -> Self:
        """Enter; leaving closes the client."""
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Close the client."""
        self.close()


def _core(given: Any) -> Any:
    """Replace each :class:`AsyncScan`, alone or in a list, by the core's scan."""
    if isinstance(given, AsyncScan):
        return given._scan
    if isinstance(given, Iterable) and not isinstance(given, str):
        return [one._scan if isinstance(one, AsyncScan) else one for one in given]
    return given


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


async def _converted(convert: Callable[..., _T], **options: Any) -> _T:
    """Convert a table on a thread of its own, in the caller's context, so that the loop goes on.

    Not on the loop's executor: its threads may all be waiting for the task that awaits this. A
    cancelled task does not wait for the thread, whose frame is then dropped.
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


class AsyncScan(Replaceable):
    """:class:`siteline.Scan` for asyncio: a lazy query that reads when it is awaited.

    ``collect()``, ``to_pandas()``, ``to_polars()`` and ``to_arrow()`` share one read of all pages,
    and ``records()`` after it. ``pages()`` always starts a new chain and pays for each page. Frames
    are made on a thread of their own, so that the loop goes on; those of a :class:`siteline.Table`
    are made where they are asked for: ``await asyncio.to_thread(table.to_pandas)``.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.scan(site="S1", start="2026-11-01T00:00Z", interval="1h")
    ...         return (await scan.to_pandas()).shape[1]
    >>> asyncio.run(main())
    10
    """

    __slots__ = ("_scan",)

    def __init__(self, scan: Scan) -> None:
        """Wrap a scan; made by :meth:`AsyncClient.scan`."""
        self._scan = scan

    @property
    def query(self) -> Query:
        """The query: immutable, printable, hashable."""
        return self._scan.query

    @property
    def report(self) -> ScanReport:
        """What in the query may mean something else than it seems; sends no request."""
        return self._scan.report

    def pages(self) -> AsyncPages:
        """Read page by page, on a new chain: ``async for page in scan.pages()``.

        Each call costs a request for each page, also after ``collect()``. From the second page on,
        one page is read ahead: see :meth:`siteline.Scan.pages`.
        """
        return AsyncPages(self._scan.pages())

    @overload
    def records(
        self, *, named: Literal[False] = False, fresh: bool = False
    ) -> AsyncRecords[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True], fresh: bool = False) -> AsyncRecords[Record]: ...
    def records(self, *, named: bool = False, fresh: bool = False) -> AsyncRecords[Any]:
        """Read point by point: plain dicts, or :class:`siteline.types.Record` tuples.

        After ``collect()`` the points come from memory, merged and free; before it, and with
        ``fresh=True``, from a new chain: see :meth:`siteline.Scan.records`.
        """
        if not fresh and self._scan._is_collected_first():
            return AsyncRecords(_CollectedRecords(self, named))
        if named:
            return AsyncRecords(self._scan.records(named=True, fresh=fresh))
        return AsyncRecords(self._scan.records(fresh=fresh))

    async def collect(self) -> Table:
        """Read all pages once, merge them, and keep the table.

        After a cancellation or an error, the next call continues with the pages that were read: see
        :meth:`siteline.Scan.collect`.
        """
        if (wanted := self._scan._wanted_names()) is not None:
            await _fetch_names(*wanted)
        callback = self._scan._progress_callback()
        if callback is None and not self._scan._is_told():
            return await self._scan._collect()
        collecting = self._scan._collecting()
        try:
            while isinstance(step := await self._scan._step(collecting), Progress):
                if callback is not None:
                    callback(step)
            return step
        finally:
            self._scan._end(collecting)
            finish(callback)

    def resume(self, bookmark: Bookmark, *, onto: Table | None = None) -> AsyncScan:
        """Continue from a bookmark, onto the points read before (``onto=error.partial``)."""
        return AsyncScan(self._scan.resume(bookmark, onto=onto))

    def split(self, by: int | str | timedelta, /) -> list[AsyncScan]:
        """Split into scans of adjoining ranges: see :meth:`siteline.Scan.split`."""
        return [AsyncScan(part) for part in self._scan.split(by)]

    async def to_pandas(
        self,
        *,
        ids: Literal["str", "category"] = "str",
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
    ) -> pd.DataFrame:
        """Read all pages into the long pandas frame, made on a thread of its own."""
        return await _converted((await self.collect()).to_pandas, ids=ids, tz=tz, labels=labels)

    async def to_polars(
        self,
        *,
        ids: Literal["str", "category"] = "str",
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
    ) -> pl.DataFrame:
        """Read all pages into the long polars frame, without pyarrow, as :meth:`to_pandas`."""
        return await _converted((await self.collect()).to_polars, ids=ids, tz=tz, labels=labels)

    async def to_arrow(
        self,
        *,
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
    ) -> pa.Table:
        """Read all pages into a ``pyarrow.Table``, as :meth:`to_pandas`."""
        return await _converted((await self.collect()).to_arrow, tz=tz, labels=labels)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the query and the client, where the client can be pickled."""
        return (type(self), (self._scan,))

    def __copy__(self) -> Self:
        """Return the scan itself."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        """Return the scan itself."""
        return self

    def __repr__(self) -> str:
        """Print the query."""
        return repr(self._scan).replace("<Scan", "<AsyncScan", 1)

    def _repr_html_(self) -> str:
        """What notebooks show; makes no request."""
        from siteline._display import html

        return html.scan(self._scan, "AsyncScan")


async def _fetch_names(client: ClientHandle, labels: Any) -> None:
    """Ask discovery once for the names of labels: see ``siteline._labels.fetch``."""
    from siteline import _labels

    if _labels.needs_names(labels) and client not in _labels._refused:
        try:
            await client.discover()
        except SitelineError as error:
            _labels.not_fetched(client, error)


class _Items(Replaceable, Generic[_Item_co]):
    """Items of one chain, for any number of tasks. Each item is returned once.

    Not an async generator: a generator that was cancelled or has failed is finished, and would then
    end as if all items had been returned.
    """

    __slots__ = ("_returned", "_source")

    def __init__(self, source: _Source[_Item_co]) -> None:
        """Wrap an iterator of the core."""
        self._source = source
        self._returned = 0

    def __aiter__(self) -> Self:
        """Return the iterator itself."""
        return self

    async def __anext__(self) -> _Item_co:
        """Return the next item. A cancelled call loses none: the next call returns it."""
        self._returned += 1
        if self._returned % _ITEMS_AT_A_TIME == 0:
            await asyncio.sleep(0)
        while True:
            item, ended = self._source._take()
            if item is not None:
                return item
            if ended:
                raise StopAsyncIteration
            try:
                await self._source._fill()
            except SitelineError:
                self._source._end()
                raise
            self._source._report()


class AsyncPages(_Items[Page]):
    """The pages of one chain, read when they are needed. Each page is returned once.

    Made by :meth:`AsyncScan.pages`. After a call was cancelled or has failed, the next one
    continues at the same page. One page is read ahead, as by :meth:`siteline.Scan.pages`: its
    request is dropped with the iterator, or when the last task that waits for it is cancelled.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
    ...                            interval="1h", page_size=30)
    ...         return [len(page) async for page in scan.pages()]
    >>> asyncio.run(main())
    [30, 30, 12]
    """

    __slots__ = ()


class _CollectedRecords:
    """The points of a scan that is collected when the first one is awaited."""

    __slots__ = ("_named", "_records", "_scan")

    def __init__(self, scan: AsyncScan, named: bool) -> None:
        self._scan = scan
        self._named = named
        self._records: Any = None

    def _take(self) -> tuple[Any, bool]:
        taken: tuple[Any, bool] = (None, False) if self._records is None else self._records._take()
        return taken

    async def _fill(self) -> None:
        await self._scan.collect()
        scan = self._scan._scan
        self._records = scan.records(named=True) if self._named else scan.records()

    def _report(self) -> None: ...
    def _end(self) -> None: ...


class AsyncRecords(_Items[_Item_co]):
    """The points of one chain, read when they are needed. Each point is returned once.

    Made by :meth:`AsyncScan.records`. After a call was cancelled or has failed, the next one
    continues at the same point. Pages are read ahead as by :class:`AsyncPages`.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.scan(site="S1", start="2026-11-01T00:00Z", interval="1h")
    ...         async for record in scan.records(named=True):
    ...             return record.site_id
    >>> asyncio.run(main())
    'S1'
    """

    __slots__ = ()
