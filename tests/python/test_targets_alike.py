"""DuckDB, PostgreSQL and Delta store the same points as a `siteline.Store`."""

import itertools

import pytest
import siteline
from crash.plants import Plant
from kit.feeds import counts, make_feed
from kit.target_rows import Rows, hour, points_by_key, store_points, target_changes, target_points
from kit.threads import run_in_threads
from target_kills.places import DRIVERS, new_place

PLANT = Plant("small", ("L1", "L2"), 150, "90m", "1d", range(1), (), series=5)
FOLDERS = itertools.count()


@pytest.fixture(params=DRIVERS)
def place(request, tmp_path):
    """A new place for a target of each kind."""
    pytest.importorskip(DRIVERS[request.param])
    needs_server = request.param == "postgres"
    server = request.getfixturevalue("postgres_server") if needs_server else None
    folder = tmp_path / f"alike{next(FOLDERS)}"
    folder.mkdir()
    return new_place(request.param, folder, server)


@pytest.mark.parametrize("batch", [3, pytest.param("chain", marks=pytest.mark.campaign)])
def test_it_has_the_points_changes_and_counts_of_a_store(place, store, batch):
    feeds, total = [siteline.Feed(**one) for one in PLANT.feeds()], [0, 0, 0, 0]
    before = {feed.name: ({}, 0) for feed in feeds}
    with PLANT.start(3) as sandbox, place.open() as target:
        target.batch = batch
        for hours in (30, 9, 20, 31):
            sandbox.clock.advance(f"{hours}h")
            report = sandbox.client().sync(feeds, target)
            expected = sandbox.client().sync(feeds, store)
            total = [one + more for one, more in zip(total, counts(report), strict=True)]
            for name, (known, since) in before.items():
                assert counts(report[name]) == counts(expected[name])
                now = target_points(target, name)
                assert now == store_points(store, name)
                changes = target_changes(target, name, since)
                assert changes == {key: (known.get(key), now[key]) for key in changes}
                assert changes.keys() >= {key for key, row in now.items() if known.get(key) != row}
                settled = store.read(name, final=True, withdrawn="drop", unread="keep")
                found = points_by_key(place.settled(target, name))
                assert found == points_by_key(settled) != {}
                through = store.coverage(name).settled_through
                assert target.coverage(name).settled_through == through
                before[name] = now, report[name].sequence
    assert min(total) > 0, "late, revised, unchanged and withdrawn points"


@pytest.mark.parametrize("place", ["duckdb", "postgres"], indirect=True)
def test_a_page_is_merged_by_key_and_a_chain_withdraws(place, sandbox):
    feed = make_feed(start="2026-11-19T00:00Z", page_size=10_000)
    [(_, states)] = sandbox.client().sync_pages([feed], {})
    outside = [("A", -99, None), ("A", 24, 2.0)]
    rows = [("T", 1, 5.0), ("T", 2, None), (None, 1, 1.0), ("T", 1, 6.0)]
    with place.open() as target, target.lock("f"):

        def apply(*arguments, **options):
            page = Rows(*arguments, **options) if arguments else None
            return target.apply("f", page, states["line-2"])

        def found():
            points = target_points(target, "f").items()
            return {(key[4], key[5]): (row[0], flag) for key, (row, flag) in points}

        def known(*flags):
            inside = {("T", hour(1)): 6.0, ("T", hour(2)): None, (None, hour(1)): 1.0}
            values = {("A", hour(at)): (value, False) for _, at, value in outside}
            return values | dict(zip(inside, zip(inside.values(), flags, strict=True), strict=True))

        assert apply([*outside, *rows], 1) == (5, 0, 1, 0)
        assert apply([*outside, *rows], 2) == (0, 0, 6, 0)
        assert target_changes(target, "f", 1) == {}, "the same points change nothing"
        assert found() == known(False, False, False)
        assert apply([rows[1], rows[3]], 3, is_last=False) == (0, 0, 2, 0)
        assert apply([], 4, first=3) == (0, 0, 0, 1)
        assert found() == known(False, False, True), "missing in the two pages of a chain"
        assert apply([rows[2]], 5) == (0, 1, 0, 2)
        assert apply([rows[2]], 6) == (0, 0, 1, 0), "withdrawn once"
        assert apply() == (0, 0, 0, 0)
        assert found() == known(True, True, False)
        changes = target_changes(target, "f", 4)
    assert {(key[4], key[5]): (old[1], new[1]) for key, (old, new) in changes.items()} == {
        ("T", hour(1)): (False, True),
        ("T", hour(2)): (False, True),
        (None, hour(1)): (True, False),
    }


def test_names_are_quoted_and_an_offset_is_of_a_consumer_and_a_feed(place, sandbox):
    feed, consumer = make_feed('it\'s "$feed"; DROP TABLE points -- %', interval="1h"), "o'\"hara"
    with place.open() as target:
        assert target.state(feed.name) is None
        assert sandbox.client().plan(feed, target).pages is None
        report = sandbox.client().sync(feed, target)
        assert len(target_points(target, feed.name)) == report.inserted > 0
        assert target.coverage(feed.name).feed == target.lateness(feed.name).feed == feed
        with target.lock(feed.name):
            for number in (7, report[feed.name].sequence):
                target.set_offset(consumer, feed.name, number)
                assert target.offset(consumer, feed.name) == number
        assert target.offset(consumer, "line-1") == target.offset("other", feed.name) == 0


def test_a_feed_has_one_sync_at_a_time(place, sandbox):
    feeds = [make_feed(f"line-{n}", line=f"L{n}", interval="1h") for n in (1, 2)]
    client = sandbox.client()
    with place.open() as target, place.open() as other:
        with target.lock("line-2"):
            for one in (target, other):
                with pytest.raises(siteline.errors.StoreBusy, match="line-2"):
                    client.sync(feeds[1], one)
            assert sandbox.stats.token_requests == 0
            assert client.sync(feeds[0], target).complete
        assert client.sync(feeds[1], other).complete


def test_threads_share_a_target(place, sandbox):
    left = [make_feed(f"feed-{number}", interval="1h") for number in range(3)]
    names = [feed.name for feed in left]
    with place.open() as target:
        run_in_threads(3, lambda: sandbox.client().sync(left.pop(), target))
        first, *others = (target_points(target, name) for name in names)
    assert first != {}
    assert all(one == first for one in others)
