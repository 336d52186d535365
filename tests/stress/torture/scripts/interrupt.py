"""Wait, receive Ctrl-C, and use the client again: PACKAGE URL WHERE."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import Any

from reader import RANGE, await_parent, open_reader, report


def read_pages(reader: Any) -> None:
    """Read pages without end."""
    for _page in reader.client.scan(**RANGE).pages():
        pass


def await_result(reader: Any) -> None:
    """Await under ``asyncio.run``, as a script does."""
    asyncio.run(reader.read_async())


def await_at_top_level(reader: Any) -> None:
    """Await at top level, as a notebook does: the loop stays open, and SIGINT cancels the cell."""
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


def wait_for_token(reader: Any) -> None:
    """Wait for the token that another thread has requested."""
    other = threading.Thread(target=reader.ping)
    other.start()
    await_parent()
    reader.ping()


CALLS = {"pages": read_pages, "await": await_result, "notebook": await_at_top_level}


def main() -> None:
    """Run the script."""
    package, url, where = sys.argv[1:]
    reader = open_reader(package, url)
    call = CALLS.get(where, wait_for_token if where == "exchange" else type(reader).read)
    try:
        report("ready")
        call(reader)
        report("returned")
    except KeyboardInterrupt:
        report("interrupted")
    await_parent()
    reader.ping()
    report("usable")
    asyncio.run(reader.ping_async())
    report("awaitable")


main()
