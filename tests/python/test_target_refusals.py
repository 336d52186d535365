"""Databases that reject a sync before any request, and Ctrl-C during a driver call."""

import asyncio
import errno
import os
import pickle
import random
import signal
import string
import threading

import pyarrow as pa
import pytest
import siteline
from kit.feeds import load_tag, make_feed, stored_points
from kit.waiting import wait_until
from siteline.targets import DuckDB, _duckdb_sql, _refusals

duckdb = pytest.importorskip("duckdb")

FEEDS = [
    make_feed(f"line-{n}", line=f"L{n}", start="2026-11-18T00:00Z", settle_lag="0s", audit_pages=0)
    for n in (1, 2)
]


@pytest.fixture(scope="module")
def _reader(postgres_server):
    """A role that owns nothing."""
    postgres_server.rows("CREATE ROLE reader LOGIN")


def interrupt_when(is_waiting):
    """Sends Ctrl-C to this process when a condition is true."""

    def run():
        wait_until(is_waiting)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=run, daemon=True).start()


def waits(tables):
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    return lambda: tables.rows(sql) != [(0,)]


def test_an_id_with_nul_leaves_the_other_feeds_alone(sandbox, tables):
    load_tag(sandbox, "T\0\x1b" + "x" * 999)
    load_tag(sandbox, "T1", line="L2")
    with pytest.raises(siteline.errors.StoreError, match=r"PostgreSQL .*has a NUL") as caught:
        sandbox.client().sync(FEEDS, tables.target())
    text = str(caught.value)
    assert r"tag_guid 'T\x00\x1bxxx" in text
    assert text.isprintable() or "\x1b" not in text
    assert len(text) < 1_000
    assert "is skipped until" in caught.value.hint
    assert str(pickle.loads(pickle.dumps(caught.value))) == text
    spent = sandbox.stats.data_requests
    report = sandbox.client().sync(FEEDS, tables.target())
    assert report["line-1"].skipped
    assert (report.requests, sandbox.stats.data_requests) == (0, spent)
    assert len(tables.points("line-2")) == 576


@pytest.mark.parametrize(
    "statement",
    [
        "REVOKE UPDATE ON %_rows FROM reader",
        "REVOKE INSERT ON %_history_rows FROM reader",
        "ALTER ROLE reader SET default_transaction_read_only = on",
        "DROP TABLE %_states CASCADE",
        "ALTER TABLE %_rows DROP COLUMN minimum CASCADE",
        "DROP VIEW % CASCADE; ALTER TABLE %_rows ALTER value TYPE int4",
        "ALTER TABLE %_states ADD x int NOT NULL DEFAULT 1; "
        "ALTER TABLE %_states ALTER x DROP DEFAULT",
    ],
)
@pytest.mark.usefixtures("_reader")
def test_postgres_refuses_before_any_request(sandbox, tables, statement):
    with tables.target().lock("x"):
        pass
    tables.rows("GRANT ALL ON ALL TABLES IN SCHEMA public TO reader")
    reader = tables.target(tables.uri.replace("postgres:@", "reader:@"))
    sandbox.client().sync(FEEDS, reader, until="2026-11-19")
    spent = sandbox.stats.data_requests
    for one in statement.split(";"):
        tables.rows(one)
    try:
        with pytest.raises((siteline.errors.StoreError, siteline.errors.ConfigError)) as caught:
            sandbox.client().sync(FEEDS, reader)
    finally:
        tables.rows("ALTER ROLE reader RESET ALL")
    assert sandbox.stats.data_requests == spent
    if isinstance(caught.value, siteline.errors.StoreError):
        assert caught.value.__cause__.sqlstate[:2] in ("42", "25")
    assert "made_by" not in str(caught.value)


