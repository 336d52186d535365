"""`client.data(..., store=store)`: what is settled comes from it, the rest is read and kept."""

import asyncio
import contextlib
import multiprocessing
import pickle
import threading
from datetime import UTC, datetime, timedelta

import duckdb
import pandas as pd
import pytest
import siteline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import systems
from kit.feeds import make_feed, rows_by_key, stored_points
from kit.ranges import NOW

LINE = {"site": "S1", "line": "L2", "interval": "5m"}
OWN = "data site=S1 line=L2 interval=5m"


def times(*days):
    """The ranges between days of November, as reports write them."""
    return [[f"2026-11-{day:02}T00:00:00Z" for day in pair] for pair in days]


def truth(sandbox, start, end, **options):
    return rows_by_key(sandbox.truth(**{**LINE, **options}, start=start, end=end))


def share(table, number=0):
    one = table.report["through"][number]
    return one["feed"], one["from_store"], one["from_service"]


@pytest.fixture
def read(client, store):
    """Read a range through the store."""

    def read(start, end, **options):
        return client.data(**{**LINE, **options}, start=start, end=end, store=store).collect()

    return read


def test_what_is_settled_costs_nothing_the_second_time(sandbox, client, store, read):
    first = read("2026-11-10", "2026-11-13")
    assert share(first) == (OWN, [], times((10, 13)))
    assert first.report["pages"] == sandbox.stats["data_requests"] > 0
    assert rows_by_key(first) == truth(sandbox, "2026-11-10", "2026-11-13")
    spent = client.allowance.used
    again = read("2026-11-10", "2026-11-13")
    assert share(again) == (OWN, times((10, 13)), [])
    assert (again.report["pages"], client.allowance.used) == (0, spent)
    assert rows_by_key(again) == rows_by_key(first)
    part = read("2026-11-11T06:00Z", "2026-11-12T07:00Z")
    assert (part.report["pages"], client.allowance.used) == (0, spent)
    assert rows_by_key(part) == truth(sandbox, "2026-11-11T06:00Z", "2026-11-12T07:00Z")
    plain = client.data(**LINE, start="2026-11-10", end="2026-11-13").collect()
    assert rows_by_key(plain) == rows_by_key(again)
    assert plain.report["through"] == []
    assert list(plain.to_pandas().columns) == list(again.to_pandas().columns)


@pytest.mark.fault("S10")
def test_what_may_change_is_read_again_until_it_is_settled(sandbox, store, read):
    ask = ("2026-11-17", "2026-11-19T23:00Z")
    first = read(*ask)
    assert share(first) == (OWN, [], [["2026-11-17T00:00:00Z", "2026-11-19T23:00:00Z"]])
    # The 17th and the 18th were read after their lateness.
    assert share(read(*ask))[1] == times((17, 19))
    sandbox.clock.advance("3h")
    later = read(*ask)
    assert share(later)[2] == [["2026-11-19T00:00:00Z", "2026-11-19T23:00:00Z"]]
    assert later.report["revised"] + later.report["points"] > first.report["points"]
    assert rows_by_key(later) == truth(sandbox, *ask)
    sandbox.clock.advance("2d")
    assert rows_by_key(read(*ask)) == truth(sandbox, *ask)
    spent = sandbox.stats["data_requests"]
    final = read(*ask)
    assert (final.report["pages"], sandbox.stats["data_requests"]) == (0, spent)
    assert rows_by_key(final) == truth(sandbox, *ask)


def test_the_feed_that_a_sync_keeps_gives_and_reads_its_part(sandbox, client, store, read):
    feed = make_feed(since="2026-11-12", page_size=500)
    client.sync(feed, store)
    spent = client.allowance.used
    table = read("2026-11-13", "2026-11-15")
    assert share(table) == ("line-2", times((13, 15)), [])
    assert client.allowance.used == spent
    # What is provisional is read by that feed, and counts for its next sync.
    newest = read("2026-11-18", "2026-11-19T23:55Z")
    assert share(newest)[:2] == ("line-2", times((18, 19)))
    assert list(store.feeds) == ["line-2"]
    # What lies before its beginning needs a feed that begins earlier.
    table = read("2026-11-10", "2026-11-14")
    assert share(table) == ("line-2", times((12, 14)), [])
    assert share(table, 1) == (OWN, [], times((10, 12)))
    assert rows_by_key(table) == truth(sandbox, "2026-11-10", "2026-11-14")
    assert store.feeds["line-2"] == feed
    assert client.sync(feed, store).complete


