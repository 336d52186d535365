"""Times of reads: local times with `tz=`, and times before now such as `start="-7d"`."""

import asyncio
import pickle
import warnings
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
import siteline
from kit.feeds import make_feed

BERLIN = "Europe/Berlin"
HOUR = timedelta(hours=1)
LINE = {"site": "S1", "line": "L2", "interval": "1h"}

pytestmark = pytest.mark.once


def text(at):
    return at.isoformat().replace("+00:00", "Z")


def bounds(query):
    return text(query.start), text(query.end)


@pytest.mark.parametrize(
    ("kind", "first", "hours"), [("client", "2026-10-25", 25), ("async_client", "2026-03-29", 23)]
)
def test_a_date_is_a_day_of_the_zone_which_is_read_whole(sandbox, kind, first, hours):
    """When clocks change, a day has 25 or 23 hourly buckets of each series."""
    day = date.fromisoformat(first)
    scan = getattr(sandbox, kind)().scan(
        **LINE, start=first, end=str(day + timedelta(days=1)), tz=BERLIN
    )
    frame = scan.to_pandas() if kind == "client" else asyncio.run(scan.to_pandas())
    times = frame["timestamp"].drop_duplicates().sort_values()
    assert len(times) == hours
    midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)
    assert list(times.dt.tz_convert("UTC")) == [midnight + n * HOUR for n in range(hours)]
    assert str(frame["timestamp"].dtype).endswith("Europe/Berlin]"), "the zone of the read"
    truth = sandbox.expected(**LINE, start=scan.query.start, end=scan.query.end)
    assert len(frame) == len(truth)


def test_a_time_without_an_offset_is_local_and_any_other_an_instant(client):
    for given in (
        "2026-11-02T06:00",
        " 2026-11-02 06:00:00 ",
        datetime(2026, 11, 2, 6),
        pd.Timestamp("2026-11-02 06:00"),
        # These have an offset, so the zone has no effect.
        "2026-11-02T05:00Z",
        datetime(2026, 11, 2, 5, tzinfo=UTC),
        pd.Timestamp("2026-11-02 14:00", tz="Asia/Tokyo"),
    ):
        for zone in (BERLIN, ZoneInfo(BERLIN)):
            query = client.scan(start=given, end="2026-11-03", tz=zone).query
            assert bounds(query) == ("2026-11-02T05:00:00Z", "2026-11-02T23:00:00Z")
    for given in ("2026-11-02", date(2026, 11, 2)):
        local = client.scan(start=given, end=date(2026, 11, 3), tz="Asia/Kathmandu").query
        assert bounds(local) == ("2026-11-01T18:15:00Z", "2026-11-02T18:15:00Z")
        plain = client.scan(start=given, end=date(2026, 11, 3)).query
        assert bounds(plain) == ("2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z")


@pytest.mark.parametrize(
    ("given", "problem", "readings"),
    [
        ("2026-03-29T02:30", "does not exist", ("02:30:00+01:00", "02:30:00+02:00")),
        (datetime(2026, 10, 25, 2, 30), "occurs twice", ("02:30:00+02:00", "02:30:00+01:00")),
    ],
    ids=["skipped", "twice"],
)
def test_a_skipped_or_repeated_local_time_is_refused(client, store, given, problem, readings):
    siteline.Store(store.path, share="group").close()
    for call in (
        lambda: client.scan(**LINE, start=given, tz=BERLIN),
        lambda: client.scan(**LINE, start="2026-01-01", end=given, tz=BERLIN),
        lambda: store.read("line-2", given, tz=BERLIN),
        lambda: store.read("line-2", None, given, tz=BERLIN),
    ):
        with pytest.raises(siteline.errors.QueryError, match=problem) as caught:
            call()
        for reading in readings:
            assert f'"{str(given)[:10]}T{reading}"' in caught.value.hint


