"""`store.scan`: a LazyFrame of polars that reads no more of a store than a query needs."""

import sqlite3
import warnings
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import polars as pl
import pytest
import siteline
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.feeds import make_feed
from kit.ranges import NOW
from siteline import _lazy

IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]
SINCE, NOON = datetime(2026, 11, 15, tzinfo=UTC), datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR, MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)
stamp = pl.col("timestamp")
FAILURES = (siteline.SitelineError, pl.exceptions.ComputeError)
"""polars 1.32 raises its own exception, with the text of the read's."""


SERIES = [
    ("M1", "D1", "T1"),
    ("M1", "D1", "T2"),
    ("M1", None, "T1"),
    (None, None, "T3"),
    ("M2", "", "T1"),
    ("M2", "D2", None),
]
LENGTH = 5 * 288


def plant():
    """Points of five days of six series, some of them without some ids; some values are null."""
    times = [SINCE + n * HOUR / 12 for n in range(LENGTH)]
    values = [None if n % 50 == 0 else float(n * 7 % 101) for n in range(LENGTH)]
    points = pl.DataFrame({"timestamp": times, "value": values, "sample_count": 1})
    ids = pl.DataFrame(SERIES, schema=dict.fromkeys(IDS[2:], pl.String), orient="row")
    return ids.join(points, how="cross").with_columns(site_id=pl.lit("S1"), line_id=pl.lit("L2"))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("scan") / "plant.siteline"
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path) as store:
        sandbox.load(plant(), bucket="5m")
        sandbox.client().sync(make_feed(), store)
        yield store


@pytest.fixture(scope="module")
def lazy(store):
    return store.read("line-2").lazy()


@pytest.fixture(scope="module")
def frame(store):
    return store.read("line-2").to_polars()


@pytest.fixture
def blocks_read(store, tmp_path):
    """Returns a function that finds the blocks of a store that a query reads."""
    copy = tmp_path / "copy.siteline"
    store.backup(copy)

    with closing(sqlite3.connect(copy)) as connection:
        blocks = dict(connection.execute("SELECT id, bytes FROM contents"))

    def write(changed):
        # Closed before the store is opened: two SQLite libraries break each other's locks.
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute("PRAGMA synchronous = OFF")
            update = "UPDATE contents SET bytes = ?2 WHERE id = ?1"
            connection.executemany(update, changed.items())

    def fails(query):
        try:
            with siteline.Store(copy) as damaged:
                query(damaged)
        except Exception as error:
            return "copy.siteline" in str(error)
        return False

    def read_of(some, query):
        """Returns the blocks of `some` that the query reads. It fails on a damaged block."""
        write(dict.fromkeys(some, b""))
        is_one_read = fails(query)
        write({block: blocks[block] for block in some})
        if not is_one_read or len(some) == 1:
            return set(some) if is_one_read else set()
        half = len(some) // 2
        return read_of(some[:half], query) | read_of(some[half:], query)

    def read(query):
        with siteline.Store(copy) as intact:
            query(intact)
        return read_of(list(blocks), query)

    return read


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_the_whole_is_what_points_give(lazy, frame, engine):
    assert lazy.collect_schema() == frame.schema
    assert frame["machine_id"].null_count() == LENGTH - 1
    assert lazy.collect(engine=engine).equals(frame)
    for columns in (["value"], ["tag_guid", "timestamp", "site_id"]):
        assert lazy.select(columns).collect(engine=engine).equals(frame.select(columns))
    assert lazy.select(pl.len()).collect(engine=engine).item() == frame.height


@pytest.mark.parametrize("size", [1, 1_000])
def test_the_first_points_are_those_of_the_whole(lazy, frame, size):
    for engine in ("in-memory", "streaming"):
        assert lazy.head(size).collect(engine=engine).equals(frame.head(size))
        assert lazy.slice(2, size).collect(engine=engine).equals(frame.slice(2, size))
        some = lazy.filter(pl.col("value") > 50).head(size).collect(engine=engine)
        assert some.equals(frame.filter(pl.col("value") > 50).head(size))


def times():
    """Instants near the timestamps of points, as polars and people write them."""
    steps = st.integers(-2, 5 * 288 + 2).map(lambda n: SINCE + n * HOUR / 12)
    near = st.builds(
        lambda time, by: time + by * MICROSECOND, steps, st.sampled_from([0, 0, 1, -1])
    )
    return st.one_of(
        near,
        near.map(lambda time: time.astimezone(timezone(timedelta(hours=2)))),
        near.map(datetime.date),
        near.map(
            lambda time: pl.lit(time).cast(pl.Datetime("ns", "UTC")) + pl.duration(nanoseconds=1)
        ),
        near.map(lambda time: pl.lit(time).dt.cast_time_unit("ms")),
    )


def text(value):
    return pl.lit(value, dtype=pl.String)


