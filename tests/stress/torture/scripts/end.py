"""Exit during an operation: URL HOW, where HOW is ``WHAT`` or ``WHAT,END``.

END is ``code`` for ``sys.exit(7)`` or ``raise`` for an exception; without it ``main`` returns.
"""

import asyncio
import atexit
import logging
import sys
import threading
import time
from typing import Any

from reader import RANGE, Reader, await_parent, report

KEPT: list[Any] = []
"""Keeps objects alive until the interpreter ends."""


def daemon(reader: Reader) -> None:
    for _ in range(3):
        threading.Thread(target=reader.read, daemon=True).start()


def daemon_await(reader: Reader) -> None:
    for _ in range(3):
        threading.Thread(target=asyncio.run, args=(reader.read_async(),), daemon=True).start()


def busy(reader: Reader) -> None:
    """Leaves daemon threads that make requests forever."""

    def call() -> None:
        while True:
            reader.ping()

    for _ in range(4):
        threading.Thread(target=call, daemon=True).start()


def busy_await(reader: Reader) -> None:
    """Leaves a daemon thread whose event loop makes requests forever."""

    async def call() -> None:
        while True:
            await asyncio.gather(*(reader.ping_async() for _ in range(8)))

    threading.Thread(target=asyncio.run, args=(call(),), daemon=True).start()


def busy_records(reader: Reader) -> None:
    def call() -> None:
        for _record in reader.client.scan(**RANGE).records(named=True):
            pass

    for _ in range(3):
        threading.Thread(target=call, daemon=True).start()


def iterator(reader: Reader) -> None:
    KEPT.append(reader.client.scan(**RANGE).pages())
    next(KEPT[0])


def iterator_await(reader: Reader) -> None:
    async def begin() -> None:
        KEPT.append(reader.awaitable.scan(**RANGE).pages())
        await anext(KEPT[0])

    asyncio.run(begin())


def pending(reader: Reader) -> None:
    async def begin() -> None:
        KEPT.append(reader.pending())

    loop = asyncio.new_event_loop()
    KEPT.append(loop)
    loop.run_until_complete(begin())


def pending_closed(reader: Reader) -> None:
    pending(reader)
    KEPT[0].close()


def cancelled(reader: Reader) -> None:
    """Exits asyncio.run, which cancels a request."""

    async def begin() -> None:
        KEPT.append(asyncio.ensure_future(reader.read_async()))
        await reader.ping_async()
        report("asking")
        await asyncio.to_thread(await_parent)

    asyncio.run(begin())


def handler(reader: Reader) -> None:
    """Leaves daemon threads in a slow log handler that takes the GIL repeatedly.

    The handler must return: ``logging.shutdown`` waits for its lock.
    """

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            for _ in range(10):
                time.sleep(0.01)

    logging.getLogger("siteline").addHandler(Slow())
    logging.getLogger("siteline").setLevel(logging.DEBUG)
    busy(reader)


def at_exit(reader: Reader) -> None:
    KEPT.append(reader)


def use_again() -> None:
    for reader in KEPT:
        reader.ping()
        asyncio.run(reader.ping_async())
        next(reader.client.scan(**RANGE).pages())


def nothing(reader: Reader) -> None:
    reader.read()


def main() -> None:
    url, how = sys.argv[1:]
    what, _, end = how.partition(",")
    if what == "atexit_before":
        atexit.register(use_again)
        what = "at_exit"
    reader = Reader(url)
    if what == "atexit_after":
        atexit.register(use_again)
        what = "at_exit"
    logging.raiseExceptions = False
    reader.ping()
    globals()[what](reader)
    report("ready")
    await_parent()
    report("ending")
    if end == "code":
        sys.exit(7)
    if end == "raise":
        raise LookupError("raised by the script")


main()