@pytest.mark.parametrize("kind", ["client", "async_client"])
def test_the_zone_of_a_client_is_the_default(sandbox, kind):
    make = getattr(sandbox, kind)
    days = {"start": "2026-10-25", "end": datetime(2026, 10, 26)}
    for zone in (BERLIN, ZoneInfo(BERLIN)):
        client = make(tz=zone)
        assert client.tz is zone
        assert bounds(client.scan(**days).query) == ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z")
        assert text(client.scan(**days, tz="UTC").query.end) == "2026-10-26T00:00:00Z"
    assert make().tz == "UTC"
    assert text(make().scan(**days).query.end) == "2026-10-26T00:00:00Z"
    with pytest.raises(siteline.errors.ConfigError, match="no time zone"):
        make(tz="Europe/Atlantis")


def test_local_days_in_buckets_of_a_day_warn(client):
    days = {"start": "2026-11-02", "end": "2026-11-05", "interval": "1d"}
    utc = {**days, "start": "2026-11-02T00:00Z", "end": "2026-11-05T00:00Z"}
    for asked in (days, utc):
        with pytest.warns(siteline.SitelineWarning) as seen:
            client.scan(**asked, tz=BERLIN)
        assert [str(one.message) for one in seen] == [
            'interval="1d" returns days of UTC, not of Europe/Berlin. For local days use '
            'client.read(..., interval="1h").resample("1d", "mean"), or another agg.'
        ]
        assert seen[0].filename == __file__
    client.scan(**days, tz="UTC")


@pytest.fixture
def stored(sandbox, store):
    """A store with two days of hourly points from two syncs, six hours apart."""
    client, feed = sandbox.client(), make_feed(interval="1h", start="2026-11-18")
    first = client.sync(feed, store)
    sandbox.clock.advance("6h")
    client.sync(feed, store)
    return store, first


def hours(points):
    return sorted({row["timestamp"].strftime("%dT%H") for row in points.records()})


def test_the_reads_of_a_store_take_a_zone(stored):
    store, first = stored
    day = {"start": "2026-11-19", "end": "2026-11-20"}
    expected = ["18T23", *[f"19T{hour:02}" for hour in range(23)]]
    for points in (
        store.read("line-2", **day, tz=BERLIN),
        store.read("line-2", date(2026, 11, 19), datetime(2026, 11, 20), tz=ZoneInfo(BERLIN)),
        store.changes("line-2", 0, **day, tz=BERLIN),
        store.read("line-2", **day, tz=BERLIN, as_of=first),
        # 06:00 in Berlin is 05:00 UTC. Only the first sync had run.
        store.read("line-2", **day, tz=BERLIN, as_of="2026-11-20T06:00"),
    ):
        assert hours(points) == expected
    early = store.read("line-2", unread="keep", tz=BERLIN, as_of="2026-11-20T00:30")
    assert len(early) == 0, "00:30 in Berlin is before midnight in UTC, and before the sync"
    with pytest.raises(siteline.errors.QueryError, match="no time zone"):
        store.read("line-2", tz="Europe/Atlantis")


@pytest.fixture
def strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error", siteline.SitelineWarning)
        yield


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("kind", ["client", "async_client"])
def test_times_before_now_are_whole_buckets_and_fixed_when_the_scan_is_made(sandbox, kind):
    sandbox.clock.advance("7m31s")
    client = getattr(sandbox, kind)()

    def asked(start, end=None, **options):
        return bounds(client.scan(start=start, end=end, **options).query)

    assert asked("-7d", interval="1h") == ("2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z")
    assert asked("-90m", "-30m", interval="1m") == ("2026-11-19T22:37:00Z", "2026-11-19T23:37:00Z")
    assert asked("2026-11-19", "-1h", tz=BERLIN, interval="1h") == (
        "2026-11-18T23:00:00Z",
        "2026-11-19T23:00:00Z",
    )
    assert asked("-1d", "now", settle_lag="1h", interval="1h")[1] == "2026-11-19T23:00:00Z"

    scan = client.scan(start="-7d", **LINE)
    query = scan.query
    sandbox.clock.advance("3d")
    assert scan.query == query
    assert str(query) == (
        "siteId=S1 lineId=L2 from=2026-11-13T00:00:00Z to=2026-11-20T00:00:00Z "
        "aggregationIntervalSeconds=3600"
    )
    assert pickle.loads(pickle.dumps(query)) == query
    assert client.scan(start="-7d", **LINE).query != query


