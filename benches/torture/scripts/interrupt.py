"""Wait somewhere, hear Ctrl-C, and use the client again: PACKAGE URL WHERE."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import Any

from reader import RANGE, hear, open_reader, say


def follow_pages(reader: Any) -> None:
    """Read pages without end."""
    for _page in reader.client.data(**RANGE).pages():
        pass


def await_result(reader: Any) -> None:
    """Await, as a script does."""
    asyncio.run(reader.read_async())


def await_at_top_level(reader: Any) -> None:
    """Await, as a notebook does at top level: its loop lives on, and a signal cancels the cell."""
    loop = asyncio.new_event_loop()

    async def cell() -> None:
        task = asyncio.ensure_future(reader.read_async())
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    try:
        loop.run_until_complete(cell())
    finally:
        loop.run_until_complete(reader.ping_async())
        loop.close()


def queue_up(reader: Any) -> None:
    """Wait for the token that another thread has asked for."""
    other = threading.Thread(target=reader.ping)
    other.start()
    hear()
    reader.ping()


CALLS = {"pages": follow_pages, "await": await_result, "notebook": await_at_top_level}


def main() -> None:
    """Play."""
    package, url, where = sys.argv[1:]
    reader = open_reader(package, url)
    call = CALLS.get(where, queue_up if where == "exchange" else type(reader).read)
    try:
        say("ready")
        call(reader)
        say("returned")
    except KeyboardInterrupt:
        say("interrupted")
    hear()
    reader.ping()
    say("usable")
    asyncio.run(reader.ping_async())
    say("awaitable")


main()
