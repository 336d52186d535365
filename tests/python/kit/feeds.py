"""A feed, and the points of a store and of the service in one form, for comparison."""

import siteline

from kit.ranges import NOW

FEED = {"site": "S1", "line": "L2", "interval": "5m", "since": "2026-11-15T00:00Z"}


def make_feed(name="line-2", **options):
    """A feed of one line since 15 November."""
    return siteline.Feed(name, **{**FEED, **options})


def rows_by_key(table):
    """A dict of points: the ids and the timestamp, then the four numbers."""
    rows = map(tuple, map(dict.values, table.records()))
    return {row[:6]: row[6:] for row in rows}


def counts(report):
    """What a report counts of points."""
    return report.inserted, report.revised, report.unchanged, report.flagged


def stored_points(store, feed="line-2", *range_, **options):
    """The points of a store."""
    return rows_by_key(store.points(feed, *range_, **options))


def true_points(sandbox, end, **options):
    """The current points of the service, from the feed's beginning on."""
    query = {"site": "S1", "line": "L2", "interval": "5m", "start": FEED["since"]}
    return rows_by_key(sandbox.truth(**{**query, **options}, end=end))


def load_series(sandbox):
    """Load a series beside those of the line, whose points can be withdrawn."""
    import pandas as pd

    times = pd.date_range(FEED["since"], NOW, freq="5min")
    data = pd.DataFrame({"timestamp": times, "value": range(len(times)), "sample_count": 1})
    sandbox.load(data, bucket="5m", line="L2", tag="T7")


def withdraw_point(sandbox):
    """Withdraw one of its points."""
    sandbox.withdraw("2026-11-19T08:00Z", line="L2", tag="T7")
