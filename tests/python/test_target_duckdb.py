"""The target DuckDB: what a `Store` keeps, in tables of a DuckDB database."""

import dataclasses
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest
import siteline
from crash.plants import NARROW
from kit.feeds import load_series, make_feed, rows_by_key, stored_points, withdraw_point
from kit.threads import run_in_threads
from siteline.targets import DuckDB

KEY = ["site_id", "line_id", "machine_id", "device_id", "tag_guid", "timestamp"]
VALUES = ["value", "minimum", "maximum", "sample_count"]
PLANT = dataclasses.replace(NARROW, lines=("L1", "L2"), series=2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "plant.duckdb"


@pytest.fixture
def target(path):
    with DuckDB(path, history=True) as target:
        yield target


def points(database, feed="line-2", table="points", where="true"):
    """The points of a feed, in UTC, by a connection of its own."""
    given = isinstance(database, duckdb.DuckDBPyConnection)
    with database.cursor() if given else duckdb.connect(database) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        sql = f"SELECT {', '.join(KEY + VALUES)} FROM {table} WHERE feed = ? AND {where}"
        rows = connection.execute(sql, [feed]).fetchall()
    assert len({row[:6] for row in rows}) == len(rows), "no point twice"
    return {row[:6]: row[6:] for row in rows}


def changes(target, feed="line-2", since=0, **options):
    """The rows that changed, by key."""
    rows = pa.table(target.changes(feed, since, **options)).to_pylist()
    found = {tuple(row.pop(name) for name in KEY): row for row in rows}
    assert len(found) == len(rows), "no point twice"
    return found


def counts(report):
    return report.inserted, report.revised, report.unchanged, report.flagged


@pytest.mark.parametrize("page_size", [90, 10_000])
def test_points_flags_and_counts_are_those_of_a_store_at_every_step(path, target, store, page_size):
    feeds, reports = [siteline.Feed(**one | {"page_size": page_size}) for one in PLANT.feeds()], []
    with PLANT.start(seed=5) as sandbox:
        for _ in range(5):
            sandbox.clock.advance("17h")
            expected, report = (sandbox.client().sync(feeds, one) for one in (store, target))
            for name in expected.feeds:
                assert counts(report[name]) == counts(expected[name])
                assert points(path, name) == stored_points(store, name, unread="keep")
                flagged = stored_points(store, name, unread="keep", flagged="only")
                assert points(path, name, where="flagged") == flagged
                settled = stored_points(store, name, settled_only=True, flagged="drop")
                assert points(path, name, "points_settled") == settled
                for before in reports:
                    known = rows_by_key(store.changes(name, before, unread="keep"))
                    found = changes(target, name, before[name].sequence)
                    assert {key: row[:4] for key, row in known.items()} == {
                        key: tuple(row[one] for one in VALUES) for key, row in found.items()
                    }
            reports.append(expected)
    assert settled
    assert all(map(sum, zip(*map(counts, reports), strict=True))), "late, revised, withdrawn"
    assert (reports[0].pages > 8) == (page_size == 90)


def test_changes_have_old_values_and_a_history_that_was_begun_goes_on(path, target):
    feed, later = siteline.Feed(**PLANT.feeds()[0]), DuckDB(path)
    names, known, kinds = [*VALUES, "flagged"], {}, set()
    with PLANT.start(seed=6) as sandbox, later:
        for writer in (target, target, later, target, later):
            sandbox.clock.advance("17h")
            sequence = sandbox.client().sync(feed, writer)[feed.name].sequence
            now = changes(target, feed.name)
            for since, then in known.items():
                changed = changes(target, feed.name, since, old=True)
                assert now == then | {
                    key: {name: row[name] for name in (*names, "sequence")}
                    for key, row in changed.items()
                }
                for key, row in changed.items():
                    old = {name: row[f"old_{name}"] for name in names}
                    assert old.items() <= then.get(key, dict.fromkeys(names)).items()
                    kinds.add((key in then, old["flagged"], row["flagged"]))
            known[sequence] = now
        assert kinds >= {(False, None, False), (True, False, False), (True, False, True)}
        with pytest.raises(siteline.ConfigError, match="history=True"):
            later.changes(feed.name, old=True)


NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TEXT = pa.dictionary(pa.int32(), pa.string())
TYPES = [*[TEXT] * 5, pa.timestamp("us", "UTC"), *[pa.float64()] * 3, pa.int64()]
SCHEMA = pa.schema(list(zip(KEY + VALUES, TYPES, strict=True)))


class Rows:
    """A page of rows (tag, time after noon, value), in batches of one row, without a device."""

    def __init__(self, sequence, *rows, first=None, is_last=True):
        self.sequence, self.first_sequence, self.is_last = sequence, first or sequence, is_last
        self.is_whole = is_last and first is None
        self.query = SimpleNamespace(start=NOON, end=NOON + timedelta(hours=1))
        rows = [
            {"tag_guid": tag, "timestamp": NOON + at, "value": value} for tag, at, value in rows
        ]
        table = pa.Table.from_pylist(rows, SCHEMA)
        self._table = pa.Table.from_batches(table.to_batches(max_chunksize=1), SCHEMA)

    def __len__(self):
        return len(self._table)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def apply(sandbox, target):
    """Apply a page of rows of the feed "f"; return the counts."""
    sandbox.client().sync(make_feed(), target)
    state = target.state("line-2")
    return lambda *page, feed="f", **chain: target.apply(feed, Rows(*page, **chain), state)


def values(path, column="value"):
    with duckdb.connect(path) as connection:
        sql = f"SELECT tag_guid, {column} FROM points WHERE feed = 'f' ORDER BY ALL"
        return connection.execute(sql).fetchall()


def test_of_a_point_that_a_page_has_twice_the_later_row_counts(path, apply):
    now = timedelta(0)
    assert apply(1, ("a", now, 1), ("b", now, 1), ("a", now, 2)) == (2, 0, 1, 0)
    assert values(path) == [("a", 2), ("b", 1)]
    assert apply(2, ("a", now, 7), ("b", now, 5), ("a", now, 2)) == (0, 1, 2, 0)
    assert values(path) == [("a", 2), ("b", 5)]
    assert values(path, "sequence") == [("a", 1), ("b", 2)]


def test_null_ids_and_values_are_equal_and_points_outside_the_range_are_found(path, apply):
    early, late = ("a", timedelta(days=-9), None), (None, timedelta(days=9), 1)
    assert apply(1, early, late) == (2, 0, 0, 0)
    assert apply(2, early, late) == (0, 0, 2, 0)
    assert apply(3, early, (None, timedelta(days=9), None)) == (0, 1, 1, 0)
    others = ("b", timedelta(days=-99), 1), ("b", timedelta(days=99), 1)
    assert apply(4, *others) == (2, 0, 0, 0), "what lies outside is not flagged"
    assert values(path)[0] == ("a", None)


def test_the_same_points_of_another_feed_stay_apart(path, target, apply):
    for number, feed in enumerate(("f", "g", "f", "g"), 1):
        apply(number, ("a", timedelta(0), number), feed=feed)
    assert values(path) == [("a", 3)]
    for feed, since in (("f", 1), ("g", 2)):
        (row,) = changes(target, feed, since, old=True).values()
        assert (row["old_value"], row["value"]) == (since, since + 2)


def test_only_a_page_that_is_not_its_whole_chain_notes_what_it_has_seen(path, apply):
    one, two = ("a", timedelta(0), 1), ("b", timedelta(minutes=59), 1)
    end = ("c", timedelta(hours=1), 1)
    assert apply(1, one, two, end) == (3, 0, 0, 0)
    assert apply(2, one, two) == (0, 0, 2, 0)
    assert values(path, "seen") == [("a", 1), ("b", 1), ("c", 1)]
    assert apply(3, one, first=3, is_last=False) == (0, 0, 1, 0)
    assert apply(4, first=3) == (0, 0, 0, 1)
    assert values(path, "(seen, sequence, flagged)") == [
        ("a", (3, 1, False)),
        ("b", (1, 4, True)),
        ("c", (1, 1, False)),
    ]
    assert apply(5, one) == (0, 0, 1, 0), "flagged once"
    assert apply(6, one, two) == (0, 1, 1, 0)
    assert ("b", (6, 6, False)) in values(path, "(seen, sequence, flagged)")


def test_an_exception_within_apply_leaves_everything_as_it_was(path, target, sandbox, store):
    class Broken:
        """Fails after the points were written, before the state is."""

        lock, state = target.lock, target.state

        def apply(self, feed, page, state):
            with duckdb.connect(path) as connection:
                connection.execute("ALTER TABLE points_states RENAME TO away")
                try:
                    return target.apply(feed, page, state)
                finally:
                    connection.execute("ALTER TABLE away RENAME TO points_states")

    load_series(sandbox)
    client, feed = sandbox.client(), make_feed()
    client.sync(feed, store)
    client.sync(feed, target)
    withdraw_point(sandbox)
    sandbox.clock.advance("1d")
    before = points(path), target.state("line-2")
    with pytest.raises(duckdb.CatalogException, match="points_states"):
        client.sync(feed, Broken())
    assert (points(path), target.state("line-2")) == before
    assert counts(client.sync(feed, target)) == counts(client.sync(feed, store))
    assert points(path, where="flagged") == stored_points(store, flagged="only") != {}


def test_a_table_of_others_is_refused_before_any_request(path, sandbox):
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE points (feed VARCHAR, reading DOUBLE)")
    client, target = sandbox.client(), DuckDB(path)
    with pytest.raises(siteline.ConfigError, match="points has no column site_id"):
        client.sync(make_feed(), target)
    with duckdb.connect(path) as connection:
        assert connection.execute("SHOW TABLES").fetchall() == [("points",)]
    target.close()
    with duckdb.connect(path, read_only=True) as connection:
        assert DuckDB(connection).state("line-2") is None
        with pytest.raises(siteline.StoreError, match="read-only") as caught:
            client.sync(make_feed(), DuckDB(connection, table="order"))
    assert isinstance(caught.value.__cause__, duckdb.InvalidInputException)
    assert sandbox.stats["data_requests"] == 0
    for name in ("", "a.b", 'a"b', "a b"):
        with pytest.raises(siteline.QueryError, match="plain name"):
            DuckDB(path, table=name)


def test_names_are_quoted_and_an_offset_is_of_a_consumer_and_a_feed(path, sandbox):
    feed, consumer = make_feed('it\'s "$feed"; DROP TABLE points --'), "o'\"hara"
    with DuckDB(path, table="order") as target:
        assert target.offset(consumer, feed.name) == 0
        report = sandbox.client().sync(feed, target)
        found = points(path, feed.name, '"order"')
        assert len(found) == len(changes(target, feed.name)) == report.inserted > 0
        assert target.coverage(feed.name).feed == feed
        assert target.lateness(feed.name).feed == feed
        assert 0 < len(points(path, feed.name, "order_settled")) < len(found)
        for number in (7, report[feed.name].sequence):
            target.set_offset(consumer, feed.name, number)
            assert target.offset(consumer, feed.name) == number
        assert target.offset(consumer, "line-1") == target.offset("other", feed.name) == 0


def test_no_table_has_an_index_and_an_offset_is_one_row(path, sandbox):
    with DuckDB(path) as target:
        sandbox.client().sync(make_feed(), target)
        run_in_threads(4, lambda: target.set_offset("consumer", "line-2", 7))
        assert target.offset("consumer", "line-2") == 7
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM points_offsets").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM points_states").fetchall() == [(1,)]
        for catalog in ("duckdb_indexes()", "duckdb_constraints()"):
            assert connection.execute(f"FROM {catalog}").fetchall() == []


