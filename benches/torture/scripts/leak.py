"""Do something very often, and look at what is left: PACKAGE URL WHAT TIMES."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
from typing import Any

from reader import RANGE, open_reader, say

PART_TO_SETTLE = 4
"""One part in so many comes before the first look: caches and arenas fill."""
MEGABYTES = 12
"""What the rest may add at most."""


def clients(reader: Any) -> None:
    """Make a client, use it, drop it."""
    reader.new_client().discover()


def awaitable_clients(reader: Any) -> None:
    """Make a client, begin, drop it."""
    import asyncio

    asyncio.run(reader.new_client(awaitable=True).discover())


def left(name: str) -> int:
    """How many of them the process holds, where the system tells."""
    try:
        return len(os.listdir(f"/proc/self/{name}"))
    except OSError:
        return threading.active_count()


def memory() -> float:
    """Memory of this process in megabytes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as sizes:
            return int(sizes.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def look() -> tuple[float, int, int]:
    """Megabytes, file descriptors, threads."""
    gc.collect()
    return memory(), left("fd"), left("task")


def main() -> None:
    """Play."""
    package, url, what, times = sys.argv[1:]
    reader = open_reader(package, url)
    pages = reader.client.data(**RANGE).pages()

    def work() -> None:
        if what == "pages":
            next(pages)
        elif what == "clients":
            clients(reader)
        else:
            awaitable_clients(reader)

    first = int(times) // PART_TO_SETTLE
    for _ in range(first):
        work()
    before = look()
    for _ in range(int(times) - first):
        work()
    after = look()
    grown = after[0] - before[0]
    assert grown < MEGABYTES, f"{grown:.1f} MB more"
    # Blocking threads and connections that end come and go.
    assert after[1] - before[1] < 20, (before, after)
    assert after[2] - before[2] < 10, (before, after)
    say("done", megabytes=grown, files=after[1] - before[1], threads=after[2] - before[2])


main()
