"""The range of a read: a missing start, bounds off the grid, dates and unknown ids."""

import asyncio
import warnings
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
import siteline
from kit.feeds import make_feed
from kit.ranges import SIX_HOURS
from siteline import SitelineWarning

BERLIN = ZoneInfo("Europe/Berlin")
BERLIN_DAYS = {
    "site": "S1",
    "line": "L1",
    "start": datetime(2026, 11, 2, tzinfo=BERLIN),
    "end": datetime(2026, 11, 5, tzinfo=BERLIN),
    "interval": "1d",
}


@pytest.mark.parametrize("kind", ["client", "async_client"])
def test_k16_a_start_that_is_left_out_is_refused_and_none_leaves_it_to_the_service(sandbox, kind):
    client = getattr(sandbox, kind)()
    with pytest.raises(siteline.errors.QueryError, match="start= is missing") as caught:
        client.scan(site="S1", end="2026-11-02")
    assert 'Write start="2026-11-01" or a time, or start=None' in caught.value.hint
    assert "daily allowance" in caught.value.hint
    assert sandbox.stats.data_requests == 0
    scan = client.scan(site="S1", start=None, end="2026-11-02")
    assert scan.query.start is None
    assert str(scan.query) == "siteId=S1 to=2026-11-02T00:00:00Z"


def caught_warnings(call):
    """Give what the call returns, and its SitelineWarnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        value = call()
    return value, [one for one in seen if one.category is siteline.SitelineWarning]


def test_k17_the_warning_shows_the_line_of_the_user(sandbox):
    def ask(client):
        return client.scan(**BERLIN_DAYS)  # this line

    async def main():
        async with sandbox.async_client(labels=False) as client:
            return ask(client)

    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    for call in (lambda: ask(sandbox.client(labels=False)), lambda: asyncio.run(main())):
        scan, [warning] = caught_warnings(call)
        assert scan.report.bounds_off_grid == ("start", "end")
        assert warning.filename == __file__
        assert source[warning.lineno - 1].endswith("# this line")


MIDNIGHT = datetime(2026, 11, 18, tzinfo=UTC)
DATES = ["2026-11-18", " 2026-11-18 ", date(2026, 11, 18)]


@pytest.mark.parametrize("given", DATES, ids=repr)
def test_k18_a_date_is_its_midnight_in_utc_wherever_a_time_is_taken(sandbox, store, given):
    client = sandbox.client(labels=False)
    query = client.scan(site="S1", start=given, end="2026-11-19", interval="1h").query
    assert query.start == MIDNIGHT
    assert client.scan(start=None, end=given).query.end == MIDNIGHT
    feed = make_feed(interval="1h", start=given)
    assert feed.start == MIDNIGHT
    client.sync(feed, store, until="2026-11-19")
    whole = len(store.read(feed))
    assert store.coverage(feed).newest == datetime(2026, 11, 19, tzinfo=UTC)
    assert len(store.read(feed, given, date(2026, 11, 19))) == whole > 0
    assert len(store.changes(feed, 0, given, "2026-11-19")) == whole
    assert len(store.read(feed, given, "2026-11-19", as_of=date(2026, 11, 21))) == whole
    assert len(store.read(feed, unread="keep", as_of=given)) == 0, "before the first sync"
    assert store.coverage(feed, now=date(2026, 11, 20)).now == datetime(2026, 11, 20, tzinfo=UTC)
    again = client.sync(feed, store, until=date(2026, 11, 19), reread=(given, "2026-11-19"))
    assert again.pages > 0
    plan = client.plan(feed, store, until=given)
    assert plan.tasks == ()
    assert siteline.testing.Clock(given).now() == MIDNIGHT
    assert len(sandbox.expected(site="S1", start=given, end="2026-11-19", interval="1h")) > 0
    with siteline.Sandbox(now=given) as other:
        assert other.clock.now() == MIDNIGHT
        other.load(
            pd.DataFrame({"timestamp": [MIDNIGHT], "value": [1.0], "sample_count": [1]}),
            bucket="1d",
        )
        other.revise(given, 2.0, at=date(2026, 11, 18))
        assert next(other.expected(at=date(2026, 11, 19)).records())["value"] == 2.0


def test_k19_ids_that_discovery_does_not_list_are_told_once_without_a_request(sandbox):
    wanted = {**SIX_HOURS, "line": "L9", "filters": {"tagGuid": ["unknown"]}}
    client = sandbox.client()
    client.discover()
    # Without labels, the ids are not checked.
    client.scan(**wanted, labels=False).collect()
    scan = client.scan(**wanted)
    with pytest.warns(SitelineWarning, match='does not list line "L9", tag "unknown"') as told:
        table = scan.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan.collect()
    assert sandbox.stats.data_requests == 2
    with pytest.warns(SitelineWarning, match="does not list"):
        list(scan.pages())
    assert len(told) == 1
    assert scan.report == table.report
    assert table.report.not_listed == ('line "L9"', 'tag "unknown"')
    assert sandbox.stats.requests["discovery"] == {200: 1}