@pytest.mark.parametrize("kind", ["Postgres", "DuckDB", "Delta"])
def test_a_table_of_others_is_refused_before_any_request(request, sandbox, tmp_path, kind):
    if kind == "Postgres":
        tables = request.getfixturevalue("tables")
        tables.rows("CREATE TABLE % (id int, feed text)")
        target = tables.target()
    elif kind == "DuckDB":
        with duckdb.connect(tmp_path / "other") as connection:
            connection.execute("CREATE TABLE points (feed VARCHAR, reading DOUBLE)")
        target = DuckDB(tmp_path / "other")
        with pytest.raises(siteline.errors.QueryError, match="plain name"):
            DuckDB(tmp_path / "other", table="a.b")
    else:
        deltalake = pytest.importorskip("deltalake")
        deltalake.write_deltalake(tmp_path / "other", pa.table({"x": [1]}))
        target = siteline.targets.Delta(tmp_path / "other")
    with (
        target,
        pytest.raises(
            siteline.errors.ConfigError,
            match=r"has no column feed|no column site_id|no table of siteline",
        ),
    ):
        sandbox.client().sync(FEEDS, target)
    assert sandbox.stats.token_requests == 0


def test_other_columns_and_a_long_id_change_nothing(sandbox, store, tables):
    target = tables.target()
    with target.lock("x"):
        pass
    tables.rows("ALTER TABLE %_rows DROP COLUMN minimum CASCADE")
    tables.rows("ALTER TABLE %_rows ADD COLUMN minimum float8")
    tables.rows("ALTER TABLE %_rows ADD COLUMN note text")
    letters = random.Random(1).choices(string.ascii_letters + string.digits, k=9_000)
    load_tag(sandbox, "".join(letters))
    for one in (store, target):
        assert sandbox.client().sync(FEEDS[0], one).complete
    rows = target.changes("line-1").to_pylist()
    expected = stored_points(store, "line-1")
    assert {tuple(row.values())[:6]: tuple(row.values())[6:10] for row in rows} == expected


@pytest.mark.parametrize("is_async", [False, True])
def test_ctrl_c_while_a_table_is_locked_is_ctrl_c(sandbox, tables, is_async):
    load_tag(sandbox, "T1")
    target = tables.target()
    with target.lock("x"):
        pass

    async def main():
        async with sandbox.async_client() as client:
            await client.sync(FEEDS, target)

    run = (
        (lambda: asyncio.run(main()))
        if is_async
        else (lambda: sandbox.client().sync(FEEDS, target))
    )
    from kit.postgres import dbapi

    with dbapi.connect(tables.uri) as connection, connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {tables.name}_rows IN ACCESS EXCLUSIVE MODE").fetchall()
        interrupt_when(waits(tables))
        with pytest.raises(KeyboardInterrupt):
            run()
    assert sandbox.stats.data_requests == 0
    assert sandbox.client().sync(FEEDS, target).complete


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE points DROP COLUMN minimum",
        "ALTER TABLE points_states DROP COLUMN settled",
        "ALTER TABLE points ALTER timestamp TYPE TIMESTAMP",
        "DROP TABLE points_states; CREATE TABLE points_states (feed VARCHAR, state BLOB, "
        "settled TIMESTAMPTZ[][], CHECK (feed <> 'line-1'))",
        "ALTER TABLE points_states ADD COLUMN x INTEGER; UPDATE points_states SET x = 1; "
        "ALTER TABLE points_states ALTER x SET NOT NULL",
    ],
)
def test_duckdb_refuses_before_any_request(sandbox, tmp_path, statement):
    path = tmp_path / "plant.duckdb"
    with DuckDB(path) as target:
        sandbox.client().sync(FEEDS, target, until="2026-11-19")
    spent = sandbox.stats.data_requests
    with duckdb.connect(path) as connection:
        for view in ("points_settled", "points_settled_ranges"):
            connection.execute(f"DROP VIEW {view}")
        connection.execute(statement)
    with (
        DuckDB(path) as target,
        pytest.raises((siteline.errors.StoreError, siteline.errors.ConfigError)),
    ):
        sandbox.client().sync(FEEDS, target)
    assert sandbox.stats.data_requests == spent


