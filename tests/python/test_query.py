"""What is asked: whatever is given, either exactly that is asked, or it is refused in words."""

from datetime import UTC, date, datetime, time, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
import siteline

START = "2026-11-01T00:00:00Z"


@pytest.fixture(scope="module")
def client():
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        yield sandbox.client()


WRONG = {
    "start": [
        pd.NaT,
        np.datetime64("2026-11-01"),
        np.datetime64("NaT"),
        date(2026, 11, 1),
        time(tzinfo=UTC),
        b"2026-11-01T00:00Z",
        "2026-11-01\ud800",
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=UTC),
        True,
    ],
    "interval": [
        "1mo",
        "1M",
        "1h30M",
        "1y",
        -1,
        timedelta(minutes=-1),
        float("nan"),
        float("inf"),
        1e19,
        10**400,
        pd.NaT,
        np.timedelta64(1, "m"),
        b"1m",
        "1\ud800",
        [60],
    ],
    "page_size": [2**40, -1, 0, 1.0, "10", True, None.__class__],
    "site": ["", "\ud800", b"S1", 1.5, True, ["S1"]],
    "line": ["", 2**70],
    "filters": [
        "machineId=M1",
        [("machineId", "M1")],
        {5: "x"},
        {"": "x"},
        {"machineId": None},
        {"machineId": []},
        {"machineId": {"M1"}},
        {"machineId": "\ud800"},
        {"\ud800": "x"},
        {"machineId": [["M1"]]},
        {"machineId": 2**70},
        {"SITEID": "S1"},
    ],
    "lag": [-1, "soon", "1000000w", 1e19],
    "deadline": [-1, "soon", 1e19],
    "max_pages": [0, -1, 1.5, True, "ten"],
    "extra_columns": ["quality", 5, [5]],
}


@pytest.mark.fault("K13", "K14")
@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in WRONG.items() for value in values],
    ids=lambda thing: ascii(thing)[:30],
)
def test_what_cannot_be_asked_is_refused_in_words_and_never_by_a_crash(client, name, value):
    with pytest.raises(siteline.QueryError) as caught:
        client.data(**{"start": START, name: value})
    said = str(caught.value)
    assert any(word in said for word in (name, "filter", "lag")), said
    assert len(said) < 700


@pytest.mark.fault("K14")
def test_what_other_packages_use_for_times_and_numbers_is_understood(client):
    query = client.data(
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


@pytest.mark.fault("K13")
@pytest.mark.parametrize(
    ("interval", "lag", "end"),
    [
        (None, None, "2026-11-19T23:55:00+00:00"),
        ("7m", None, "2026-11-19T23:55:00+00:00"),
        ("11m", None, "2026-11-19T23:47:00+00:00"),
        ("1d", None, "2026-11-19T00:00:00+00:00"),
        ("1d", "0s", "2026-11-20T00:00:00+00:00"),
        (None, "1h", "2026-11-19T23:00:00+00:00"),
    ],
)
def test_an_end_left_out_lies_the_lag_behind_now_on_the_grid(client, interval, lag, end):
    query = client.data(start=START, interval=interval, lag=lag).query
    assert query.end.isoformat() == end


@pytest.mark.fault("K13")
def test_an_end_left_out_that_lies_before_the_start_is_explained(client):
    with pytest.raises(siteline.QueryError, match=r"(?s)empty.*end was left out"):
        client.data(start="2026-11-19T12:00:00Z", interval="1d")


def test_an_interval_wider_than_the_range_is_the_services_to_judge(client):
    scan = client.data(site="S1", start=START, end="2026-11-01T02:00:00Z", interval="1d")
    assert {row.timestamp.isoformat() for row in scan.records(named=True)} == {
        "2026-11-01T00:00:00+00:00"
    }


def test_queries_and_shapes_are_equal_where_they_say_the_same(client):
    query = client.data(site="S1", start=START, filters={"a": "1", "b": "2"}).query
    same = client.data(site="S1", start=START, end=query.end, filters={"b": "2", "a": 1}).query
    assert query == same
    assert hash(query) == hash(same)
    assert query != client.data(site="S2", start=START).query
    assert query != str(query)
    assert repr(query) == f"<Query {query}>"
    assert repr(client.data(site="S1", start=START)) == f"<Scan {query}>".replace(" a=1 b=2", "")
    one, two = siteline.Shape(array="items"), siteline.Shape(array="items")
    assert one == two
    assert hash(one) == hash(two)
    assert one != siteline.Shape(array="items", value="mean")


@pytest.mark.parametrize(
    "setting",
    [
        {"daily_allowance": -1},
        {"daily_allowance": "x"},
        {"tries": 0},
        {"tries": -1},
        {"max_body_bytes": 0},
        {"max_body_bytes": -1},
        {"connect_timeout": -1},
        {"connect_timeout": "soon"},
        {"settle_lag": 1e19},
        {"response_timeout": pd.NaT},
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_is_a_config_error_that_names_it(setting):
    key = siteline.PrivateKey.generate(2048)
    credential = siteline.Credential("subject", key)
    (name,) = setting
    with pytest.raises(siteline.ConfigError, match=name) as caught:
        siteline.Client("https://customer.example.com", credential=credential, **setting)
    assert type(caught.value) is siteline.ConfigError


def test_help_shows_the_defaults():
    for thing in (siteline.Client, siteline.Client.data, siteline.Shape, siteline.Scan.resume):
        assert "=None" in thing.__text_signature__
        assert "..." not in thing.__text_signature__
        assert len(thing.__doc__) > 100