@pytest.mark.parametrize("wall", ["2026-11-20T09:00Z", "2026-11-19T09:00Z"], ids=["fast", "slow"])
def test_times_before_now_count_by_the_services_clock(sandbox, wall):
    client = sandbox.client(clock=sandbox.clock.machine(wall))
    before = client.scan(start="-1d", interval="1h").query
    assert text(before.start) != "2026-11-19T00:00:00Z", (
        "the machine's clock counts before the first reply"
    )
    client.discover()
    client.discover()
    query = client.scan(start="-1d", end="-1h", interval="1h").query
    assert bounds(query) == ("2026-11-19T00:00:00Z", "2026-11-19T23:00:00Z")


@pytest.mark.usefixtures("strict")
def test_times_before_now_of_a_store_count_from_the_newest_instant_that_was_read(sandbox, stored):
    store, first = stored
    assert text(store.coverage("line-2").newest) == "2026-11-20T05:00:00Z"
    points = store.read("line-2", "-3h")
    assert hours(points) == ["20T02", "20T03", "20T04"]
    assert hours(store.read("line-2", "-3h", "-1h")) == ["20T02", "20T03"]
    assert hours(store.read("line-2", "-90m")) == ["20T03", "20T04"], "whole buckets"
    assert hours(store.changes("line-2", 0, "-2h")) == ["20T03", "20T04"]
    assert hours(store.read("line-2", "-2h", as_of=first)) == ["19T21", "19T22"], (
        "as it was read then"
    )
    sandbox.clock.advance("2d")
    sandbox.client().sync(make_feed(interval="1h", start="2026-11-18"), store)
    assert hours(points) == ["20T02", "20T03", "20T04"], "a later sync does not change the table"
    assert hours(store.read("line-2", "-2d"))[0] > "20T04"


@pytest.mark.usefixtures("strict")
def test_every_instant_may_count_from_now(sandbox, stored):
    store, _ = stored
    client, feed = sandbox.client(), make_feed(interval="1h", start="2026-11-18")
    assert hours(store.read("line-2", "-2h", as_of="-1h")) == ["19T21", "19T22"]
    assert len(store.changes("line-2", since="-1h")) > 0
    assert len(store.changes("line-2", since="now")) == 0
    sandbox.clock.advance("1d")
    client.sync(feed, store, until="-20h")
    assert "2026-11-20T09" < text(store.coverage("line-2").newest) <= "2026-11-20T10:00:00Z"
    plan = client.plan(feed, store, until="-1h", reread=("-3h", "-2h"))
    assert any(task.why == "reread" for task in plan.tasks)
    assert store.forget("line-2", before="-1d").points > 0
    assert text(store.coverage("line-2")[0].end) <= "2026-11-19T10:00:00Z"


def test_times_of_a_sandbox_count_from_its_clock(sandbox):
    assert len(sandbox.expected(site="S1", start="-2h", end="now", interval="1h", at="-1h")) > 0
    clock = siteline.testing.Clock(start="-1d")
    assert clock.now() < siteline.testing.Clock().now()
    with siteline.Sandbox(now="-1d") as other:
        assert other.clock.now() < siteline.testing.Clock().now()


def test_the_first_day_needs_no_local_time(sandbox, tmp_path):
    first = '{"timestamp": "0001-01-01T00:00:00Z", "value": 1.5}'
    ids = '"siteId": "S1", "lineId": "L1", "machineId": "M1", "deviceId": "D1", "tagGuid": "T1"'
    body = f'{{"series": [{{{ids}, "points": [{first}]}}], "nextCursor": null}}'
    sandbox.fault(on="data", nth=1, body=body.encode())
    table = sandbox.client(tz="America/New_York").read(start="-1h", labels=False)
    table.to_csv(tmp_path / "first.csv")
    assert "0001-01-01T00:00:00Z,1.5," in (tmp_path / "first.csv").read_text()
    assert "1-01-01 00:00" in table._repr_html_()
    for start in ("0001-01-01T00:00Z", datetime.min, "-2000000d"):
        with pytest.raises(siteline.errors.QueryError, match="from 0001-01-02"):
            siteline.Feed("line-2", start=start)
