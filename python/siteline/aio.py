"""The same client, awaitable: a second door to the same core, not a second implementation.

Each call starts the core's own future on siteline's runtime and hands an awaitable to the running
asyncio loop. Cancelling it (``task.cancel()``, ``asyncio.wait_for``, a failing sibling in a
``TaskGroup``) drops the request and closes its connection at once; ``CancelledError`` passes
through untouched. Any number of loops may share a client, one after the other or side by side;
uvloop too.

Under anyio it works on its asyncio backend. Under trio it does not: there is no asyncio loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from siteline import html
from siteline._siteline import Client
from siteline.progress import Progress, finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._siteline import (
        Allowance,
        Bookmark,
        Page,
        PageIterator,
        Query,
        Scan,
        Table,
        _DataOptions,
        _NewClientOptions,
        _OutsideOptions,
    )
    from siteline.discovery import Discovery
    from siteline.frames import Record

__all__ = ["AsyncClient", "AsyncPages", "AsyncScan"]


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
        """The daily request allowance as counted here."""
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
        """Read page by page, on a new chain: ``async for page in scan.pages()``."""
        return AsyncPages(self._scan.pages())

    @overload
    def records(self, *, named: Literal[False] = False) -> AsyncIterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> AsyncIterator[Record]: ...
    async def records(self, *, named: bool = False) -> AsyncIterator[Any]:
        """Read point by point, on a new chain: plain dicts, or :class:`siteline.Record` tuples."""
        async for page in self.pages():
            for record in page.records(named=True) if named else page.records():
                yield record

    async def collect(self) -> Table:
        """Read the whole once, merged, and remember it. Cancelled, it goes on when called again."""
        told = self._scan._reporter()
        if told is None:
            return await self._scan._collect()
        until = self._scan._until()
        try:
            while isinstance(step := await self._scan._step(until), Progress):
                told(step)
            return step
        finally:
            finish(told)

    def resume(self, bookmark: Bookmark, *, onto: Table | None = None) -> AsyncScan:
        """Go on from a bookmark, on top of what had been read (``onto=error.partial``)."""
        return AsyncScan(self._scan.resume(bookmark, onto=onto))

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


class AsyncPages:
    """The pages of one chain, read as they are asked for. Each page is given once.

    >>> import asyncio
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         scan = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
    ...                            interval="1h", page_size=30)
    ...         return [len(page) async for page in scan.pages()]
    >>> asyncio.run(main())
    [30, 30, 12]
    """

    __slots__ = ("_pages",)

    def __init__(self, pages: PageIterator) -> None:
        """Wrap an iterator; made by :meth:`AsyncScan.pages`."""
        self._pages = pages

    def __aiter__(self) -> Self:
        """Return the iterator itself."""
        return self

    async def __anext__(self) -> Page:
        """Read the next page. Cancelled, it loses none: the next one who asks gets it."""
        while True:
            page, ended = self._pages._take()
            if page is not None:
                return page
            if ended:
                raise StopAsyncIteration
            await self._pages._fill()
            self._pages._tell()
