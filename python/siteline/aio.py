"""The same client, awaitable: a second door to the same core, not a second implementation.

Each call starts the core's own future on siteline's runtime and hands an awaitable to the running
asyncio loop. Cancelling it (``task.cancel()``, ``asyncio.wait_for``, a failing sibling in a
``TaskGroup``) drops the request and closes its connection at once, one that was read ahead too;
``CancelledError`` passes through untouched. Any number of loops may share a client, one after the
other or side by side; uvloop too.

Under anyio it works on its asyncio backend. Under trio it does not: there is no asyncio loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, Unpack, overload

from siteline import html
from siteline._siteline import Client, Page
from siteline.errors import SitelineError
from siteline.progress import Progress, finish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta
    from types import TracebackType

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._siteline import (
        Allowance,
        Bookmark,
        Query,
        Scan,
        Store,
        Table,
        _DataOptions,
        _Feeds,
        _NewClientOptions,
        _OutsideOptions,
        _PlanOptions,
        _SyncOptions,
    )
    from siteline.discovery import Discovery
    from siteline.frames import Record
    from siteline.gathered import Gathered
    from siteline.sync import Plan, SyncReport
    from siteline.targets import StoreTarget

__all__ = ["AsyncClient", "AsyncPages", "AsyncRecords", "AsyncScan"]

_T = TypeVar("_T")
_Item_co = TypeVar("_Item_co", covariant=True)


class _Source(Protocol[_Item_co]):
    def _take(self) -> tuple[_Item_co | None, bool]: ...
    def _fill(self) -> Awaitable[None]: ...
    def _tell(self) -> None: ...
    def _end(self) -> None: ...


class AsyncClient:
    """:class:`siteline.Client` for asyncio: the same arguments, the same names, awaitable.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.data(site="S1", start="2026-11-01T00:00Z",
    ...                            end="2026-11-01T06:00Z", interval="1h", page_size=30)
    ...         return sum([len(page) async for page in scan.pages()]) == len(await scan.collect())
    >>> asyncio.run(main())
    True
    """

    __slots__ = ("_client",)

    def __init__(self, base_url: str, **options: Unpack[_NewClientOptions]) -> None:
        """Make a client; costs no request. The arguments are those of :class:`siteline.Client`."""
        self._client = Client(base_url, **options)

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
        """The daily request allowance as its ledger knows it."""
        return self._client.allowance

    @property
    def clock_skew(self) -> float | None:
        """Service clock minus this machine's, in seconds; ``None`` until a reply showed it."""
        return self._client.clock_skew

    async def discover(self) -> Discovery:
        """Ask what may be read (§4.2)."""
        return await self._client._discover()

    def data(self, **query: Unpack[_DataOptions]) -> AsyncScan:
        """Make a lazy :class:`AsyncScan`; the arguments are those of :class:`siteline.Client`'s."""
        return AsyncScan(self._client.data(**query))

    async def sync(
        self, feeds: _Feeds, store: Store | StoreTarget, **options: Unpack[_SyncOptions]
    ) -> SyncReport:
        """Bring feeds up to date in a store; the arguments are those of :class:`siteline.Client`'s.

        A :class:`siteline.Store` is written on a thread of its own. Cancelled, it leaves all that
        was committed, once the page that is being written has been.
        """
        run = await _whole(self._client._begin(feeds, store, dict(options)), lambda run: run._end())
        told = run._reporter()
        try:
            while await run._fetch():
                progress = await _whole(run._apply())
                if told is not None:
                    told(progress)
            return await run._report()
        finally:
            run._end()

    async def gather(self, scans: Iterable[AsyncScan], *, concurrency: int | None = 8) -> Gathered:
        """Read several scans of this client side by side: see :meth:`siteline.Client.gather`.

        The ``.scans`` of an error are those to gather again. Cancelled, the open requests are
        dropped, and what was read stays with the scans.

        >>> import asyncio
        >>> async def main():
        ...     async with sandbox.async_client() as client:
        ...         scan = client.data(site="S1", start="2026-11-01T00:00Z",
        ...                            end="2026-11-08T00:00Z", interval="1h")
        ...         return await client.gather(scan.split(2), concurrency=2)
        >>> asyncio.run(main())
        <Gathered 2 tables, 2007 points, 3 pages>
        """
        known = {}
        if isinstance(scans, Iterable):
            scans = list(scans)
            known = {id(one._scan): one for one in scans if isinstance(one, AsyncScan)}
        gathering = self._client._gathering(_core(scans), concurrency)
        try:
            while (step := await gathering._step()) is not None:
                told, progress = step
                told(progress)
            return gathering._gathered()
        except SitelineError as error:
            error.scans = [known.get(id(one)) or AsyncScan(one) for one in error.scans]
            raise
        finally:
            gathering._end()

    async def plan(
        self,
        feeds: _Feeds | AsyncScan | Iterable[AsyncScan],
        store: Store | StoreTarget | None = None,
        **options: Unpack[_PlanOptions],
    ) -> Plan:
        """Tell what the next sync would read and cost: see :meth:`siteline.Client.plan`."""
        return self._client.plan(_core(feeds), store, **options)

    def close(self) -> None:
        """Close: later and waiting calls raise :class:`siteline.ClosedError`. Does not wait."""
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
        return html.client(self._client, "AsyncClient")


