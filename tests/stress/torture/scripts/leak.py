"""Repeat an operation, and measure what is left: URL WHAT TIMES."""

import asyncio
import gc
import os
import resource
import sys
import threading
from collections.abc import Callable

from reader import RANGE, Reader, report
from siteline import AsyncClient

WARM_UP = 4
"""One of this many runs is before the first measurement, to fill caches and arenas."""
MEGABYTES = 12
"""The most memory that the other runs may add."""


def count(name: str) -> int:
    """Returns the number of entries in this folder of /proc/self; of threads without /proc."""
    try:
        return len(os.listdir(f"/proc/self/{name}"))
    except OSError:
        return threading.active_count()


def megabytes() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as sizes:
            return int(sizes.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure() -> tuple[float, int, int]:
    gc.collect()
    return megabytes(), count("fd"), count("task")


def main() -> None:
    url, what, times = sys.argv[1:]
    reader = Reader(url)
    pages = reader.client.scan(**RANGE).pages()
    work: Callable[[], object] = {
        "pages": lambda: next(pages),
        "clients": lambda: reader.new_client().discover(),
        "awaitable_clients": lambda: asyncio.run(reader.new_client(AsyncClient).discover()),
    }[what]
    first = int(times) // WARM_UP
    for _ in range(first):
        work()
    before = measure()
    for _ in range(int(times) - first):
        work()
    growth, files, threads = (now - then for now, then in zip(measure(), before, strict=True))
    assert growth < MEGABYTES, f"{growth:.1f} MB more"
    # The number of blocking threads and closing connections varies.
    assert files < 20, files
    assert threads < 10, threads
    report("done", megabytes=growth, files=files, threads=threads)


main()
