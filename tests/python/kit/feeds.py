"""A feed, and functions that return points of a store and of the service for comparison."""

import json

import siteline

from kit.ranges import NOW

FEED = {"site": "S1", "line": "L2", "interval": "5m", "start": "2026-11-15T00:00Z"}


def make_feed(name="line-2", **options):
    """Returns a feed of one line since 15 November."""
    return siteline.Feed(name, **{**FEED, **options})


def rows_by_key(table):
    """Returns the points as a dict: ids and timestamp -> the four numbers."""
    rows = map(tuple, map(dict.values, table.records()))
    return {row[:6]: row[6:10] for row in rows}


def counts(report):
    """Returns the numbers of points in a report."""
    return report.inserted, report.revised, report.unchanged, report.withdrawn


def without_skew(state):
    """A feed's state without the skew of a sandbox's clock, which grows as real time passes."""
    content = json.loads(state.splitlines()[0])
    del content["skew"]
    return content


def stored_points(store, feed="line-2", *range_, **options):
    """Returns the points of a store by key."""
    return rows_by_key(store.read(feed, *range_, **options))


def true_points(sandbox, end, **options):
    """Returns the current points of the service since the start of the feed, by key."""
    query = {"site": "S1", "line": "L2", "interval": "5m", "start": FEED["start"]}
    return rows_by_key(sandbox.expected(**{**query, **options}, end=end))


def load_tag(sandbox, tag, start="2026-11-18T00:00Z", end=NOW, line="L1"):
    """Loads a series with a point every five minutes. The first call replaces the default data."""
    import pandas as pd

    times = pd.date_range(start, end, freq="5min", inclusive="left")
    data = pd.DataFrame({"timestamp": times, "value": range(len(times)), "sample_count": 1})
    sandbox.load(data, bucket="5m", line=line, tag=tag)


def load_series(sandbox):
    """Loads another series of the line. The service allows withdrawals only for loaded points."""
    load_tag(sandbox, "T7", FEED["start"], line="L2")


def withdraw_point(sandbox):
    """Withdraws one point of the loaded series."""
    sandbox.withdraw("2026-11-19T08:00Z", line="L2", tag="T7")


def damaged_copy(path, folder):
    """Copies a store with a changed bit in each page but the first. Returns the new path."""
    copy, content = folder / "damaged.siteline", bytearray(path.read_bytes())
    for at in range(4_096 + 2_000, len(content), 4_096):
        content[at] ^= 1
    copy.write_bytes(content)
    return copy