def predicates(frame):
    """Conditions of one column, and combinations of them."""
    ids = st.sampled_from(IDS).flatmap(
        lambda name: st.tuples(
            st.just(pl.col(name)), st.sampled_from([*frame[name].unique(), "none", ""]).map(text)
        )
    )
    compare = st.sampled_from(["__ge__", "__gt__", "__le__", "__lt__", "__eq__", "__ne__"])
    closed = st.sampled_from(["both", "left", "right", "none"])
    leaf = st.one_of(
        st.builds(lambda name, time: getattr(stamp, name)(time), compare, times()),
        st.builds(
            lambda name, time: getattr(pl.lit(time), name)(stamp),
            compare,
            times().filter(lambda time: isinstance(time, datetime)),
        ),
        st.builds(lambda a, b, c: stamp.is_between(a, b, closed=c), times(), times(), closed),
        ids.map(lambda pair: pair[0] == pair[1]),
        ids.map(lambda pair: pair[0].eq_missing(pair[1])),
        ids.map(lambda pair: pair[0].is_in(["T2", "M1", "none"])),
        ids.map(lambda pair: pair[0].is_null() | (pair[0] > pair[1])),
        ids.map(lambda pair: pair[0].str.contains("1") & (pl.col("value") > 20)),
        st.just(stamp.dt.hour() < 6),
        st.just(pl.col("value").is_null()),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            st.builds(lambda a: ~a, inner),
        ),
        max_leaves=5,
    )


def test_whatever_the_filter_the_rows_are_those_of_the_whole(store, frame):
    lazy, generated = store.read("line-2", unread="keep").lazy(), predicates(frame)
    # Its repr would be the whole grammar.
    generated = st.deferred(lambda made=generated: made)

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(generated)
    def check(predicate):
        assert lazy.filter(predicate).collect().equals(frame.filter(predicate)), predicate

    check()


@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin"])
def test_the_blocks_that_points_would_read_are_read_and_no_others(blocks_read, tz):
    noon = NOON.astimezone(ZoneInfo(tz))

    def narrowed(store):
        return store.read("line-2", noon, noon + HOUR, tag="T2", tz=tz).to_polars()

    def scanned(store):
        lazy = store.read("line-2", tz=tz).lazy()
        lazy = lazy.filter(stamp >= noon, stamp < noon + HOUR, tag_guid="T2")
        assert lazy.collect().equals(narrowed(store))

    one = blocks_read(narrowed)
    assert len(one) == 1
    assert blocks_read(scanned) == one


def test_the_first_points_cost_one_block_and_what_cannot_be_costs_none(blocks_read):
    assert len(blocks_read(lambda store: store.read("line-2").lazy().head(3).collect())) == 1
    none = [{"tag_guid": "sped"}, {"machine_id": "M7", "site_id": "S1", "value": 3.0}]
    for query in none:
        assert not blocks_read(
            lambda store, query=query: store.read("line-2").lazy().filter(**query).collect()
        )


def test_duckdb_reads_the_same_blocks(blocks_read):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")

    def queried(store):
        lazy = store.read("line-2").lazy()
        sql = "SELECT count(*) FROM lazy WHERE timestamp >= ? AND timestamp < ? AND tag_guid = ?"
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'Europe/Berlin'")
            values = [NOON, NOON + HOUR, "T2"]
            assert connection.execute(sql, values).fetchall() == [(12,)]
            sql = (
                "SELECT * FROM lazy WHERE tag_guid IN ('T2', 'sped') AND timestamp"
                " BETWEEN '2026-11-16T12:00:00Z' AND '2026-11-16T12:55:00Z'"
            )
            assert len(connection.execute(sql).fetchall()) == 12
        assert lazy is not None

    one = blocks_read(lambda store: store.read("line-2", NOON, NOON + HOUR, tag="T2").to_polars())
    assert len(one) == 1
    assert blocks_read(queried) == one


def test_what_a_filter_asks_for_must_have_been_read(tmp_path):
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(tmp_path / "plant.siteline") as store:
        client = sandbox.client()
        client.sync(make_feed(), store, until="2026-11-16T00:00Z")
        lazy, end = store.read("line-2").lazy(), SINCE + 24 * HOUR
        read = lazy.filter(stamp >= SINCE, stamp < end)
        assert read.collect().equals(store.read("line-2", SINCE, end).to_polars())
        with pytest.raises(FAILURES, match="unread: 2026-11-14T23:00:00Z to 2026-11-15T00:00:00Z"):
            lazy.filter(stamp >= SINCE - HOUR).collect()
        with pytest.raises(FAILURES, match="this range has not been read"):
            lazy.filter(timestamp=NOON).collect()
        with pytest.warns(siteline.SitelineWarning, match="read up to 2026-11-16T00:00:00Z"):
            lazy.filter(stamp >= SINCE, stamp <= end).collect()
        keep = store.read("line-2", unread="keep").lazy().filter(stamp >= SINCE - HOUR)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert keep.collect().equals(read.collect())
        with pytest.raises(FAILURES, match="no feed"):
            store.read("line-3").lazy().collect()
        with pytest.raises(siteline.errors.QueryError, match="withdrawn="):
            store.read("line-2", withdrawn="some").lazy()
    with pytest.raises(FAILURES, match="closed"):
        lazy.collect()


def test_a_lazy_read_keeps_its_state_while_another_writes(sandbox, client, tmp_path):
    path = tmp_path / "plant.siteline"
    with siteline.Store(path) as store:
        client.sync(make_feed(), store)
        before = store.read("line-2", labels=False).to_polars()
        read = _lazy.Source(store.read("line-2")._handle, ("UTC", None, None))(
            None, pl.col("tag_guid").is_not_null(), None, 100
        )
        first = next(read)
        sandbox.clock.advance("1d")
        with siteline.Store(path) as other:
            client.sync(make_feed(), other)
        assert pl.concat([first, *read]).equals(before)
        assert store.read("line-2").lazy().collect().height > before.height
