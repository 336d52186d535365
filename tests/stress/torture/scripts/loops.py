"""Use one client in several event loops, and close some early: URL HOW LOOP."""

import asyncio
import gc
import sys
import threading
from importlib import import_module
from typing import Any

from reader import Reader, await_parent, report

TIMES = 20


async def read_some(reader: Reader) -> None:
    await asyncio.gather(*(reader.read_async() for _ in range(5)))


def close_with_a_call_pending(reader: Reader, new_loop: Any) -> None:
    """Close the loop while a request is pending; its reply arrives later."""
    kept = []

    async def begin() -> None:
        kept.append(reader.pending())

    loop = new_loop()
    loop.run_until_complete(begin())
    report("pending")
    await_parent()
    loop.close()
    report("closed")
    await_parent()
    run(reader.ping_async(), new_loop)
    kept.clear()
    gc.collect()


def close_during_replies(reader: Reader, new_loop: Any) -> None:
    for number in range(TIMES):
        loop = new_loop()
        kept = loop.run_until_complete(start_many(reader, number * 0.0005))
        loop.close()
        del kept[:]
    gc.collect()


async def start_many(reader: Reader, seconds: float) -> list[Any]:
    started = [reader.pending() for _ in range(8)]
    await asyncio.sleep(seconds)
    return started


def in_sequence(reader: Reader, new_loop: Any) -> None:
    for _ in range(TIMES):
        run(read_some(reader), new_loop)


def concurrently(reader: Reader, new_loop: Any) -> None:
    threads = [threading.Thread(target=in_sequence, args=(reader, new_loop)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(work: Any, new_loop: Any) -> None:
    """Like asyncio.run, with this kind of loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work)


HOW = {
    "pending": close_with_a_call_pending,
    "answers": close_during_replies,
    "again": in_sequence,
    "threads": concurrently,
}


def main() -> None:
    url, how, loop = sys.argv[1:]
    reader = Reader(url)
    reader.ping()
    HOW[how](reader, import_module(loop).new_event_loop)
    reader.ping()
    report("usable")


main()
