"""Many requests: chains of pages, small scans at once, feeds at the same time, and their memory."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import tempfile
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from speed.outcome import Figures, Outcome, timed, timing
from speed.render import START
from speed.service import HEADERS, base_url, credential, ours, query, target

PARTS, SCANS, FEEDS = 8, 1_000, 40
STOP = START + timedelta(hours=100)
"""The end of a hundred pages of 50 ms each."""


def chain() -> Outcome:
    """siteline, one chain."""
    _, scan = ours()
    table, figures = timed(lambda: scan("slow", STOP).collect())
    return Outcome(figures, table.to_pandas)


def split() -> Outcome:
    """siteline, the range in eight parts that are read concurrently, and merged."""
    client, scan = ours()
    parts = scan("slow", STOP).split(PARTS)
    gathered, figures = timed(lambda: client.gather(parts, concurrency=PARTS))
    return Outcome(figures, gathered.to_pandas)


def bare() -> Outcome:
    """A socket in a loop: it searches for the cursor, and decodes nothing."""
    place = urlsplit(base_url())
    connection = socket.create_connection((place.hostname, place.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    headers = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    rest = f" HTTP/1.1\r\nHost: {place.netloc}\r\n{headers}\r\n".encode()
    wire = connection.makefile("rb")

    def get(path: str) -> bytes:
        connection.sendall(b"GET " + path.encode() + rest)
        length = 0
        while (line := wire.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line[15:])
        return wire.read(length)

    def work() -> int:
        first = path = target("slow", STOP)
        points = 0
        while True:
            body = get(path)
            points += body.count(b'"timestamp"')
            cursor = re.search(rb'"nextCursor":"([^"]*)"', body)
            if cursor is None:
                return points
            path = f"{first}&cursor={cursor[1].decode()}"

    get(target("tiny"))
    points, figures = timed(work)
    return Outcome(figures, lambda: {"rows": points})


def scans() -> Outcome:
    """siteline in asyncio: each scan a chain of one page, counted, decoded and checked."""
    import siteline

    async def work() -> Outcome:
        async with siteline.AsyncClient(base_url(), credential=credential()) as client:

            async def points() -> int:
                return len(await client.scan(**query("tiny")).collect())

            return await _at_once(points)

    return asyncio.run(work())


def aiohttp() -> Outcome:
    """aiohttp: a session, and the standard library's JSON."""
    import aiohttp

    async def work() -> Outcome:
        async with aiohttp.ClientSession(base_url(), headers=HEADERS) as session:

            async def points() -> int:
                async with session.get(target("tiny")) as response:
                    page: Any = json.loads(await response.read())
                return sum(len(series["points"]) for series in page["series"])

            return await _at_once(points)

    return asyncio.run(work())


async def _at_once(points: Callable[[], Awaitable[int]]) -> Outcome:
    """The figures of all scans but the first, which opens a connection and gets a token."""
    await points()
    with timing() as figures:
        counts = await asyncio.gather(*[points() for _ in range(SCANS)])
    return Outcome(figures, lambda: {"rows": sum(counts)})


def feeds(concurrency: str) -> Figures:
    """A sync of forty feeds, each a chain of two pages that are answered after 50 ms."""
    import siteline

    client, _ = ours()
    feeds = [
        siteline.Feed(f"feed {number}", site="slow", line=f"L{number}", interval="1m", since=START)
        for number in range(FEEDS)
    ]
    stop = START + timedelta(hours=2)
    with (
        tempfile.TemporaryDirectory() as folder,
        siteline.Store(Path(folder) / "plant.siteline") as store,
        timing() as figures,
    ):
        report = client.sync(feeds, store, until=stop, concurrency=int(concurrency))
    if not report.complete or report.requests != 2 * FEEDS:
        raise RuntimeError(f"not {2 * FEEDS} requests: {report.requests}")
    return figures


def memory(pages: str) -> Figures:
    """A chain of any length page by page, without keeping a page."""
    _, scan = ours()
    return timed(lambda: sum(len(page) for page in scan(pages).pages()))[1]
