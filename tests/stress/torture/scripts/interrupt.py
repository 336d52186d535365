"""Wait, receive Ctrl-C, and use the client again: URL WHERE."""

import asyncio
import signal
import sys
import threading

from reader import RANGE, Reader, await_parent, report


def read_pages(reader: Reader) -> None:
    for _page in reader.client.scan(**RANGE).pages():
        pass


def await_result(reader: Reader) -> None:
    asyncio.run(reader.read_async())


def await_at_top_level(reader: Reader) -> None:
    """Awaits as a notebook does: the loop stays open, and SIGINT cancels the cell."""
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


def wait_for_token(reader: Reader) -> None:
    """Waits for the token that another thread has requested."""
    other = threading.Thread(target=reader.ping)
    other.start()
    await_parent()
    reader.ping()


CALLS = {
    "pages": read_pages,
    "await": await_result,
    "notebook": await_at_top_level,
    "exchange": wait_for_token,
}


def main() -> None:
    url, where = sys.argv[1:]
    reader = Reader(url)
    try:
        report("ready")
        CALLS.get(where, Reader.read)(reader)
        report("returned")
    except KeyboardInterrupt:
        report("interrupted")
    await_parent()
    reader.ping()
    report("usable")
    asyncio.run(reader.ping_async())
    report("awaitable")


main()
