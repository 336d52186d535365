"""Close the client while another thread waits for it: URL API."""

import asyncio
import sys
import threading

from reader import Reader, await_parent, report
from siteline.errors import ClosedError


def wait(reader: Reader, api: str) -> None:
    try:
        if api == "await":
            asyncio.run(reader.read_async())
        else:
            reader.read()
    except ClosedError:
        report("ended")


def main() -> None:
    url, api = sys.argv[1:]
    reader = Reader(url)
    waiting = threading.Thread(target=wait, args=(reader, api))
    waiting.start()
    report("ready")
    await_parent()
    client = reader.awaitable if api == "await" else reader.client
    report("ending")
    client.close()
    waiting.join()
    client.close()


main()
