"""Serves local stores to language models by MCP: ``pip install siteline[mcp]``.

Run ``python -m siteline.mcp STORE…``, or call :func:`serve`. Models list feeds and series, and read
points, completeness, coverage and changes. They cannot change a store.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from siteline._keywords import strict
from siteline.errors import ConfigError

if TYPE_CHECKING:
    from siteline.aio import AsyncClient
    from siteline.client import Client
    from siteline.store import Store

__all__ = ["serve"]


@strict
def serve(
    stores: str | PathLike[str] | Store | Sequence[str | PathLike[str] | Store],
    *,
    client: Client | AsyncClient | None = None,
    allow_requests: int = 0,
) -> None:
    """Serve stores on standard input and output, until the input ends.

    Args:
        stores: One store or several. Each file is opened read-only.
        client: Sends the requests that ``allow_requests`` permits. By default ``Client()``.
        allow_requests: The most requests of the daily allowance that this process sends. With 0
            there is no tool that sends a request.

    Raises:
        ConfigError: There is no store, or two have the same file name.
        StoreError: A file is missing or not a store.
    """
    from siteline.client import Client
    from siteline.frames import needing
    from siteline.store import Store

    with needing("mcp", "siteline.mcp"):
        from siteline.mcp._server import Server
    if allow_requests < 0:
        raise ConfigError(f"allow_requests={allow_requests} is negative.")
    given: Any = stores if isinstance(stores, list | tuple) else [stores]
    opened: dict[str, Store] = {}
    for one in given:
        path, tz = (one.path, one.tz) if isinstance(one, Store) else (one, "UTC")
        store = Store(path, tz=tz, read_only=True)
        if store.path.stem in opened:
            raise ConfigError(f"Two stores have the name {store.path.stem!r}: rename a file.")
        opened[store.path.stem] = store
    if not opened:
        raise ConfigError("There is no store to serve.", hint="Pass the path of a store.")
    if allow_requests and client is None:
        client = Client()
    Server(opened, client if allow_requests else None, allow_requests).server.run("stdio")