def test_a_connection_stays_open_with_its_transaction_and_its_settings(tmp_path, sandbox, store):
    client, feed = sandbox.client(), make_feed()
    client.sync(feed, store)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path / 'other.duckdb'}' AS \"o'ther\"")
        connection.execute("USE \"o'ther\"; SET TimeZone = 'America/New_York'")
        connection.execute("CREATE TABLE mine (a INT)")
        with DuckDB(connection) as target:
            connection.execute("BEGIN; INSERT INTO mine VALUES (1)")
            client.sync(feed, target)
            assert connection.execute("SELECT * FROM mine").fetchall() == [(1,)]
            connection.execute("ROLLBACK")
            assert pa.table(target.changes("line-2")).schema.field("timestamp").type.tz == "UTC"
        assert connection.execute("SELECT * FROM mine").fetchall() == []
        assert connection.execute("SELECT current_setting('TimeZone')").fetchall() == [
            ("America/New_York",)
        ]
    assert points(tmp_path / "other.duckdb") == stored_points(store, unread="keep")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path / 'other.duckdb'}' AS moved")
        settled = points(connection, table="moved.points_settled")
    assert settled == stored_points(store, settled_only=True) != {}


def test_threads_share_a_target_and_a_feed_has_one_sync_at_a_time(path, target, sandbox, store):
    feeds = [make_feed(), make_feed("line-1", line="L1")]
    sandbox.client().sync(feeds, store)
    left = list(feeds)
    run_in_threads(2, lambda: sandbox.client().sync(left.pop(), target))
    for feed in feeds:
        assert points(path, feed.name) == stored_points(store, feed.name, unread="keep")
    requests = sandbox.stats["data_requests"]
    sandbox.clock.advance("1h")
    with duckdb.connect(path) as connection, DuckDB(connection).lock("line-2"):
        with pytest.raises(siteline.StoreBusy, match="line-2"):
            sandbox.client().sync(feeds[0], target)
        assert sandbox.stats["data_requests"] == requests
        assert sandbox.client().sync(feeds[1], target).complete
    assert sandbox.client().sync(feeds[0], target).complete


