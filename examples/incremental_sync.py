"""Keep a line's data in a file, and update it regularly.

Each run reads only new data, windows that have become final, and ranges that were never read. It
can be killed at any moment: a page, its bookmark and its checkpoint are one transaction.
"""

import tempfile
from pathlib import Path

import siteline

feed = siteline.Feed(
    "line-2",
    site="S1",
    line="L2",
    interval="5m",
    start="2026-11-10T00:00Z",
    page_size=2_000,
    lateness="1d",  # a day is final after it has been read again, one day after its end
)

with (
    siteline.Sandbox(seed=7, now="2026-11-20T00:00:00Z") as sandbox,
    tempfile.TemporaryDirectory() as folder,
    siteline.Store(Path(folder, "plant.siteline")) as store,
):
    client = sandbox.client(daily_allowance=200)

    print(client.plan(feed, store), end="\n\n")  # makes no request
    first = client.sync(feed, store)
    print("The first run reads everything:", first, sep="\n", end="\n\n")

    sandbox.clock.advance("1h")
    print("The plan an hour later:", client.plan(feed, store), sep="\n", end="\n\n")
    second = client.sync(feed, store)
    print("The second run is cheap:", second, sep="\n", end="\n\n")

    # A run that is killed, here by an exception after a page, is resumed after that page.
    sandbox.clock.advance("2d")
    try:
        client.sync(feed, store, progress=lambda now: 1 / 0)
    except ZeroDivisionError:
        print("Stopped after a page. The plan to resume:", client.plan(feed, store), end="\n\n")
    third = client.sync(feed, store)
    third.raise_for_incomplete()  # for scripts: an error if the allowance ended the run

    changed = store.changes(feed, since=second).to_pandas()["change"].value_counts()
    print(f"Since the second run: {changed.to_dict()}")
    print(f"{len(store.read(feed)):,} points, through {third.read_through:%d %B %H:%M}")
    print(store.read(feed, final=True).to_pandas().tail(3)[["timestamp", "value"]])
