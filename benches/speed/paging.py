"""Many requests: chains of pages, small scans at once, feeds at the same time, and their memory."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import siteline

from speed.outcome import Figures, Outcome, timed, timing
from speed.render import START
from speed.service import HEADERS, base_url, credential, ours, query, target

SCANS, FEEDS = 1_000, 40
STOP = START + timedelta(hours=100)
"""The end of a hundred pages of 50 ms each."""


def chain(parts: str = "1") -> Outcome:
    """siteline: one chain, or the range in parts that threads read at the same time."""
    _, scan = ours()
    scans = scan("slow", STOP).split(int(parts))
    with ThreadPoolExecutor(len(scans)) as pool:
        tables, figures = timed(lambda: list(pool.map(siteline.Scan.collect, scans)))
    return Outcome(figures, lambda: pd.concat([table.to_pandas() for table in tables]))


def scans() -> Outcome:
    """siteline in asyncio: each scan a chain of one page, counted, decoded and checked."""

    async def work() -> Outcome:
        async with siteline.AsyncClient(
            base_url(), credential=credential(), labels=False
        ) as client:

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
    client, _ = ours()
    feeds = [
        siteline.Feed(f"feed {number}", site="slow", line=f"L{number}", interval="1m", start=START)
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


def memory() -> Figures:
    """A chain page by page, without keeping a page."""
    _, scan = ours()
    return timed(lambda: sum(len(page) for page in scan("a").pages()))[1]
