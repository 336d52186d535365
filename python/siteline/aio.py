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
import contextlib
import contextvars
import functools
import inspect
from collections.abc import Iterable
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Never,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    overload,
)

from siteline._awaiting import KnownStates, async_target
from siteline._core import Client, Feed
from siteline._patching import Replaceable
from siteline._reads import Reads
from siteline.errors import SitelineError
from siteline.page import Page
from siteline.progress import Progress, finish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import timedelta, tzinfo
    from types import TracebackType

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._core import (
        Bookmark,
        Credential,
        MutualTls,
        Query,
        Scan,
        SyncPages,
        _ClientOptions,
        _DataOptions,
        _Feeds,
        _OutsideOptions,
        _PlanOptions,
        _PullOptions,
        _SyncOptions,
    )
    from siteline._labels import Labels
    from siteline.allowance import Allowance
    from siteline.catalogue import Catalogue, DiscoveryShape
    from siteline.discovery import Discovery
    from siteline.frames import Record
    from siteline.gathered import Gathered
    from siteline.reports import ScanReport
    from siteline.store import Store
    from siteline.sync import Plan, SyncReport
    from siteline.table import Table
    from siteline.targets import AsyncStoreTarget, StoreTarget

__all__ = ["AsyncClient", "AsyncPages", "AsyncRecords", "AsyncScan", "AsyncSyncPages"]

_T = TypeVar("_T")
_Item_co = TypeVar("_Item_co", covariant=True)

# An iterator lets the loop work after so many items: about a millisecond of points.
_ITEMS_AT_A_TIME = 1_000


class _Source(Protocol[_Item_co]):
    def _take(self) -> tuple[_Item_co | None, bool]: ...
    def _fill(self) -> Awaitable[None]: ...
    def _report(self) -> None: ...
    def _end(self) -> None: ...


