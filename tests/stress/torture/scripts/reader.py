"""The three packages behind one interface: a data request and a small one, sync and async.

Imported by the other scripts here, each of which runs in a new interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import Any

RANGE = {
    "site": "S1",
    "start": "2026-11-01T00:00Z",
    "end": "2026-11-08T00:00Z",
    "interval": "1m",
    # The chains of this server have no end.
    "max_pages": 1_000_000,
}
"""The range that the scripts read with siteline."""
DATA = "api/customer/v1/data"
PING = "api/customer/v1/discovery"
TIMEOUT = 60
"""The timeout of a request in seconds, the same for all packages."""


def report(name: str, **numbers: float) -> None:
    """Print a line for the parent: a name, the time on the monotonic clock, and numbers."""
    extra = "".join(f" {key}={number!r}" for key, number in numbers.items())
    print(f"{name} at={time.monotonic()!r}{extra}", flush=True)


def await_parent() -> str:
    """Wait for a line from the parent."""
    return sys.stdin.readline().strip()


def open_reader(package: str, url: str) -> Any:
    """The reader of this package."""
    return {"siteline": Siteline, "obstore": Obstore, "primp": Primp}[package](url)


class Siteline:
    """siteline, with a sync and an async client."""

    has_pages = True

    def __init__(self, url: str) -> None:
        """Make the clients, without a request."""
        import siteline

        key = siteline.PrivateKey.generate(2048)
        options: dict[str, Any] = {
            "credential": siteline.Credential("torture", key),
            "http": siteline.types.Http(
                response_timeout=TIMEOUT, idle_timeout=TIMEOUT, connect_timeout=TIMEOUT
            ),
        }
        self.module = siteline
        self.url, self.options = url, options
        self.client = self.new_client()
        self.awaitable = self.new_client(awaitable=True)

    def new_client(self, *, awaitable: bool = False) -> Any:
        """Make another client of the same credential."""
        kind = self.module.AsyncClient if awaitable else self.module.Client
        return kind(self.url, labels=False, **self.options)

    def read(self) -> object:
        """Wait for a data request."""
        return self.client.scan(**RANGE).collect()

    def ping(self) -> object:
        """Wait for a request that is always answered."""
        return self.client.discover()

    async def read_async(self) -> object:
        """Await a data request."""
        return await self.awaitable.scan(**RANGE).collect()

    async def ping_async(self) -> object:
        """Await a request that is always answered."""
        return await self.awaitable.discover()

    def pending(self) -> object:
        """A data request that has begun, and that no task awaits."""
        scan = self.client.scan(**RANGE)._handle
        waiting = scan.collect(scan.reading(False)).__await__()
        with contextlib.suppress(StopIteration):  # the reply has already arrived
            waiting.send(None)
        # Until Python 3.12, asyncio takes a generator for a coroutine.
        return [waiting]


class Obstore:
    """obstore, with the prefix as a store."""

    has_pages = False

    def __init__(self, url: str) -> None:
        """Make the store, without a request."""
        import obstore
        from obstore.store import HTTPStore

        self.module = obstore
        options = {"allow_http": True, "timeout": f"{TIMEOUT}s"}
        self.store = HTTPStore.from_url(url, client_options=options)

    def read(self) -> object:
        """Wait for a data request."""
        return self.module.get(self.store, DATA).bytes()

    def ping(self) -> object:
        """Wait for a request that is always answered."""
        return self.module.get(self.store, PING).bytes()

    async def read_async(self) -> object:
        """Await a data request."""
        return await (await self.module.get_async(self.store, DATA)).bytes_async()

    async def ping_async(self) -> object:
        """Await a request that is always answered."""
        return await (await self.module.get_async(self.store, PING)).bytes_async()

    def pending(self) -> object:
        """An awaitable of a data request, started and not awaited."""
        return self.module.get_async(self.store, DATA)


class Primp:
    """primp, with a sync and an async client."""

    has_pages = False

    def __init__(self, url: str) -> None:
        """Make the clients, without a request."""
        import primp

        self.url = url
        self.client = primp.Client(timeout=TIMEOUT)
        self.awaitable = primp.AsyncClient(timeout=TIMEOUT)

    def read(self) -> object:
        """Wait for a data request."""
        return self.client.get(f"{self.url}/{DATA}").content

    def ping(self) -> object:
        """Wait for a request that is always answered."""
        return self.client.get(f"{self.url}/{PING}").content

    async def read_async(self) -> object:
        """Await a data request."""
        return (await self.awaitable.get(f"{self.url}/{DATA}")).content

    async def ping_async(self) -> object:
        """Await a request that is always answered."""
        return (await self.awaitable.get(f"{self.url}/{PING}")).content

    def pending(self) -> object:
        """An awaitable of a data request, started and not awaited.

        It must be a task; Python must not log that a pending task was destroyed.
        """
        task = asyncio.ensure_future(self.awaitable.get(f"{self.url}/{DATA}"))
        task._log_destroy_pending = False
        return task
