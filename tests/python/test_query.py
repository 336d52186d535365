"""Query parameters: each value is sent exactly or rejected with a message."""

import re
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
import siteline

START = "2026-11-01T00:00:00Z"
GOOD = datetime(2026, 11, 1, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(scope="module")
def client(shared_sandbox):
    return shared_sandbox.client()


WRONG = {
    "start": [
        pd.NaT,
        np.datetime64("NaT", "s"),
        np.datetime64(10**15, "Y"),
        np.datetime64(2**62, "s"),
        np.datetime64(-(2**63) + 1, "ns"),
        time(tzinfo=UTC),
        b"2026-11-01T00:00Z",
        "2026-11-01\ud800",
        "2026-02-29",
        "2026-11",
        "20261101",
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=UTC),
        True,
        1_793_491_200,
        datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN),
        GOOD.replace(microsecond=1),
        pd.Timestamp("2026-11-01T00:00:00.000000001Z"),
    ],
    "end": [GOOD, GOOD - timedelta(days=1)],
    "interval": [
        "1mo",
        0,
        1.5,
        True,
        timedelta(minutes=-1),
        timedelta(milliseconds=1500),
        float("nan"),
        1e19,
        10**400,
        pd.NaT,
        np.timedelta64(1, "M"),
        "1\ud800",
        [60],
    ],
    "page_size": [2**40, -1, 0, 1.0, "10", True, None.__class__],
    "site": ["", "\ud800", b"S1", 1.5, True, [], ["S1", ""], [["S1"]], [True]],
    "line": ["", 2**70, ()],
    "machine": [[]],
    "device": [[]],
    "tag": [[]],
    "split": [0, -1, 1.5, "soon", 10_001, "1s", [], np.float32(4), np.bool_(1), Decimal(4)],
    "concurrency": [0, -1, 1.5, True, "ten"],
    "filters": [
        "machineId=M1",
        [("machineId", "M1")],
        {5: "x"},
        {"machineId": None},
        {"machineId": {"M1"}},
        {"machineId": "\ud800"},
        {"\ud800": "x"},
        {"machineId": [["M1"]]},
        {"machineId": 2**70},
        {"cursor": "x"},
    ],
    "settle_lag": [-1, "soon", "1000000w", 1e19],
    "deadline": [-1, "soon", 1e19],
    "max_pages": [0, -1, 1.5, True, "ten"],
    "extra_columns": ["quality", 5, [5]],
}


@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_parameter_is_refused_with_a_message(client, name):
    for value in WRONG[name]:
        with pytest.raises(siteline.errors.QueryError) as caught:
            client.scan(**{"start": START, name: value})
        message = str(caught.value)
        words = (name, "filter", "settle_lag", "range", "interval", "parts")
        assert any(word in message for word in words), (value, message)
        assert len(message) < 700


def test_times_and_numbers_of_other_packages_are_accepted(client):
    query = client.scan(
        site=7,
        line=np.int64(8),
        start=pd.Timestamp("2026-11-01 01:00", tz="Europe/Berlin"),
        end=datetime(2026, 11, 2, tzinfo=UTC),
        interval=pd.Timedelta("1h"),
        page_size=np.int32(10),
        filters={"machineId": (1, "M2"), "tag": np.str_("x")},
    ).query
    assert str(query) == (
        "siteId=7 lineId=8 from=2026-11-01T00:00:00Z to=2026-11-02T00:00:00Z "
        "aggregationIntervalSeconds=3600 pageSize=10 machineId=1 machineId=M2 tag=x"
    )
    assert query.filters == {"machineId": ("1", "M2"), "tag": ("x",)}
    same = [
        GOOD,
        "2026-11-01T00:00:00Z",
        "2026-11-01T00:00Z",
        "2026-11-01T01:00:00+01:00",
        pd.Timestamp("2026-11-01", tz="UTC"),
        datetime(2026, 11, 1, 1, tzinfo=BERLIN),
    ]
    assert {client.scan(start=start, end="2026-11-02").query.start for start in same} == {GOOD}
    widths = (60, 60.0, "1m", "60s", "1 min", "PT1M", "60000ms", timedelta(minutes=1))
    queries = [client.scan(start=None, interval=width).query for width in widths]
    assert {query.interval for query in queries} == {timedelta(minutes=1)}


def test_queries_and_shapes_are_values(client):
    query = client.scan(site="S1", start=START, filters={"a": "1", "b": "2"}).query
    same = client.scan(site="S1", start=START, end=query.end, filters={"b": "2", "a": 1}).query
    assert query == same
    assert hash(query) == hash(same)
    assert query != client.scan(site="S2", start=START).query
    assert query != str(query)
    assert repr(query) == f"<Query {query}>"
    assert repr(client.scan(site="S1", start=START)) == f"<Scan {query}>".replace(" a=1 b=2", "")
    with pytest.raises(AttributeError):
        query.site = "S2"
    one, two = siteline.shapes.Shape(array="items"), siteline.shapes.Shape(array="items")
    assert one == two
    assert hash(one) == hash(two)
    assert one != siteline.shapes.Shape(array="items", value="mean")


def test_an_end_in_the_future_warns_and_is_clamped_only_on_request(client):
    ahead = "2026-11-21T00:00:00Z"
    with pytest.warns(siteline.SitelineWarning, match="in the future"):
        scan = client.scan(start=START, end=ahead, interval="1m")
    assert scan.query.end.isoformat() == "2026-11-21T00:00:00+00:00"
    scan = client.scan(start=START, end=ahead, interval="1m", settle_lag="5m")
    assert scan.query.end.isoformat() == "2026-11-19T23:55:00+00:00"


@pytest.mark.parametrize("interval", [1.5, "1.5s", timedelta(milliseconds=1500), 0], ids=repr)
def test_an_invalid_bucket_width_is_shown_as_it_was_written(client, interval):
    message = f"interval={interval!r} is not a bucket width. Use a whole number of seconds"
    for call in (
        lambda: client.scan(start=None, interval=interval),
        lambda: siteline.Feed("line-2", start="2026-11-18", interval=interval),
    ):
        with pytest.raises(siteline.errors.QueryError, match=re.escape(message)):
            call()
