"""Close the client while another thread waits for it: PACKAGE URL API."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

from reader import await_parent, open_reader, report


def wait(reader: Any, api: str) -> None:
    """Wait until the client is closed."""
    try:
        if api == "await":
            asyncio.run(reader.read_async())
        else:
            reader.read()
    except reader.module.errors.ClosedError:
        report("ended")


def main() -> None:
    """Run the script."""
    package, url, api = sys.argv[1:]
    reader = open_reader(package, url)
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
