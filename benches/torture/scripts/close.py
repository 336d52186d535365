"""Close the client under a wait of another thread: PACKAGE URL DOOR."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

from reader import hear, open_reader, say


def wait(reader: Any, door: str) -> None:
    """Wait until the client is closed."""
    try:
        if door == "await":
            asyncio.run(reader.read_async())
        else:
            reader.read()
    except reader.module.ClosedError:
        say("ended")


def main() -> None:
    """Play."""
    package, url, door = sys.argv[1:]
    reader = open_reader(package, url)
    waiting = threading.Thread(target=wait, args=(reader, door))
    waiting.start()
    say("ready")
    hear()
    client = reader.awaitable if door == "await" else reader.client
    say("ending")
    client.close()
    waiting.join()
    client.close()


main()