def test_a_feed_reads_only_what_it_continues(sandbox, client, store, read):
    feed = make_feed(since="2026-11-10")
    client.sync(feed, store, until="2026-11-14")
    # A gap in that feed would be one in all that is asked of it.
    assert share(read("2026-11-17", "2026-11-18")) == (OWN, [], times((17, 18)))
    assert share(read("2026-11-13", "2026-11-15")) == ("line-2", times((13, 14)), times((14, 15)))
    assert len(store.points(feed)) == len(truth(sandbox, "2026-11-10", "2026-11-15"))


def test_a_feed_for_other_points_is_left_alone_whatever_its_name(client, store, read):
    other = make_feed(OWN, line="L1", since="2026-11-10")
    client.sync(other, store, until="2026-11-12")
    before = stored_points(store, OWN)
    table = read("2026-11-10", "2026-11-11")
    assert {row["line_id"] for row in table.records()} == {"L2"}
    assert share(table)[0].startswith(f"{OWN} #")
    assert (store.feeds[OWN], stored_points(store, OWN)) == (other, before)
    assert client.sync(other, store, until="2026-11-12").requests == 0


def test_two_services_never_share_a_feed(store):
    for value in (1.0, 2.0, 1.0):
        with siteline.Sandbox(now=NOW) as sandbox:
            times = pd.date_range("2026-11-09", "2026-11-12", freq="5min", tz="UTC")
            points = pd.DataFrame({"timestamp": times, "value": value, "sample_count": 1})
            sandbox.load(points, bucket="5m", line="L9", tag="T")
            ask = {**LINE, "line": "L9", "start": "2026-11-10", "end": "2026-11-11"}
            table = sandbox.client().data(**ask, store=store).collect()
            assert set(table.to_pandas()["value"]) == {value}
            assert share(table)[1] == []
    assert len(store.feeds) == 3


def test_an_earlier_range_moves_the_beginning_of_the_feed_for_reads(sandbox, store, read):
    read("2026-11-10", "2026-11-11")
    table = read("2026-11-07", "2026-11-12", page_size=700)
    assert share(table) == (OWN, times((10, 11)), times((7, 10), (11, 12)))
    assert rows_by_key(table) == truth(sandbox, "2026-11-07", "2026-11-12")
    feed = store.feeds[OWN]
    assert (feed.since, feed.page_size) == (datetime(2026, 11, 7, tzinfo=UTC), 700)
    assert share(read("2026-11-07", "2026-11-12"))[2] == []


def test_the_newest_points_are_there_though_they_do_not_count_as_read(sandbox, store, read):
    sandbox.clock.advance("1h")
    end = "2026-11-20T01:00Z"
    table = read("2026-11-19", end)
    assert rows_by_key(table) == truth(sandbox, "2026-11-19", end)
    newest = max(row["timestamp"] for row in table.records())
    # They end after the settle lag begins.
    assert newest >= store.coverage(OWN, now=sandbox.clock.now()).newest


