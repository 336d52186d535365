"""`start="-7d"`: times that count from now, or in a store from the newest instant that was read."""

import pickle
import re
import warnings

import pytest
import siteline
from kit.command import run_command, run_json
from kit.feeds import make_feed

BERLIN = "Europe/Berlin"
LINE = {"site": "S1", "line": "L2", "interval": "1h"}

pytestmark = pytest.mark.once


def text(at):
    return at.isoformat().replace("+00:00", "Z")


def bounds(query):
    return text(query.start), text(query.end)


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
    assert asked("-7d", interval="1d") == ("2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z")
    assert asked("-90m", "-30m", interval="1m") == ("2026-11-19T22:37:00Z", "2026-11-19T23:37:00Z")
    assert asked("-2w", "now", interval="1m") == ("2026-11-06T00:07:00Z", "2026-11-20T00:07:00Z")
    assert asked("-1h") == ("2026-11-19T23:07:31Z", "2026-11-20T00:02:31Z")
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
    again = client.scan(**LINE, start=query.start, end=query.end)
    assert again.query == query
    assert client.scan(start="-7d", **LINE).query != query


@pytest.mark.parametrize("wall", ["2026-11-20T09:00Z", "2026-11-19T09:00Z"], ids=["fast", "slow"])
def test_times_before_now_count_by_the_services_clock(sandbox, wall):
    client = sandbox.client(clock=sandbox.clock.machine(wall))
    before = client.scan(start="-1d", interval="1h").query
    assert text(before.start) != "2026-11-19T00:00:00Z", "by the machine's, while nothing is known"
    client.discover()
    client.discover()
    query = client.scan(start="-1d", end="-1h", interval="1h").query
    assert bounds(query) == ("2026-11-19T00:00:00Z", "2026-11-19T23:00:00Z")


def test_invalid_times_before_now_are_refused_and_nothing_is_sent(sandbox):
    for wrong, message in (
        ({"start": "+1h"}, "lies after now"),
        ({"start": "-1d", "end": "+1h"}, "lies after now"),
        ({"start": "7d"}, '(?s)not an ISO 8601 time.*write "-7d"'),
        ({"start": "-10m", "end": "-5m", "interval": "1h"}, "(?s)range is empty.*rounded down"),
        ({"start": "-1m", "interval": "1d"}, "(?s)range is empty.*end was left out"),
    ):
        with pytest.raises(siteline.errors.QueryError) as caught:
            sandbox.client().scan(**wrong)
        assert re.search(message, str(caught.value))
    with pytest.raises(siteline.errors.QueryError, match="lies after now"):
        make_feed(start="+7d")
    assert sandbox.stats.data_requests == 0


@pytest.fixture
def stored(sandbox, store):
    """A store with two days of hours, which were read in two syncs, six hours apart."""
    client, feed = sandbox.client(), make_feed(interval="1h", start="2026-11-18")
    first = client.sync(feed, store)
    sandbox.clock.advance("6h")
    client.sync(feed, store)
    return store, first


def hours(points):
    return sorted({row["timestamp"].strftime("%dT%H") for row in points.records()})


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


def test_a_store_that_was_never_read_has_no_time_to_count_from(sandbox, store):
    sandbox.fault(on="data", status=503)
    with pytest.raises(siteline.errors.ServiceUnavailable):
        sandbox.client(http=siteline.types.Http(tries=1)).sync(make_feed(), store)
    for call in (store.read, lambda *range_: store.changes(range_[0], 0, *range_[1:])):
        with pytest.raises((siteline.errors.UnreadRange, siteline.errors.StoreError)):
            call("line-2", "-7d")


RECENT = ["pull", "--site", "S1", "--line", "L2", "--interval", "1h", "--page-size", "10"]


def test_the_command_takes_times_before_now_and_goes_on_with_those_of_the_first_run(
    sandbox, tmp_path
):
    env, out = sandbox.env(), tmp_path / "hours.csv"
    sandbox.fault(on="data", status=503, skip=1, times=4)
    failed = run_command(*RECENT, "--start=-6h", "--end=-1h", "-o", out, env=env, status=4)
    assert "--resume in the place of the query's arguments goes on there" in failed.stderr
    sandbox.clock.advance("1d")
    refused = run_command(*RECENT, "--start=-6h", "--resume", "-o", out, env=env, status=2)
    assert "--resume alone goes on there" in refused.stderr
    pulled = run_json("pull", "--resume", "-o", out, env=env)
    assert (pulled["start"], pulled["end"]) == ("2026-11-19T18:00:00Z", "2026-11-19T23:00:00Z")
    planned = run_json("plan", "--site", "S1", "--start=-6h", "--interval", "1h", env=env)
    assert planned["tasks"][0]["start"] == "2026-11-20T18:00:00Z"
