"""A thousand small scans at once in asyncio: siteline and aiohttp, each with its own bound."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from speed.connection import HEADERS
from speed.outcome import Outcome, timed
from speed.render import START, end
from speed.service import INTERVAL, PAGE_SIZE, base_url, folder, target

SCANS = 1_000


def siteline() -> Outcome:
    """siteline: each scan a chain of one page, counted, decoded and checked."""
    import siteline

    client = siteline.AsyncClient(
        base_url(), credential=siteline.Credential("bench", folder() / "key.pem")
    )

    async def points() -> int:
        scan = client.data(
            site="tiny", start=START, end=end(), interval=INTERVAL, page_size=PAGE_SIZE
        )
        return len(await scan.collect())

    async def close() -> None:
        client.close()

    return _crowd(points, points, close)


def aiohttp() -> Outcome:
    """aiohttp: a session, and the standard library's JSON."""
    import aiohttp

    sessions: list[aiohttp.ClientSession] = []

    async def opened() -> int:
        sessions.append(aiohttp.ClientSession(base_url(), headers=HEADERS))
        return await points()

    async def points() -> int:
        async with sessions[0].get(target("tiny")) as response:
            page: Any = json.loads(await response.read())
        return sum(len(series["points"]) for series in page["series"])

    return _crowd(opened, points, lambda: sessions[0].close())


def _crowd(first: Any, each: Any, last: Any) -> Outcome:
    """The figures of all scans but the first, which opens a connection and gets a token."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(first())

    async def all_of_them() -> list[int]:
        return list(await asyncio.gather(*[each() for _ in range(SCANS)]))

    counts, figures = timed(lambda: loop.run_until_complete(all_of_them()))
    loop.run_until_complete(last())
    return Outcome(figures, lambda: {"rows": sum(counts)})