@pytest.mark.sandbox(order="series")
def test_what_lies_within_the_settle_lag_is_never_half_old(sandbox, client, store):
    ask = {**LINE, "start": "2026-11-19T18:00Z", "end": "2026-11-20T02:00Z", "page_size": 100}
    sandbox.fault(on="data", status=503, skip=2, times=6)
    with pytest.warns(siteline.SitelineWarning, match="ahead"):
        scan = client.data(**ask, store=store)
    with pytest.raises(siteline.ServiceUnavailable):
        scan.collect()
    sandbox.clear_faults()
    sandbox.clock.advance("55m")
    with pytest.warns(siteline.SitelineWarning, match="ahead"):
        scan = client.data(**ask, store=store)
    table = scan.collect()
    assert rows_by_key(table).keys() == truth(sandbox, ask["start"], ask["end"]).keys()
    # What lies behind the settle lag goes on from the first time, and says so.
    read_at = table.to_pandas().attrs["siteline"]["read_at"]
    assert read_at.startswith(("2026-11-19T23:59", "2026-11-20T00:00"))


def test_an_end_in_the_future_costs_no_more_than_without_a_store(sandbox, client, store):
    ask = {**LINE, "interval": "1h", "start": "2026-11-19", "end": "2027-03-01"}
    with pytest.warns(siteline.SitelineWarning, match="ahead"):
        plain = client.data(**ask).collect().report["pages"]
    for _ in range(2):
        with pytest.warns(siteline.SitelineWarning, match="ahead"):
            scan = client.data(**ask, store=store)
        plan = client.plan(scan)
        table = scan.collect()
        assert table.report["pages"] == plan.pages or plan.pages is None
        assert table.report["pages"] <= plain + 1
        assert rows_by_key(table) == truth(sandbox, ask["start"], ask["end"], interval="1h")


def test_a_range_off_the_grid_has_the_buckets_that_begin_in_it(sandbox, store, read):
    with pytest.warns(siteline.SitelineWarning):
        table = read("2026-11-10T00:02:00Z", "2026-11-10T01:01:00Z")
    got = sorted({row["timestamp"] for row in table.records()})
    assert (got[0].minute, got[-1].hour, got[-1].minute) == (5, 1, 0)
    whole = truth(sandbox, "2026-11-10T00:05Z", "2026-11-10T01:05Z")
    assert rows_by_key(table) == whole
    with pytest.warns(siteline.SitelineWarning):
        assert rows_by_key(read("2026-11-10T00:02:00Z", "2026-11-10T01:01:00Z")) == whole


def test_a_point_that_the_service_withdrew_is_not_given(sandbox, store, client):
    from kit.feeds import load_series, withdraw_point

    load_series(sandbox)
    ask = {"start": "2026-11-19", "end": "2026-11-19T12:00Z", "store": store}
    before = client.data(**LINE, **ask).collect()
    withdraw_point(sandbox)
    after = client.data(**LINE, **ask).collect()
    assert len(before) - len(after) == 1
    assert rows_by_key(after) == truth(sandbox, "2026-11-19", "2026-11-19T12:00Z")
    assert len(store.points(OWN, "2026-11-19", "2026-11-19T12:00Z")) == len(before), "flagged"


@pytest.mark.fault("B5")
def test_a_read_that_the_allowance_ends_is_an_error_and_the_next_one_goes_on(sandbox, store):
    client = sandbox.client(daily_allowance=12)
    scan = client.data(**LINE, start="2026-11-10", end="2026-11-19", page_size=500, store=store)
    with pytest.raises(siteline.AllowanceExhausted, match="is not read yet") as caught:
        scan.collect()
    error = caught.value
    assert error.retry_at == datetime(2026, 11, 21, tzinfo=UTC)
    assert (error.bookmark, error.partial) == (None, None)
    assert "kept in" in error.hint
    assert "bookmark" not in error.hint
    assert len(stored_points(store, OWN, unread="keep")) > 5_000
    table = None
    while table is None:
        sandbox.clock.advance("1d")
        assert sandbox.clock.now() < datetime(2026, 11, 29, tzinfo=UTC)
        with contextlib.suppress(siteline.AllowanceExhausted):
            table = scan.collect()
    # No page was paid for twice.
    plain = sandbox.client().data(**LINE, start="2026-11-10", end="2026-11-19", page_size=500)
    assert rows_by_key(table) == rows_by_key(plain.collect())
    assert sandbox.stats["data_requests"] <= 2 * plain.collect().report["pages"] + 9


