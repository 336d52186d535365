"""The three packages behind one face: a data request, a small request, both waits and awaitables.

Run by a fresh interpreter, beside the script that imports it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

RANGE = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-08T00:00Z", "interval": "1m"}
"""What the scripts ask siteline for."""
DATA = "api/customer/v1/data"
PING = "api/customer/v1/discovery"
PATIENCE = 60
"""The limit of a request in seconds, the same for all packages."""


def say(word: str, **numbers: float) -> None:
    """Tell the parent what happens, and when: the monotonic clock is the machine's."""
    extra = "".join(f" {name}={number!r}" for name, number in numbers.items())
    print(f"{word} at={time.monotonic()!r}{extra}", flush=True)


def hear() -> str:
    """Wait for a word of the parent."""
    return sys.stdin.readline().strip()


def open_reader(package: str, url: str) -> Any:
    """The reader of this package."""
    return {"siteline": Siteline, "obstore": Obstore, "primp": Primp}[package](url)


class Siteline:
    """siteline, with a client for each door."""

    has_pages = True

    def __init__(self, url: str) -> None:
        """Make the clients; costs no request."""
        import siteline

        key = siteline.PrivateKey.generate(2048)
        options: dict[str, Any] = {
            "credential": siteline.Credential("torture", key),
            "response_timeout": PATIENCE,
            "idle_timeout": PATIENCE,
            "connect_timeout": PATIENCE,
        }
        self.module = siteline
        self.url, self.options = url, options
        self.client = self.new_client()
        self.awaitable = self.new_client(awaitable=True)

    def new_client(self, *, awaitable: bool = False) -> Any:
        """Make another client of the same credential."""
        kind = self.module.AsyncClient if awaitable else self.module.Client
        return kind(self.url, **self.options)

    def read(self) -> object:
        """Wait for a data request."""
        return self.client.data(**RANGE).collect()

    def ping(self) -> object:
        """Wait for a request that is always answered."""
        return self.client.discover()

    async def read_async(self) -> object:
        """Await a data request."""
        return await self.awaitable.data(**RANGE).collect()

    async def ping_async(self) -> object:
        """Await a request that is always answered."""
        return await self.awaitable.discover()

    def pending(self) -> object:
        """A bare awaitable of a data request, begun and not awaited."""
        return self.client.data(**RANGE)._collect()


class Obstore:
    """obstore, with the prefix as a store."""

    has_pages = False

    def __init__(self, url: str) -> None:
        """Make the store; costs no request."""
        import obstore
        from obstore.store import HTTPStore

        self.module = obstore
        options = {"allow_http": True, "timeout": f"{PATIENCE}s"}
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
        """A bare awaitable of a data request, begun and not awaited."""
        return self.module.get_async(self.store, DATA)


class Primp:
    """primp, with a client for each door."""

    has_pages = False

    def __init__(self, url: str) -> None:
        """Make the clients; costs no request."""
        import primp

        self.url = url
        self.client = primp.Client(timeout=PATIENCE)
        self.awaitable = primp.AsyncClient(timeout=PATIENCE)

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
        """An awaitable of a data request, begun and not awaited.

        It is a task, for there is no bare one: Python would complain of a task that is dropped.
        """
        task = asyncio.ensure_future(self.awaitable.get(f"{self.url}/{DATA}"))
        task._log_destroy_pending = False
        return task