def test_a_file_is_of_one_process_at_a_time(path, target, sandbox):
    code = """if True:
        import duckdb, siteline, sys
        from siteline.targets import DuckDB
        target = DuckDB(sys.argv[1])
        try:
            target.state("line-2")
        except siteline.StoreBusy as error:
            sys.exit(f"busy: {error}")
        print("open", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", code, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == "open\n"
        with pytest.raises(siteline.StoreBusy, match="Another process has opened"):
            sandbox.client().sync(make_feed(), target)
        assert sandbox.stats["data_requests"] == 0
        process.communicate("")
    assert sandbox.client().sync(make_feed(), target).complete
    changed = target.changes("line-2")
    assert b"busy" in subprocess.run(command, capture_output=True, input=b"").stderr
    target.close()
    assert subprocess.run(command, capture_output=True, input=b"").stdout == b"open\n"
    del changed
    assert target.state("line-2") is not None, "opened again"


def test_duckdb_is_imported_when_it_is_used_and_pyarrow_is_not_needed():
    code = """if True:
        import sys, siteline.targets
        assert "duckdb" not in sys.modules
        sys.modules.update(dict.fromkeys(("pyarrow", "pandas", "numpy", "polars")))
        target = siteline.targets.DuckDB(":memory:")
        with siteline.Sandbox(now="2026-11-20T00:00Z") as sandbox:
            feed = siteline.Feed("f", site="S1", interval="1h", since="2026-11-19T00:00Z")
            report = sandbox.client().sync(feed, target)
        changed = target.changes("f")
        assert len(changed) == report.inserted > 0
        for _ in range(2):
            assert "arrow_array_stream" in repr(changed.__arrow_c_stream__())
        sys.modules["duckdb"] = None
        siteline.targets.DuckDB("plant.duckdb")
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: siteline.targets.DuckDB needs duckdb" in run.stderr
    assert "pip install 'siteline[duckdb]'" in run.stderr