def test_a_read_that_fails_goes_on_with_what_it_has_stored(sandbox, client, store):
    sandbox.fault(on="data", status=503, skip=3, times=4)
    scan = client.data(**LINE, start="2026-11-10", end="2026-11-12", page_size=500, store=store)
    with pytest.raises(siteline.ServiceUnavailable) as caught:
        scan.collect()
    assert caught.value.partial is None
    before = sandbox.stats["data_requests"]
    table = client.data(
        **LINE, start="2026-11-10", end="2026-11-12", page_size=500, store=store
    ).collect()
    assert rows_by_key(table) == truth(sandbox, "2026-11-10", "2026-11-12")
    pages = -(-len(table) // 500)
    assert sandbox.stats["data_requests"] - before <= pages - 3 + 2


def test_max_pages_bounds_what_is_requested_and_what_was_read_stays(sandbox, client, store):
    scan = client.data(
        **LINE, start="2026-11-10", end="2026-11-12", page_size=500, max_pages=3, store=store
    )
    with pytest.raises(siteline.QueryError, match=r"max_pages=3 was reached: .* is not read yet"):
        scan.collect()
    assert sandbox.stats["data_requests"] == 3
    table = None
    while table is None:
        with contextlib.suppress(siteline.QueryError):
            table = scan.collect()
        assert sandbox.stats["data_requests"] < 30
    assert rows_by_key(table) == truth(sandbox, "2026-11-10", "2026-11-12")
    assert sandbox.stats["data_requests"] <= -(-len(table) // 500) + 3


@pytest.mark.parametrize("limit", [{"max_pages": 3}, {}])
def test_one_scan_reads_nothing_twice_though_it_is_not_settled(sandbox, store, limit):
    """Nine provisional days, in several chains: each call goes on where the last one stopped."""
    client = sandbox.client(**({} if limit else {"daily_allowance": 10}))
    feed = make_feed(since="2026-11-10", lateness="30d", page_size=500)
    client.sync(feed, store, until="2026-11-10T00:05Z")
    scan = client.data(**LINE, start="2026-11-10", end="2026-11-19", **limit, store=store)
    table, calls = None, 0
    while table is None:
        calls += 1
        assert calls < 12
        sandbox.clock.advance("1h" if limit else "1d")
        with contextlib.suppress(siteline.QueryError, siteline.AllowanceExhausted):
            table = scan.collect()
    assert rows_by_key(table) == truth(sandbox, "2026-11-10", "2026-11-19")
    chains = 12
    assert sandbox.stats["data_requests"] <= -(-len(table) // 500) + chains
    assert share(table)[1:] == ([], times((10, 19)))
    # The oldest of these points are as old as the first call.
    read_at = datetime.fromisoformat(table.to_pandas().attrs["siteline"]["read_at"])
    assert sandbox.clock.now() - read_at >= (calls - 1) * timedelta(hours=1)


@pytest.mark.fault("S19")
def test_a_store_that_is_read_only_gives_what_it_has_settled(client, store, read):
    first = read("2026-11-10", "2026-11-12")
    with siteline.Store(store.path, read_only=True) as kept:
        scan = client.data(**LINE, start="2026-11-10", end="2026-11-12", store=kept)
        assert rows_by_key(scan.collect()) == rows_by_key(first)
        spent = client.allowance.used
        with pytest.raises(siteline.StoreError, match="read only"):
            client.data(**LINE, start="2026-11-09", end="2026-11-12", store=kept).collect()
        assert client.allowance.used == spent


@pytest.mark.fault("P14")
def test_what_a_sync_has_set_aside_is_not_paid_for_again(sandbox, client, store):
    feed = make_feed(since="2026-11-19", window="6h")
    sandbox.fault(on="data", every=1, empty_page=True)
    with pytest.raises(siteline.EndlessChain):
        client.sync(feed, store, until="2026-11-19T06:00Z")
    sandbox.clear_faults()
    spent = client.allowance.used
    ask = {**LINE, "start": "2026-11-19", "store": store}
    with pytest.raises(siteline.UnreadRange, match=r"set aside.*EndlessChain") as caught:
        client.data(**ask, end="2026-11-19T06:00Z").collect()
    assert caught.value.retry_at == datetime(2026, 11, 21, tzinfo=UTC)
    assert client.allowance.used == spent
    # Nor is what lies beside it, for the whole cannot be had.
    scan = client.data(**ask, end="2026-11-19T18:00Z")
    with pytest.raises(siteline.UnreadRange, match="set aside"):
        scan.collect()
    plan = client.plan(scan)
    assert (plan.set_aside, client.allowance.used) == (1, spent)
    assert client.plan(client.data(**ask, end="2026-11-19T06:00Z")).pages is None
    assert len(client.data(**{**ask, "store": None}, end="2026-11-19T06:00Z").collect()) > 0


def test_a_query_that_the_service_refuses_costs_one_request(sandbox, client, store):
    sandbox.fault(on="data", status=400, times=100)
    with pytest.raises(siteline.RequestRejected):
        client.data(**LINE, start="2026-11-10", end="2026-11-14", store=store).collect()
    assert sandbox.stats["data_requests"] == 1


def test_a_beginning_that_was_forgotten_is_refused(client, store, read):
    read("2026-11-10", "2026-11-13")
    store.forget(OWN, before="2026-11-12")
    spent = client.allowance.used
    with pytest.raises(siteline.QueryError, match="forget"):
        read("2026-11-10", "2026-11-13")
    assert client.allowance.used == spent
    assert len(read("2026-11-12", "2026-11-13")) > 0
    assert client.allowance.used == spent


def test_every_way_to_the_whole_is_one_read(client, store):
    scan = client.data(**LINE, start="2026-11-10", end="2026-11-11", store=store)
    named = [record.value for record in scan.records(named=True)]
    spent = client.allowance.used
    frame = scan.to_pandas()
    assert frame["value"].tolist() == named
    assert len(duckdb.sql("from scan").fetchall()) == len(named) == len(list(scan.records()))
    assert client.allowance.used == spent
    assert frame.attrs["siteline"]["through"] == scan.collect().report["through"]
    wide = scan.collect().wide().to_pandas()
    assert len(wide) == 288


def test_what_needs_a_chain_of_its_own_is_refused(client, store):
    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-11", "store": store}
    scan = client.data(**ask)
    page = next(client.data(**{**ask, "store": None, "page_size": 500}).pages())
    for use, what in (
        (scan.pages, r"^pages\(\) is not for"),
        (lambda: scan.records(fresh=True), r"^records\(fresh=True\) is not for"),
        (lambda: scan.split(2), r"^split\(\) is not for"),
        (lambda: scan.resume(page.bookmark), r"^resume\(\) is not for"),
        (lambda: client.data(**ask, extra_columns=["unit"]), "^extra_columns= is not kept"),
        (lambda: client.data(**ask, keep_raw=True), "^keep_raw= is not kept"),
        (lambda: client.data(**{**ask, "start": None}), "^start=None leaves the start"),
        (
            lambda: client.data(**{**ask, "store": "plant.siteline"}),
            "^store= is an object of type str",
        ),
    ):
        with pytest.raises(siteline.QueryError, match=what):
            use()
    assert client.allowance.used == 1


@pytest.mark.fault("B13")
def test_a_plan_knows_what_is_settled(client, store, read):
    read("2026-11-10", "2026-11-12")
    ask = {**LINE, "start": "2026-11-10", "store": store}
    free = client.plan(client.data(**ask, end="2026-11-12"))
    assert (free.pages, len(free.tasks)) == (0, 1)
    plan = client.plan(client.data(**ask, end="2026-11-14"))
    assert [(task.feed, task.start.day, task.end.day) for task in plan.tasks] == [(OWN, 12, 14)]
    table = client.data(**ask, end="2026-11-14").collect()
    assert plan.pages == table.report["pages"]


def test_scans_of_several_lines_are_gathered(sandbox, client, store):
    def scans():
        return [
            client.data(**{**LINE, "line": line}, start="2026-11-10", end="2026-11-12", store=store)
            for line in ("L1", "L2")
        ]

    gathered = client.gather(scans())
    assert [len(table) for table in gathered] == [
        len(truth(sandbox, "2026-11-10", "2026-11-12", line=line)) for line in ("L1", "L2")
    ]
    spent = client.allowance.used
    again = client.gather(scans())
    assert client.allowance.used == spent
    assert [rows_by_key(table) for table in again] == [rows_by_key(table) for table in gathered]
    assert len(again.to_pandas()) == sum(map(len, gathered))


@pytest.mark.fault("S20")
def test_two_reads_at_once_of_one_feed_wait_for_each_other(sandbox, client, store):
    tables = []

    def work():
        tables.append(
            client.data(
                **LINE, start="2026-11-10", end="2026-11-12", page_size=500, store=store
            ).collect()
        )

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(tables) == 4
    assert all(rows_by_key(table) == rows_by_key(tables[0]) for table in tables)
    # The first has settled all that the others need.
    assert sorted(table.report["pages"] > 0 for table in tables) == [False, False, False, True]
    assert sandbox.stats["data_requests"] == max(table.report["pages"] for table in tables)


@pytest.mark.fault("S20")
def test_a_sync_that_has_the_feed_is_waited_for_until_the_deadline(client, store):
    feed = make_feed(since="2026-11-10")
    states = []

    class Held:
        """A callback that keeps the sync where it is."""

        def __call__(self, progress):
            if states:
                return
            scan = client.data(
                **LINE, start="2026-11-10", end="2026-11-12", deadline="0.2s", store=store
            )
            with pytest.raises(siteline.StoreBusy, match="waited") as caught:
                scan.collect()
            assert "deadline=" in caught.value.hint
            states.append(progress)

    client.sync(feed, store, progress=Held())
    assert states


def test_progress_counts_the_pages_that_are_requested(client, store):
    seen = []
    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "page_size": 500, "store": store}
    table = client.data(**ask, progress=seen.append).collect()
    assert seen[-1].done
    assert seen[-1].pages == table.report["pages"] == len(seen)
    again = []
    client.data(**ask, progress=again.append).collect()
    assert again == []
    records = []
    assert len(list(client.data(**ask, progress=records.append).records())) == len(table)
    assert records == []


@pytest.mark.parametrize("how", ["collect", "records", "gather", "frame", "await"])
def test_a_read_that_is_interrupted_leaves_the_feed_to_others(sandbox, client, store, how):
    """Also while its scan is kept: another process would have to wait for it."""

    def fail(progress):
        raise RuntimeError("enough")

    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "page_size": 500, "store": store}

    async def records():
        async with sandbox.async_client() as other:
            scan = other.data(**ask, progress=fail)
            with pytest.raises(RuntimeError, match="enough"):
                async for _ in scan.records():
                    pass
            return scan

    scan = client.data(**ask, progress=fail)
    if how == "await":
        scan = asyncio.run(records())
    else:
        use = {
            "collect": scan.collect,
            "records": lambda: list(scan.records()),
            "gather": lambda: client.gather([scan]),
            "frame": scan.to_pandas,
        }[how]
        with pytest.raises(Exception, match="enough"):
            use()
    with siteline.Store(store.path) as other:
        table = client.data(**{**ask, "store": other}, deadline="5s").collect()
    assert rows_by_key(table) == truth(sandbox, "2026-11-10", "2026-11-12")
    assert scan.query == client.data(**ask).query


def test_asyncio_reads_through_a_store_too(sandbox, store):
    async def main():
        async with sandbox.async_client() as client:
            ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "store": store}
            table = await client.data(**ask).collect()
            spent = client.allowance.used
            records = [record async for record in client.data(**ask).records()]
            seen = []
            again = client.data(**{**ask, "line": "L1"}, page_size=500, progress=seen.append)
            first = [record async for record in again.records()]
            assert seen[-1].done
            assert len(seen) > 1
            plan = await client.plan(client.data(**ask))
            return table, spent, records, first, plan.pages, await client.data(**ask).to_polars()

    table, spent, records, first, pages, frame = asyncio.run(main())
    assert rows_by_key(table) == truth(sandbox, "2026-11-10", "2026-11-12")
    assert len(records) == len(table) == len(frame)
    assert len(first) == len(truth(sandbox, "2026-11-10", "2026-11-12", line="L1"))
    assert (spent > 0, pages) == (True, 0)


