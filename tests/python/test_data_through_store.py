"""`client.scan(..., store=store)` reads settled data from the store and stores the rest."""

import asyncio
import contextlib
import multiprocessing
import pickle
from datetime import UTC, datetime

import duckdb
import pytest
import siteline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import systems
from kit.feeds import make_feed, rows_by_key
from kit.threads import run_in_threads
from kit.waiting import wait_until

LINE = {"site": "S1", "line": "L2", "interval": "5m"}
OWN = "data site=S1 line=L2 interval=5m"


def times(*days):
    """The ranges between days of November, as reports write them."""
    return [[f"2026-11-{day:02}T00:00:00Z" for day in pair] for pair in days]


def truth(sandbox, start, end, **options):
    return rows_by_key(sandbox.expected(**{**LINE, **options}, start=start, end=end))


def share(table, number=0):
    one = table.report.to_dict()["through"][number]
    return one["feed"], one["from_store"], one["from_service"]


@pytest.fixture
def read(client, store):
    """Read a range through the store."""

    def read(start, end, **options):
        return client.scan(**{**LINE, **options}, start=start, end=end, store=store).collect()

    return read


def test_what_is_settled_costs_nothing_the_second_time(sandbox, client, store, read):
    first = read("2026-11-10", "2026-11-13")
    assert share(first) == (OWN, [], times((10, 13)))
    assert first.report.pages == sandbox.stats.data_requests > 0
    assert rows_by_key(first) == truth(sandbox, "2026-11-10", "2026-11-13")
    spent = client.allowance.used
    again = read("2026-11-10", "2026-11-13")
    assert share(again) == (OWN, times((10, 13)), [])
    assert (again.report.pages, client.allowance.used) == (0, spent)
    assert rows_by_key(again) == rows_by_key(first)
    part = read("2026-11-11T06:00Z", "2026-11-12T07:00Z")
    assert (part.report.pages, client.allowance.used) == (0, spent)
    assert rows_by_key(part) == truth(sandbox, "2026-11-11T06:00Z", "2026-11-12T07:00Z")
    plain = client.scan(**LINE, start="2026-11-10", end="2026-11-13").collect()
    assert rows_by_key(plain) == rows_by_key(again)
    assert plain.report.through == ()
    assert list(plain.to_pandas().columns) == list(again.to_pandas().columns)


def test_the_feed_that_a_sync_keeps_gives_and_reads_its_part(sandbox, client, store, read):
    feed = make_feed(start="2026-11-12", page_size=500)
    client.sync(feed, store)
    spent = client.allowance.used
    table = read("2026-11-13", "2026-11-15")
    assert share(table) == ("line-2", times((13, 15)), [])
    assert client.allowance.used == spent
    # That feed reads the provisional data too, and its next sync uses it.
    newest = read("2026-11-18", "2026-11-19T23:55Z")
    assert share(newest)[:2] == ("line-2", times((18, 19)))
    assert list(store.feeds) == ["line-2"]
    # Data before its start needs a feed that starts earlier.
    table = read("2026-11-10", "2026-11-14")
    assert share(table) == ("line-2", times((12, 14)), [])
    assert share(table, 1) == (OWN, [], times((10, 12)))
    assert rows_by_key(table) == truth(sandbox, "2026-11-10", "2026-11-14")
    assert store.feeds["line-2"] == feed
    assert client.sync(feed, store).complete


def test_a_point_that_the_service_withdrew_is_not_given(sandbox, store, client):
    from kit.feeds import load_series, withdraw_point

    load_series(sandbox)
    ask = {"start": "2026-11-19", "end": "2026-11-19T12:00Z", "store": store}
    before = client.scan(**LINE, **ask).collect()
    withdraw_point(sandbox)
    after = client.scan(**LINE, **ask).collect()
    assert len(before) - len(after) == 1
    assert rows_by_key(after) == truth(sandbox, "2026-11-19", "2026-11-19T12:00Z")
    assert len(store.read(OWN, "2026-11-19", "2026-11-19T12:00Z")) == len(before), "flagged"


def test_a_store_that_is_read_only_gives_what_it_has_settled(client, store, read):
    first = read("2026-11-10", "2026-11-12")
    with siteline.Store(store.path, read_only=True) as kept:
        scan = client.scan(**LINE, start="2026-11-10", end="2026-11-12", store=kept)
        assert rows_by_key(scan.collect()) == rows_by_key(first)
        spent = client.allowance.used
        with pytest.raises(siteline.errors.StoreError, match="read-only"):
            client.scan(**LINE, start="2026-11-09", end="2026-11-12", store=kept).collect()
        assert client.allowance.used == spent


def test_a_beginning_that_was_forgotten_is_refused(client, store, read):
    read("2026-11-10", "2026-11-13")
    store.forget(OWN, before="2026-11-12")
    spent = client.allowance.used
    with pytest.raises(siteline.errors.QueryError, match="forgotten"):
        read("2026-11-10", "2026-11-13")
    assert client.allowance.used == spent
    assert len(read("2026-11-12", "2026-11-13")) > 0
    assert client.allowance.used == spent


