"""Late data: the final days, the days that may still change, and the days to compute again."""

import tempfile
from pathlib import Path

import pandas as pd
import siteline

feed = siteline.Feed("oven", line="L7", interval="1h", start="2026-10-24T00:00Z")

# A temperature each hour. The gateway was offline on the 17th: the afternoon is nine hours late.
times = pd.date_range("2026-10-24", "2026-11-22", freq="1h", tz="UTC", inclusive="left")
data = pd.DataFrame({"timestamp": times, "value": 180.0, "sample_count": 360})
data["available_at"] = data["timestamp"] + pd.Timedelta("61min")
late = data["timestamp"].between("2026-11-17T12:00Z", "2026-11-17T17:00Z")
data.loc[late, "available_at"] += pd.Timedelta("9h")
stopped = data["timestamp"].between("2026-11-01T00:00Z", "2026-11-02T23:00Z")  # no readings
data = data[~stopped]

with (
    siteline.Sandbox(now="2026-11-17T20:00:00Z") as sandbox,
    tempfile.TemporaryDirectory() as folder,
    siteline.Store(Path(folder, "plant.siteline")) as store,
):
    sandbox.load(data, bucket="1h", line="L7", tag="temperature")
    client = sandbox.client()

    def hours() -> int:
        return len(store.read(feed, "2026-11-17T00:00Z", "2026-11-18T00:00Z"))

    first = client.sync(feed, store)
    evening = first["oven"].newest  # points after it were not read yet
    points = store.read(feed, "2026-11-17T00:00Z", evening)
    print(f"In the evening of the 17th: {len(points)} hours of that day, all provisional")

    sandbox.clock.advance("1d")
    sandbox.revise("2026-11-17T08:00Z", 212.0, line="L7", tag="temperature")  # a correction
    client.sync(feed, store)
    print(f"A day later, beyond the overlap of an hour: {hours()} hours, still provisional")
    print(store.coverage(feed, now=sandbox.clock.now()), end="\n\n")

    sandbox.clock.advance("1d")
    report = client.sync(feed, store)
    print(f"After the lateness the day was read again: {hours()} hours, final")
    print(report, store.coverage(feed, now=sandbox.clock.now()), sep="\n", end="\n\n")

    # Results that depend on these numbers are computed again for the changed points only.
    changes = store.changes(feed, since=first, end="2026-11-18T00:00Z").to_pandas()
    print(f"Compute again: {changes['change'].value_counts().to_dict()}")
    then = store.read(feed, "2026-11-17T00:00Z", evening, as_of=first)
    print(f"As of the first sync: {len(then)} hours of the 17th")
    print(store.lateness(feed))