def test_a_read_that_is_cancelled_leaves_the_feed_to_others(sandbox, store):
    async def main():
        async with sandbox.async_client() as client:
            ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "page_size": 500}
            sandbox.fault(on="data", skip=2, times=1, delay="30s")
            task = asyncio.ensure_future(client.data(**ask, store=store).collect())
            while sandbox.stats["data_requests"] < 3:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await client.data(**ask, store=store).collect()

    table = asyncio.run(main())
    assert rows_by_key(table) == truth(sandbox, "2026-11-10", "2026-11-12")


def test_a_scan_and_its_table_are_pickled_with_their_store(sandbox, client, store, monkeypatch):
    scan = client.data(**LINE, start="2026-11-10", end="2026-11-12", store=store)
    assert f"through {store.path}" in repr(scan)
    scan.collect()
    scan = client.data(**LINE, start="2026-11-10", end="2026-11-12", store=store)
    table = scan.collect()
    again = pickle.loads(pickle.dumps(table))
    assert again.report == table.report
    assert repr(again) == repr(table)
    assert str(store.path) in repr(table)
    # A scan takes the store with it; the key of a sandbox's client would be a secret.
    with monkeypatch.context() as patch:
        for name, value in sandbox.env().items():
            patch.setenv(name, value)
        mine = siteline.Client.from_env()
        ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "store": store}
        taken = pickle.loads(pickle.dumps(mine.data(**ask)))
    assert repr(taken) == repr(scan)
    assert taken.collect().report["through"] == again.report["through"]