def test_ctrl_c_during_a_statement_of_duckdb_is_ctrl_c(sandbox, tmp_path, monkeypatch):
    begun, target = threading.Event(), DuckDB(tmp_path / "plant.duckdb")
    named = target._named
    monkeypatch.setattr(target, "_named", lambda one: begun.set() or named(one))
    slow = "SELECT count(*) FROM range(1000000000000) r WHERE r.range % 7 = 8"
    monkeypatch.setattr(_duckdb_sql, "POINTS", slow)
    interrupt_when(begun.is_set)
    with pytest.raises(KeyboardInterrupt):
        sandbox.client().sync(FEEDS, target)
    monkeypatch.undo()
    assert sandbox.stats.data_requests == 0
    assert sandbox.client().sync(FEEDS, target).complete


@pytest.mark.parametrize("has_begun", [False, True])
def test_ctrl_c_while_a_call_begins_leaves_none(monkeypatch, has_begun):
    cancelled, running, start = threading.Event(), [], threading.Thread.start

    def interrupted(thread):
        if has_begun:
            start(thread)
        raise KeyboardInterrupt

    def call():
        running.append(True)
        cancelled.wait(60)
        running.clear()

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _refusals.interruptible(call, cancelled.set)
    assert not running


@pytest.mark.parametrize("what", ["column", "type"])
def test_delta_refuses_other_columns_before_any_request(sandbox, tmp_path, what):
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "lake"
    target = siteline.targets.Delta(path)
    sandbox.client().sync(FEEDS, target, until="2026-11-19")
    spent = sandbox.stats.data_requests
    rows = deltalake.DeltaTable(path).to_pyarrow_table()
    number = rows.schema.get_field_index("value")
    smaller = rows.set_column(number, "value", rows["value"].cast(pa.float32()))
    changed = rows.drop_columns(["value"]) if what == "column" else smaller
    options = {"mode": "overwrite", "schema_mode": "overwrite", "partition_by": ["feed", "day"]}
    deltalake.write_deltalake(path, changed, **options)
    with pytest.raises(siteline.errors.ConfigError, match="value"):
        sandbox.client().sync(FEEDS, target)
    assert sandbox.stats.data_requests == spent


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.EROFS, siteline.errors.StoreError), (errno.ENOSPC, siteline.errors.StoreFull)],
)
def test_delta_tries_its_folder_before_any_request(sandbox, tmp_path, monkeypatch, number, kind):
    pytest.importorskip("deltalake")
    from siteline.targets import _lake

    def fail(**options):
        raise OSError(number, os.strerror(number))

    target = siteline.targets.Delta(tmp_path / "lake")
    sandbox.client().sync(FEEDS, target, until="2026-11-19")
    spent = sandbox.stats.data_requests
    monkeypatch.setattr(_lake.tempfile, "TemporaryFile", fail)
    with pytest.raises(siteline.errors.StoreError) as caught:
        sandbox.client().sync(FEEDS, target)
    assert type(caught.value) is kind
    assert isinstance(caught.value.__cause__, OSError)
    assert sandbox.stats.data_requests == spent


@pytest.mark.parametrize("name", ["DuckDB", "Delta"])
def test_a_disk_that_fills_up_is_a_store_full(sandbox, tmp_path, monkeypatch, name):
    pytest.importorskip("deltalake")
    target = getattr(siteline.targets, name)(tmp_path / "target")
    error = duckdb.IOException if name == "DuckDB" else OSError

    def fail(*page):
        raise error("Could not write to the file: No space left on device (os error 28)")

    monkeypatch.setattr(target, "_apply", fail)
    with pytest.raises(siteline.errors.StoreFull, match=name) as caught:
        sandbox.client().sync(FEEDS, target)
    assert isinstance(caught.value.__cause__, error)
    monkeypatch.undo()
    assert sandbox.client().sync(FEEDS, target).complete


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("/a/b?c", "/a/b?c"),
        ("s3://key:secret@bucket/a?token=secret", "s3://bucket/a"),
        ("md:plant?motherduck_token=secret", "md:plant"),
    ],
)
def test_a_place_is_shown_without_its_secrets(place, shown):
    assert _refusals.shown(place) == shown