def test_every_way_to_the_whole_is_one_read(client, store):
    scan = client.scan(**LINE, start="2026-11-10", end="2026-11-11", store=store)
    named = [record.value for record in scan.records(named=True)]
    spent = client.allowance.used
    frame = scan.to_pandas()
    assert frame["value"].tolist() == named
    assert len(duckdb.sql("from scan").fetchall()) == len(named) == len(list(scan.records()))
    assert client.allowance.used == spent
    assert frame.attrs["siteline"]["through"] == scan.collect().report.to_dict()["through"]
    wide = scan.collect().pivot().to_pandas()
    assert len(wide) == 288


def test_what_needs_a_chain_of_its_own_is_refused(client, store):
    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-11", "store": store}
    scan = client.scan(**ask)
    page = next(client.scan(**{**ask, "store": None, "page_size": 500}).pages())
    for use, what in (
        (scan.pages, r"^pages\(\) is not for"),
        (lambda: scan.split(2), r"^split\(\) is not for"),
        (lambda: scan.resume(page.bookmark), r"^resume\(\) is not for"),
        (lambda: client.scan(**ask, extra_columns=["unit"]), "not keep extra_columns="),
        (lambda: client.scan(**ask, keep_raw=True), "a store does not keep keep_raw="),
        (lambda: client.scan(**{**ask, "start": None}), "^with start=None the service chooses"),
        (
            lambda: client.scan(**{**ask, "store": "plant.siteline"}),
            "^store= is an object of type str",
        ),
    ):
        with pytest.raises(siteline.errors.QueryError, match=what):
            use()
    assert client.allowance.used == 1


def test_reads_at_once_of_one_feed_wait_for_each_other(sandbox, client, store):
    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "page_size": 500, "store": store}
    tables = run_in_threads(4, lambda: client.scan(**ask).collect())
    assert all(rows_by_key(table) == rows_by_key(tables[0]) for table in tables)
    # The first has settled all that the others need.
    assert sorted(table.report.pages > 0 for table in tables) == [False, False, False, True]
    assert sandbox.stats.data_requests == max(table.report.pages for table in tables)


@pytest.mark.parametrize("how", ["collect", "await"])
def test_a_read_that_is_interrupted_leaves_the_feed_to_others(sandbox, client, store, how):
    """Also while its scan is kept: another process would have to wait for it."""

    def fail(progress):
        raise RuntimeError("enough")

    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "page_size": 500, "store": store}

    async def records():
        async with sandbox.async_client() as other:
            scan = other.scan(**ask, progress=fail)
            with pytest.raises(RuntimeError, match="enough"):
                async for _ in scan.records():
                    pass
            return scan

    scan = client.scan(**ask, progress=fail)
    if how == "await":
        scan = asyncio.run(records())
    else:
        with pytest.raises(Exception, match="enough"):
            scan.collect()
    tables = []

    def read():
        # The interrupted read may hold the feed for a moment.
        with siteline.Store(store.path) as other, contextlib.suppress(siteline.errors.StoreBusy):
            tables.append(client.scan(**{**ask, "store": other}).collect())
        return tables

    wait_until(read)
    assert rows_by_key(tables[0]) == truth(sandbox, "2026-11-10", "2026-11-12")
    assert scan.query == client.scan(**ask).query


def test_a_scan_and_its_table_are_pickled_with_their_store(sandbox, client, store, monkeypatch):
    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "store": store}
    scan = client.scan(**ask)
    assert f"through {store.path}" in repr(scan)
    table = scan.collect()
    again = pickle.loads(pickle.dumps(table))
    assert (again.report, repr(again)) == (table.report, repr(table))
    # A scan takes the store with it; the key of a sandbox's client would be a secret.
    with monkeypatch.context() as patch:
        for name, value in sandbox.env().items():
            patch.setenv(name, value)
        taken = pickle.loads(pickle.dumps(siteline.Client().scan(**ask)))
    assert repr(taken) == repr(scan)
    assert taken.collect().report.pages == 0


def _in_a_child(scan, pipe):
    try:
        table = scan.collect()
        pipe.send((len(table), table.report.pages))
    except siteline.SitelineError as error:
        pipe.send(f"{error!r} {error.hint}")


@systems.FORK
def test_a_forked_child_reads_by_itself(client, store):
    ask = {**LINE, "start": "2026-11-10", "end": "2026-11-12", "page_size": 500, "store": store}
    context, answers = multiprocessing.get_context("fork"), []

    def in_a_child(scan):
        ours, theirs = context.Pipe()
        child = context.Process(target=_in_a_child, args=(scan, theirs))
        child.start()
        answers.append(ours.recv())
        child.join(60)

    def fork(progress):
        # The parent has the feed, and a request under way: the child waits, and gives up.
        if not answers:
            in_a_child(client.scan(**ask, deadline="0.2s"))

    table = client.scan(**ask, progress=fork).collect()
    in_a_child(client.scan(**ask))
    assert "StoreBusy" in answers[0]
    assert "deadline=" in answers[0]
    assert answers[1] == (len(table), 0)


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
            table = client.scan(**query, start=start, end=end, store=store).collect()
            assert rows_by_key(table) == rows_by_key(
                sandbox.expected(**query, start=start, end=end)
            )
            [one] = table.report.through
            assert len(one.from_store) + len(one.from_service) > 0
            assert (table.report.pages == 0) == (one.from_service == ())
            sandbox.clock.advance(f"{hours}h")