class AsyncClient(Replaceable):
    """:class:`siteline.Client` for asyncio: the same arguments, the same names, awaitable.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.scan(site="S1", start="2026-11-01T00:00Z",
    ...                            end="2026-11-01T06:00Z", interval="1h", page_size=30)
    ...         return sum([len(page) async for page in scan.pages()]) == len(await scan.collect())
    >>> asyncio.run(main())
    True
    """

    __slots__ = ("_client",)
    __signature__: ClassVar[inspect.Signature]

    def __init__(self, base_url: str, *surplus: Never, **options: Unpack[_ClientOptions]) -> None:
        """Make a client; costs no request. The arguments are those of :class:`siteline.Client`."""
        self._client = Client(base_url, *surplus, **options)

    @classmethod
    def from_env(cls, **options: Unpack[_OutsideOptions]) -> Self:
        """Make a client from the ``SITELINE_*`` variables: see :meth:`siteline.Client.from_env`."""
        return cls._over(Client.from_env(**options))

    @classmethod
    def from_profile(cls, name: str, **options: Unpack[_OutsideOptions]) -> Self:
        """Make a client from a profile: see :meth:`siteline.Client.from_profile`."""
        return cls._over(Client.from_profile(name, **options))

    @classmethod
    def _over(cls, client: Client) -> Self:
        made = cls.__new__(cls)
        made._client = client
        return made

    @property
    def base_url(self) -> str:
        """The address of the service."""
        return self._client.base_url

    @property
    def subject(self) -> str:
        """The credential subject."""
        return self._client.subject

    @property
    def allowance(self) -> Allowance:
        """The daily request allowance, as the ledger has counted it."""
        return self._client.allowance

    @property
    def clock_skew(self) -> float | None:
        """Service clock minus this machine's, in seconds; ``None`` until a reply showed it."""
        return self._client.clock_skew

    async def discover(self) -> Discovery:
        """Request the resources that may be read (§4.2)."""
        return await self._client._discover()

    async def series(self, *, shape: DiscoveryShape | None = None) -> Catalogue:
        """Request the catalogue of series: see :meth:`siteline.Client.series`."""
        return await self._client._series(shape)

    def replace_credential(self, credential: Credential | MutualTls) -> None:
        """Sign with another credential: see :meth:`siteline.Client.replace_credential`."""
        self._client.replace_credential(credential)

    def scan(self, **query: Unpack[_DataOptions]) -> AsyncScan:
        """Make a lazy :class:`AsyncScan`: see :meth:`siteline.Client.scan` for the arguments."""
        return AsyncScan(self._client.scan(**query))

    async def sync(
        self,
        feeds: _Feeds,
        store: Store | StoreTarget | AsyncStoreTarget,
        **options: Unpack[_SyncOptions],
    ) -> SyncReport:
        """Bring feeds up to date in a store: see :meth:`siteline.Client.sync`.

        A :class:`siteline.Store` is written on a separate thread; a target of yours may have
        ``async`` methods: :class:`siteline.AsyncStoreTarget`. A cancelled sync first completes the
        page that is being written; committed pages stay.
        """
        target = async_target(store)
        run = await _completed(
            self._client._begin(feeds, target or store, dict(options)),
            lambda run: run._end(),
            None if target is None else target.stop,
        )
        callback = run._progress_callback()
        try:
            while True:
                try:
                    if not await run._fetch():
                        break
                    progress = await _completed(run._apply())
                finally:
                    run._tell()
                if callback is not None:
                    callback(progress)
            return await _completed(run._report())
        finally:
            if (ended := run._end()) is not None:
                await _completed(ended)

    def sync_pages(
        self,
        feeds: _Feeds,
        states: Mapping[str, bytes] | None = None,
        **options: Unpack[_PullOptions],
    ) -> AsyncSyncPages:
        """Sync in the pull form, ``async for``: see :meth:`siteline.Client.sync_pages`.

        >>> import asyncio
        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      since="2026-11-15T00:00Z")
        >>> async def main(states):
        ...     async with sandbox.async_client() as client:
        ...         async for page, state in client.sync_pages(feed, states):
        ...             states.update(state)
        ...     return list(states)
        >>> asyncio.run(main({}))
        ['line-2']
        """
        return AsyncSyncPages(self._client.sync_pages(feeds, states, **options))

    async def gather(self, scans: Iterable[AsyncScan], *, concurrency: int | None = 8) -> Gathered:
        """Read several scans of this client concurrently: see :meth:`siteline.Client.gather`.

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
        reads = Reads(self._client, _core(scans), concurrency)
        try:
            with reads:
                while (page := await reads.core._step(reads.reported)) is not None:
                    reads.report(*page)
                return reads.gathered()
        except SitelineError as error:
            error.scans = [known.get(id(one)) or AsyncScan(one) for one in error.scans]
            raise

    async def plan(
        self,
        feeds: _Feeds | AsyncScan | Iterable[AsyncScan],
        store: Store | StoreTarget | AsyncStoreTarget | None = None,
        **options: Unpack[_PlanOptions],
    ) -> Plan:
        """Plan what the next sync would read and cost: see :meth:`siteline.Client.plan`."""
        given: Any = _core(feeds)
        known: Any = store
        if (target := async_target(store)) is not None:
            named = [one for one in _listed(given) if isinstance(one, Feed)]
            known = KnownStates({feed.name: await target.state(feed.name) for feed in named})
        return self._client.plan(given, known, **options)

    def close(self) -> None:
        """Close, without waiting: open and later calls raise :class:`siteline.errors.ClosedError`."""
        self._client.close()

    async def __aenter__(self) -> Self:
        """Enter; leaving closes the client."""
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close the client."""
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings: see :class:`siteline.Client`."""
        return (type(self)._over, (self._client,))

    def __copy__(self) -> Self:
        """Return the client itself."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        """Return the client itself."""
        return self

    def __repr__(self) -> str:
        """Name the service and the subject."""
        return repr(self._client).replace("<Client", "<AsyncClient", 1)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import html

        return html.client(self._client, "AsyncClient")


def _show_arguments() -> None:
    """Let ``help()`` show the arguments of :class:`siteline.Client`, with their defaults."""
    for name in ("scan", "sync", "sync_pages", "plan"):
        shown = inspect.signature(getattr(Client, name))
        getattr(AsyncClient, name).__signature__ = shown
    AsyncClient.__signature__ = inspect.signature(Client)


_show_arguments()


def _core(given: Any) -> Any:
    """Replace each :class:`AsyncScan`, alone or in a list, by the core's scan."""
    if isinstance(given, AsyncScan):
        return given._scan
    if isinstance(given, Iterable) and not isinstance(given, str):
        return [one._scan if isinstance(one, AsyncScan) else one for one in given]
    return given


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