def _in_a_child(scan, pipe):
    try:
        table = scan.collect()
        pipe.send((len(table), table.report["pages"]))
    except siteline.SitelineError as error:
        pipe.send(repr(error))


@systems.FORK
def test_a_forked_child_reads_by_itself(client, store):
    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "page_size": 500, "store": store}
    stops = []

    def fork(progress):
        if stops:
            return
        # The parent has the feed, and a request under way: the child waits, and gives up.
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        child = context.Process(
            target=_in_a_child, args=(client.data(**ask, deadline="0.2s"), theirs)
        )
        child.start()
        stops.append(ours.recv())
        child.join(30)

    table = client.data(**ask, progress=fork).collect()
    assert "StoreBusy" in stops[0]
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_in_a_child, args=(client.data(**ask), theirs))
    child.start()
    assert ours.recv() == (len(table), 0)
    child.join(30)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 30), st.sampled_from([0, 1, 7])),
        min_size=2,
        max_size=6,
    )
)
def test_any_reads_give_what_the_service_has(tmp_path_factory, reads):
    """Whatever was read before: each read gives the truth of its time, and settles what it can."""
    path = tmp_path_factory.mktemp("through") / "plant.siteline"
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox, siteline.Store(path) as store:
        client = sandbox.client()
        query = {**LINE, "interval": "1h"}
        for first, length, hours in reads:
            start = datetime(2026, 11, 16, tzinfo=UTC).timestamp() + first * 3_600
            start, end = (datetime.fromtimestamp(at, UTC) for at in (start, start + length * 3_600))
            table = client.data(**query, start=start, end=end, store=store).collect()
            assert rows_by_key(table) == rows_by_key(sandbox.truth(**query, start=start, end=end))
            [one] = table.report["through"]
            assert len(one["from_store"]) + len(one["from_service"]) > 0
            assert (table.report["pages"] == 0) == (one["from_service"] == [])
            sandbox.clock.advance(f"{hours}h")
