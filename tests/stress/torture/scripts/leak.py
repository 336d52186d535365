"""Repeat an operation, and measure what is left: PACKAGE URL WHAT TIMES."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
from typing import Any

from reader import RANGE, open_reader, report

WARM_UP = 4
"""One of this many runs is before the first measurement, to fill caches and arenas."""
MEGABYTES = 12
"""The most memory that the other runs may add."""


def clients(reader: Any) -> None:
    """Create, use and drop a client."""
    reader.new_client().discover()


def awaitable_clients(reader: Any) -> None:
    """Create, use and drop an async client."""
    import asyncio

    asyncio.run(reader.new_client(awaitable=True).discover())


def count(name: str) -> int:
    """The number of entries in this folder of /proc/self; of threads without /proc."""
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


def measure() -> tuple[float, int, int]:
    """Megabytes, file descriptors, threads."""
    gc.collect()
    return memory(), count("fd"), count("task")


def main() -> None:
    """Run the script."""
    package, url, what, times = sys.argv[1:]
    reader = open_reader(package, url)
    pages = reader.client.scan(**RANGE).pages()

    def work() -> None:
        if what == "pages":
            next(pages)
        elif what == "clients":
            clients(reader)
        else:
            awaitable_clients(reader)

    first = int(times) // WARM_UP
    for _ in range(first):
        work()
    before = measure()
    for _ in range(int(times) - first):
        work()
    after = measure()
    growth = after[0] - before[0]
    assert growth < MEGABYTES, f"{growth:.1f} MB more"
    # The number of blocking threads and closing connections varies.
    assert after[1] - before[1] < 20, (before, after)
    assert after[2] - before[2] < 10, (before, after)
    report("done", megabytes=growth, files=after[1] - before[1], threads=after[2] - before[2])


main()