async def _completed(
    future: asyncio.Future[_T],
    undo: Callable[[_T], asyncio.Future[None] | None] | None = None,
    stop: Callable[[], None] | None = None,
) -> _T:
    """Wait until a future is done, even when cancelled; then undo it and raise the cancellation.

    This way ``sync()`` has unlocked the feed and stopped writing when it ends. ``stop`` makes the
    future end early.
    """
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        await _done(future)
        if not future.cancelled() and future.exception() is None and undo is not None:
            undone = undo(future.result())
            if undone is not None:
                await _done(undone)
        raise


async def _done(future: asyncio.Future[Any]) -> None:
    while not future.done():
        # The future ends soon, so a second cancellation does not end the wait.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])


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


class AsyncSyncPages(Replaceable):
    """The pages of a sync with the states to store with them: :class:`siteline.SyncPages`.

    Made by :meth:`AsyncClient.sync_pages`. Asking for the next page says that the one before was
    stored: so it is for one task. A cancelled wait loses no page.

    >>> import asyncio
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         async with client.sync_pages(feed) as pages:
    ...             rows = sum([len(page) async for page, _ in pages if page is not None])
    ...         return pages.report.complete, pages.report.inserted == rows > 0
    >>> asyncio.run(main())
    (True, True)
    """

    __slots__ = ("_one_at_a_time", "_pages")

    def __init__(self, pages: SyncPages) -> None:
        """Wrap the iterator of the core."""
        self._pages = pages
        self._one_at_a_time = asyncio.Lock()

    def __aiter__(self) -> Self:
        """Iterate over the pages."""
        return self

    async def __anext__(self) -> tuple[Page | None, dict[str, bytes]]:
        """Return the next page, or ``None`` where only the state changes, and the state."""
        async with self._one_at_a_time:
            if not self._pages._is_over():
                handed = self._pages._take(await self._pages._fetch())
                if handed is not None:
                    return handed
        raise StopAsyncIteration

    def applied(self, inserted: int, revised: int, unchanged: int, withdrawn: int = 0) -> None:
        """Say what the last page changed: see :meth:`siteline.SyncPages.applied`."""
        self._pages.applied(inserted, revised, unchanged, withdrawn)

    @property
    def report(self) -> SyncReport:
        """What the sync has done so far, or had done at its end."""
        return self._pages.report

    def close(self) -> None:
        """End the sync here: see :meth:`siteline.SyncPages.close`."""
        self._pages.close()

    async def __aenter__(self) -> Self:
        """Enter; leaving ends the sync."""
        return self

    async def __aexit__(self, *exception: object) -> None:
        """End the sync."""
        self.close()


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
        """Wrap a scan; made by :meth:`AsyncClient.data`."""
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
        """Read point by point: plain dicts, or :class:`siteline.Record` tuples.

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


async def _fetch_names(client: Client, labels: Any) -> None:
    """Ask discovery once for the names of labels: see ``siteline._labels.fetch``."""
    from siteline import _labels

    if _labels.needs_names(labels) and client not in _labels._refused:
        try:
            await client._discover()
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
