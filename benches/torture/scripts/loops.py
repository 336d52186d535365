"""Use one client in several loops, and lose some of them: PACKAGE URL HOW LOOP."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from typing import Any

from reader import hear, open_reader, say

TIMES = 20


async def read_some(reader: Any) -> None:
    """Read several at once."""
    await asyncio.gather(*(reader.read_async() for _ in range(5)))


def close_with_a_call_pending(reader: Any, new_loop: Any) -> None:
    """Close the loop under a request; it is answered when nobody listens any more."""
    kept = []

    async def begin() -> None:
        kept.append(reader.pending())

    loop = new_loop()
    loop.run_until_complete(begin())
    say("pending")
    hear()
    loop.close()
    say("closed")
    hear()
    run(reader.ping_async(), new_loop)
    kept.clear()
    gc.collect()


def close_under_answers(reader: Any, new_loop: Any) -> None:
    """Close loops while their answers come in."""
    for number in range(TIMES):
        loop = new_loop()
        kept = loop.run_until_complete(begin_many(reader, number * 0.0005))
        loop.close()
        del kept[:]
    gc.collect()


async def begin_many(reader: Any, seconds: float) -> list[object]:
    """Begin many requests, and leave them alone after a while."""
    begun = [reader.pending() for _ in range(8)]
    await asyncio.sleep(seconds)
    return begun


def one_after_the_other(reader: Any, new_loop: Any) -> None:
    """Run loop after loop."""
    for _ in range(TIMES):
        run(read_some(reader), new_loop)


def side_by_side(reader: Any, new_loop: Any) -> None:
    """Run two loops in two threads."""
    threads = [
        threading.Thread(target=one_after_the_other, args=(reader, new_loop)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(work: Any, new_loop: Any) -> None:
    """As asyncio.run, with this kind of loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work)


HOW = {
    "pending": close_with_a_call_pending,
    "answers": close_under_answers,
    "again": one_after_the_other,
    "threads": side_by_side,
}


def main() -> None:
    """Play."""
    package, url, how, loop = sys.argv[1:]
    reader = open_reader(package, url)
    reader.ping()
    new_loop: Any = asyncio.new_event_loop
    if loop == "uvloop":
        import uvloop

        new_loop = uvloop.new_event_loop
    HOW[how](reader, new_loop)
    reader.ping()
    say("usable")


main()
