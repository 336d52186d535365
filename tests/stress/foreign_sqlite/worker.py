"""The processes: one syncs a feed, and one opens the file with Python's `sqlite3`.

Each prints a line at its end. A writer also prints a line after each acknowledged sync.
"""

import sqlite3
import sys
import time
from pathlib import Path

NOW = "2026-11-21T10:00:00Z"


def look(path: str, *, read_only: bool = False) -> None:
    """Opens the file with the other SQLite, reads it and closes it."""
    name = f"file:{path}?mode=ro" if read_only else path
    connection = sqlite3.connect(name, uri=read_only, timeout=1)
    try:
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
    except sqlite3.OperationalError as error:
        # These errors occur while another process opens or closes the store.
        if "locked" not in str(error) and "unable to open" not in str(error):
            raise
    finally:
        connection.close()


def write(path: str, name: str, syncs: int, looks: int) -> None:
    """Syncs a feed, and opens the file between."""
    import siteline

    feed = siteline.Feed(name, site="S1", line="L2", interval="5m", start="2026-11-20T00:00Z")
    sandbox = siteline.Sandbox(now=NOW)
    client = sandbox.client()

    def progress(_: object) -> None:
        for at in range(looks):
            look(path, read_only=at % 2 == 1)

    store = siteline.Store(path)
    for number in range(syncs):
        if number % 20 == 19:
            store.close()
            store = siteline.Store(path)
        report = client.sync(feed, store, wait="1m", progress=progress)
        if not report.complete:
            raise SystemExit(f"sync {number} of {name} is not complete")
        points = len(store.read(feed))
        print("synced", number, points, flush=True)
        progress(None)
        sandbox.clock.advance("15m")
    truth = sandbox.expected(site="S1", line="L2", interval="5m", start=feed.start, end=NOW)
    stored = store.read(feed, feed.start, NOW)
    print("equal", len(truth), len(stored), flush=True)
    store.close()


def peek(path: str, stop: str) -> None:
    """Opens the store's file every 50 milliseconds until the file `stop` appears."""
    count = 0
    while not Path(stop).exists():
        if Path(path).exists():
            look(path, read_only=count % 2 == 1)
            count += 1
        time.sleep(0.05)
    print("looked", count, flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", path, name, syncs, looks]:
            write(path, name, int(syncs), int(looks))
        case ["peek", path, stop]:
            peek(path, stop)
