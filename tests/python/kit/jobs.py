"""Compares each number of ``examples/jobs.ipynb`` with a plain loop over the expected points."""

import csv
import math
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

BERLIN = ZoneInfo("Europe/Berlin")
WEEK = {"start": "2026-11-08T23:00Z", "end": "2026-11-15T23:00Z", "interval": "1h"}


def day_of(at):
    return at.astimezone(BERLIN).date().isoformat()


def shift_of(at):
    """The start of a shift, as its day and hour."""
    local = at.astimezone(BERLIN) - timedelta(hours=6)
    return f"{local.date()} {local.hour // 8}"


def grouped(points, period):
    groups = defaultdict(list)
    for point in points:
        groups[point.tag_guid, period(point.timestamp)].append(point)
    return groups


def means(points):
    """The mean of each series and day."""
    return {
        key: math.fsum(one.value * one.sample_count for one in group)
        / sum(one.sample_count for one in group)
        for key, group in grouped(points, day_of).items()
    }


def rises(points, period):
    """The rise of each series and period."""
    found, before = defaultdict(float), {}
    for point in points:
        tag = point.tag_guid
        start = before.get(tag, point.minimum)
        found[tag, period(point.timestamp)] += point.maximum - (
            start if start <= point.maximum else 0
        )
        before[tag] = point.maximum
    return found


def same(made, expected):
    """The two have the same numbers."""
    assert len(made) == len(expected) > 0
    for one, other in zip(sorted(made), sorted(expected), strict=True):
        assert math.isclose(one, other, rel_tol=1e-9), (one, other)


def check(made):
    """Compare the variables of the notebook."""
    sandbox = made["sandbox"]
    # Two lines, a machine, a month, six ranges of a first sync. Looking at results sends nothing.
    sent = sandbox.stats
    assert (sent.data_requests, sent.discovery_requests, sent.token_requests) == (10, 1, 1)
    names = {row["tag_guid"]: row["name"] for row in made["client"].series().records()}
    table = sandbox.expected(site="S1", **WEEK)
    assert [*table.records()] == [*made["week"].records()]
    week = [*table.records(named=True)]

    def of(name, points=week):
        return [point for point in points if names[point.tag_guid] == name]

    assert made["sensors"].to_pandas()["machine_id"].tolist() == ["M3", "M4"]
    same(made["temperatures"].stack(), means(of("temperature")).values())
    same(made["pieces"].stack(), rises(of("pieces"), day_of).values())
    whole = rises(of("pieces"), shift_of)
    ends = {shift_of(week[0].timestamp), shift_of(max(point.timestamp for point in week))}
    same(
        made["shifts"].to_pandas()["value"],
        [rise for (_, shift), rise in whole.items() if shift not in ends],
    )
    highest = {
        tag: max(one.maximum for one in group)
        for (tag, _), group in grouped(of("speed"), lambda _: 0).items()
    }
    same(made["speeds"], highest.values())
    counts = {key: len(group) / 24 for key, group in grouped(week, day_of).items()}
    same(made["shares"].stack(), counts.values())
    check_gaps(made["gaps"], week)
    same(made["rises"]["value"], rises(of("pieces"), lambda _: 0).values())
    asked = made["client"].scan(machine="M3", start="-1d", interval="5m").query
    day = sandbox.expected(start=asked.start, end=asked.end, interval="5m").find(machine="M3")
    same(made["machine"].stack(), [one.value for one in day.records(named=True)])
    with open("week.csv", encoding="utf-8", newline="") as file:
        same([float(row["value"]) for row in csv.DictReader(file)], [one.value for one in week])
    check_store(made, names)
    start, end = datetime(2026, 10, 1, tzinfo=BERLIN), datetime(2026, 11, 1, tzinfo=BERLIN)
    month = sandbox.expected(line="L1", start=start, end=end, interval="1h")
    total = rises(of("pieces", [*month.records(named=True)]), lambda _: 0)
    again = made["october"].find("pieces").resample("1mo", "increase").to_pandas()
    same(again["value"], total.values())
    assert again["expected"].tolist() == [31 * 24 + 1]


def check_gaps(gaps, week):
    expected, hour = [], timedelta(hours=1)
    edges = [datetime.fromisoformat(WEEK[name]) for name in ("start", "end")]
    for (tag, _), group in grouped(week, lambda _: 0).items():
        times = [edges[0] - hour, *(point.timestamp for point in group), edges[1]]
        for one, other in pairwise(times):
            if other - one - hour > 2 * hour:
                expected.append((tag, one + hour, other, (other - one) // hour - 1))
    rows = gaps[["tag_guid", "start", "end", "buckets"]].itertuples(index=False, name=None)
    assert sorted(rows) == sorted(expected)


def check_store(made, names):
    """Compare the numbers from the local copy."""
    through = made["settled"].report.settled_through
    feed = made["feed"]
    copy = made["sandbox"].expected(
        site="S1",
        line="L2",
        start=feed.start,
        end=made["report"]["line-2"].read_through,
        interval="1h",
    )
    points = [*copy.records(named=True)]
    settled = [
        one
        for one in points
        if names[one.tag_guid] == "temperature"
        and datetime.fromisoformat("2026-11-02T00:00+01:00") <= one.timestamp
        and day_of(one.timestamp) < day_of(through)
    ]
    same(made["daily"]["value"], means(settled).values())
    values = [one.value for one in points if one.machine_id == "M3" and one.value is not None]
    assert math.isclose(made["mean"], math.fsum(values) / len(values), rel_tol=1e-9)
