"""Keep a line's data in a file, and bring it up to date again and again.

Each run reads what is fresh, what has become final and what was never read, and nothing else. It
can be killed at any moment: a page, its bookmark and its checkpoint go down in one transaction.
"""

import tempfile
from pathlib import Path

import siteline

feed = siteline.Feed(
    "line-2",
    site="S1",
    line="L2",
    interval="5m",
    since="2026-11-10T00:00Z",
    page_size=2_000,
    lateness="1d",  # a day is final when it is read once more, a day after it has ended
)

with (
    siteline.Sandbox(seed=7, now="2026-11-20T00:00:00Z") as sandbox,
    tempfile.TemporaryDirectory() as folder,
    siteline.Store(Path(folder, "plant.siteline")) as store,
):
    client = sandbox.client(daily_allowance=200)

    print(client.plan(feed, store), end="\n\n")  # before anything is spent
    first = client.sync(feed, store)
    print("The first run reads it all:", first, sep="\n", end="\n\n")

    sandbox.clock.advance("1h")
    print("What would an hour later cost?", client.plan(feed, store), sep="\n", end="\n\n")
    second = client.sync(feed, store)
    print("The second run is cheap:", second, sep="\n", end="\n\n")

    # Killed after a page, here by an exception, it goes on there.
    sandbox.clock.advance("2d")
    try:
        client.sync(feed, store, progress=lambda now: 1 / 0)
    except ZeroDivisionError:
        print("Stopped after a page; to go on takes", client.plan(feed, store), end="\n\n")
    third = client.sync(feed, store)
    third.raise_for_incomplete()  # for scripts: an error where the allowance has ended it

    changed = store.changes(feed, since=second).to_pandas()["change"].value_counts()
    print(f"Since the second run: {changed.to_dict()}")
    print(f"{len(store.points(feed)):,} points, through {third.read_through:%d %B %H:%M}")
    print(store.points(feed, settled_only=True).to_pandas().tail(3)[["timestamp", "value"]])
