"""The target DuckDB: the points of a `Store` in tables of a DuckDB database."""

import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest
import siteline
from kit.feeds import counts, load_series, make_feed, stored_points, withdraw_point
from kit.interpreter import run_script
from kit.target_rows import KEY, VALUES
from kit.threads import run_in_threads
from siteline.targets import DuckDB


@pytest.fixture
def path(tmp_path):
    return tmp_path / "plant.duckdb"


@pytest.fixture
def target(path):
    with DuckDB(path, history=True) as target:
        yield target


def points(database, feed="line-2", table="points", where="true"):
    """Returns the points of a feed in UTC, over its own connection."""
    given = isinstance(database, duckdb.DuckDBPyConnection)
    with database.cursor() if given else duckdb.connect(database) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        sql = f"SELECT {', '.join(KEY + VALUES)} FROM {table} WHERE feed = ? AND {where}"
        rows = connection.execute(sql, [feed]).fetchall()
    assert len({row[:6] for row in rows}) == len(rows), "no point twice"
    return {row[:6]: row[6:] for row in rows}


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
    with pytest.raises(siteline.errors.StoreError, match="points_states") as caught:
        client.sync(feed, Broken())
    assert isinstance(caught.value.__cause__, duckdb.CatalogException)
    assert (points(path), target.state("line-2")) == before
    assert counts(client.sync(feed, target)) == counts(client.sync(feed, store))
    assert points(path, where="withdrawn") == stored_points(store, withdrawn="only") != {}


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
    assert settled == stored_points(store, final=True) != {}


def test_a_file_is_of_one_process_at_a_time(path, target, sandbox):
    code = """if True:
        import duckdb, siteline, sys
        from siteline.targets import DuckDB
        target = DuckDB(sys.argv[1])
        try:
            target.state("line-2")
        except siteline.errors.StoreBusy as error:
            sys.exit(f"busy: {error}")
        print("open", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", code, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == "open\n"
        with pytest.raises(siteline.errors.StoreBusy, match="Another process has opened"):
            sandbox.client().sync(make_feed(), target)
        assert sandbox.stats.data_requests == 0
        process.communicate("")
    assert sandbox.client().sync(make_feed(), target).complete
    changed = target.changes("line-2")
    assert b"busy" in subprocess.run(command, capture_output=True, input=b"").stderr
    target.close()
    assert subprocess.run(command, capture_output=True, input=b"").stdout == b"open\n"
    del changed
    assert target.state("line-2") is not None, "opened again"


def test_duckdb_is_imported_when_it_is_used_and_pyarrow_is_not_needed():
    script = """
        import sys, siteline.targets
        assert "duckdb" not in sys.modules
        sys.modules.update(dict.fromkeys(("pyarrow", "pandas", "numpy", "polars")))
        target = siteline.targets.DuckDB(":memory:")
        with siteline.Sandbox(now="2026-11-20T00:00Z") as sandbox:
            feed = siteline.Feed("f", site="S1", interval="1h", start="2026-11-19T00:00Z")
            report = sandbox.client().sync(feed, target)
        changed = target.changes("f")
        assert len(changed) == report.inserted > 0
        for _ in range(2):
            assert "arrow_array_stream" in repr(changed.__arrow_c_stream__())
    """
    run_script(script)
