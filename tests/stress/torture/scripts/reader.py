"""A sync and an async client behind one interface, for the other scripts here."""

import contextlib
import sys
import time
from typing import Any

import siteline

RANGE = {
    "site": "S1",
    "start": "2026-11-01T00:00Z",
    "end": "2026-11-08T00:00Z",
    "interval": "1m",
    # The chains of this server have no end.
    "max_pages": 1_000_000,
}
TIMEOUT = 60


def report(name: str, **numbers: float) -> None:
    """Prints a line for the parent: a name, the time on the monotonic clock, and numbers."""
    extra = "".join(f" {key}={number!r}" for key, number in numbers.items())
    print(f"{name} at={time.monotonic()!r}{extra}", flush=True)


def await_parent() -> str:
    """Waits for a line from the parent."""
    return sys.stdin.readline().strip()


class Reader:
    """Makes data requests, and requests that the server always answers (pings)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.credential = siteline.Credential("torture", siteline.PrivateKey.generate(2048))
        self.client: Any = self.new_client()
        self.awaitable: Any = self.new_client(siteline.AsyncClient)

    def new_client(self, kind: Any = siteline.Client) -> Any:
        http = siteline.types.Http(
            response_timeout=TIMEOUT, idle_timeout=TIMEOUT, connect_timeout=TIMEOUT
        )
        return kind(self.url, labels=False, credential=self.credential, http=http)

    def read(self) -> Any:
        return self.client.scan(**RANGE).collect()

    def ping(self) -> Any:
        return self.client.discover()

    async def read_async(self) -> Any:
        return await self.awaitable.scan(**RANGE).collect()

    async def ping_async(self) -> Any:
        return await self.awaitable.discover()

    def pending(self) -> list[Any]:
        """Returns a data request that has begun, and that no task awaits."""
        scan = self.client.scan(**RANGE)._handle
        waiting = scan.read_on(scan.reading(False), False, False).__await__()
        with contextlib.suppress(StopIteration):  # the reply has already arrived
            waiting.send(None)
        # Until Python 3.12, asyncio takes a generator for a coroutine.
        return [waiting]