def _core(what: Any) -> Any:
    """What the core takes: its own scans, in a list or alone."""
    if isinstance(what, AsyncScan):
        return what._scan
    if isinstance(what, Iterable) and not isinstance(what, str):
        return [one._scan if isinstance(one, AsyncScan) else one for one in what]
    return what


async def _whole(done: asyncio.Future[_T], undo: Callable[[_T], None] | None = None) -> _T:
    """Wait for what is done to its end all the same: who is cancelled meanwhile hears of it then.

    So the feed is free, and the store at rest, when ``sync()`` is over.
    """
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            # Cancelled once more, it waits on: it is over in a moment.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        if not done.cancelled() and done.exception() is None and undo is not None:
            undo(done.result())
        raise


class AsyncScan:
    """:class:`siteline.Scan` for asyncio: a recipe that reads when it is awaited.

    ``pages()`` and ``records()`` each start a new chain; ``collect()`` and the ``to_…`` read the
    whole once, together.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.data(site="S1", start="2026-11-01T00:00Z", interval="1h")
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

    def pages(self) -> AsyncPages:
        """Read page by page, on a new chain: ``async for page in scan.pages()``.

        From the second page on one is read ahead: see :meth:`siteline.Scan.pages`.
        """
        return AsyncPages(self._scan.pages())

    @overload
    def records(self, *, named: Literal[False] = False) -> AsyncRecords[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> AsyncRecords[Record]: ...
    def records(self, *, named: bool = False) -> AsyncRecords[Any]:
        """Read point by point, on a new chain: plain dicts, or :class:`siteline.Record` tuples.

        From the second page on one is read ahead: see :meth:`siteline.Scan.pages`.
        """
        return AsyncRecords(self._scan.records(named=True) if named else self._scan.records())

    async def collect(self) -> Table:
        """Read the whole once, merged, and remember it. Cancelled, it goes on when called again."""
        told = self._scan._reporter()
        if told is None:
            return await self._scan._collect()
        collecting = self._scan._collecting()
        try:
            while isinstance(step := await self._scan._step(collecting), Progress):
                told(step)
            return step
        finally:
            self._scan._rest()
            finish(told)

    def resume(self, bookmark: Bookmark, *, onto: Table | None = None) -> AsyncScan:
        """Go on from a bookmark, on top of what had been read (``onto=error.partial``)."""
        return AsyncScan(self._scan.resume(bookmark, onto=onto))

    def split(self, by: int | str | timedelta, /) -> list[AsyncScan]:
        """Split into scans of adjoining ranges: see :meth:`siteline.Scan.split`."""
        return [AsyncScan(part) for part in self._scan.split(by)]

    async def to_pandas(self, *, ids: Literal["str", "category"] = "str") -> pd.DataFrame:
        """Read the whole into the long pandas frame."""
        return (await self.collect()).to_pandas(ids=ids)

    async def to_polars(self, *, ids: Literal["str", "category"] = "str") -> pl.DataFrame:
        """Read the whole into the long polars frame, without pyarrow."""
        return (await self.collect()).to_polars(ids=ids)

    async def to_arrow(self) -> pa.Table:
        """Read the whole into a ``pyarrow.Table``."""
        return (await self.collect()).to_arrow()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the recipe, where its client can be pickled."""
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
        """What notebooks show; it reads nothing."""
        return html.scan(self._scan, "AsyncScan")


class _Reading(Generic[_Item_co]):
    """What is read as it is asked for, by any number of tasks. Each item is given once.

    Not an async generator: that is over once it was cancelled or has failed, and would then end as
    if everything had been read.
    """

    __slots__ = ("_source",)

    def __init__(self, source: _Source[_Item_co]) -> None:
        """Wrap an iterator of the core."""
        self._source = source

    def __aiter__(self) -> Self:
        """Return the iterator itself."""
        return self

    async def __anext__(self) -> _Item_co:
        """Give the next one. Cancelled, it loses none: the next one who asks gets it."""
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
            self._source._tell()


class AsyncPages(_Reading[Page]):
    """The pages of one chain, read as they are asked for. Each page is given once.

    Made by :meth:`AsyncScan.pages`. Cancelled or failed, it can be asked again: it goes on where it
    was. Pages are read ahead as :meth:`siteline.Scan.pages` does: one that is on its way ends with
    the last task that waits for it, or with the iterator.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
    ...                            interval="1h", page_size=30)
    ...         return [len(page) async for page in scan.pages()]
    >>> asyncio.run(main())
    [30, 30, 12]
    """

    __slots__ = ()


class AsyncRecords(_Reading[_Item_co]):
    """The points of one chain, read as they are asked for. Each point is given once.

    Made by :meth:`AsyncScan.records`. Cancelled or failed, it can be asked again: it goes on where
    it was. Pages are read ahead as those of :class:`AsyncPages`.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.data(site="S1", start="2026-11-01T00:00Z", interval="1h")
    ...         async for record in scan.records(named=True):
    ...             return record.site_id
    >>> asyncio.run(main())
    'S1'
    """

    __slots__ = ()
