"""Fork after the client was used, while threads of the parent use it: URL THREADS TIMES."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
import warnings
from typing import Any

from reader import RANGE, Reader, await_parent, report
from siteline.errors import ForkError

CHILD_TIMEOUT = 4.0
"""Seconds after which a child counts as hung."""


def keep_reading(reader: Reader, ended: threading.Event, faults: list[BaseException]) -> None:
    try:
        while not ended.is_set():
            reader.read()
    except BaseException as error:
        faults.append(error)


def in_child(reader: Reader, pages: Any, number: int) -> None:
    """Reads, sync and async. An iterator of the parent must raise ForkError."""
    reader.read()
    if number % 4 == 1:
        asyncio.run(reader.ping_async())
    try:
        next(pages)
    except ForkError:
        return
    raise AssertionError("the parent's iterator can be used in the child")


def await_child(child: int, number: int) -> None:
    """Waits for a child, and kills it if it hangs."""
    until = time.monotonic() + CHILD_TIMEOUT
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > until:
            report("hung", number=number)
            await_parent()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            sys.exit(3)
        time.sleep(0.001)
    if status:
        report("failed", number=number, status=status)
        sys.exit(4)


def main() -> None:
    url, threads, times = sys.argv[1:]
    # Python 3.12 warns about any fork in a process with threads.
    warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
    # Threads are logging at the fork, as well as making requests.
    logging.getLogger("siteline").addHandler(logging.NullHandler())
    logging.getLogger("siteline").setLevel(logging.DEBUG)
    reader = Reader(url)
    reader.read()
    pages = reader.client.scan(**RANGE).pages()
    next(pages)
    ended = threading.Event()
    faults: list[BaseException] = []
    reading = [
        threading.Thread(target=keep_reading, args=(reader, ended, faults), daemon=True)
        for _ in range(int(threads))
    ]
    for thread in reading:
        thread.start()
    worst = 0.0
    for number in range(int(times)):
        started = time.monotonic()
        child = os.fork()
        if not child:
            in_child(reader, pages, number)
            if number % 2:
                os._exit(0)
            sys.exit(0)
        await_child(child, number)
        worst = max(worst, time.monotonic() - started)
    ended.set()
    for thread in reading:
        thread.join()
    assert not faults, faults
    reader.read()
    report("done", worst=worst)


main()
