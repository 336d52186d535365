"""What the driver keeps of a session, and the sources that it makes: without an engine."""

import pickle
from types import SimpleNamespace

import pytest
import siteline

pytest.importorskip("pyspark.sql.datasource")

import siteline.spark
from kit import spark as engine
from siteline.spark import _driver
from siteline.spark._access import Access
from siteline.spark._batches import _schema
from siteline.spark._reading import Registered
from siteline.spark._source import SitelineDataSource

pytestmark = pytest.mark.once
HOURLY = {"site": "S1", "interval": "1h", "page_size": 40}
WEEK = {**HOURLY, "start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"}
EMPTY = {**HOURLY, "line": "none", "start": "2026-01-01T00:00:00Z", "end": "2026-06-01T00:00:00Z"}


@pytest.fixture
def client(sandbox, monkeypatch):
    return engine.client_by_variables(sandbox, monkeypatch)


@pytest.fixture
def agent(client):
    with siteline.Agent(client) as agent:
        yield agent


def session(name):
    """What the driver asks of a session of Spark."""
    return SimpleNamespace(
        dataSource=SimpleNamespace(register=lambda source: None),
        sparkContext=SimpleNamespace(master="local[2]"),
        _jsparkSession=SimpleNamespace(sessionUUID=lambda: name),
    )


def test_a_session_is_known_by_its_name_and_not_by_its_object(client, agent):
    siteline.spark.register(session("first"), client, agent=agent)
    known = _driver.registered(session("first"))
    assert list(known.accesses) == [None]
    with pytest.raises(siteline.errors.ConfigError, match="is not registered"):
        _driver.registered(session("second"))


def test_a_plan_that_finds_nothing_is_not_kept_and_one_that_does_is(sandbox, client, agent):
    spark = session("plans")
    siteline.spark.register(spark, client, agent=agent)
    known = _driver.registered(spark)
    for options, kept in ((EMPTY, 0), (WEEK, 1), (WEEK, 1), ({**WEEK, "end": "2026-11-03"}, 2)):
        siteline.spark.plan(spark, **options)
        assert len(known.densities) == kept
    assert sandbox.stats.data_requests == 3 + 1 + 1


@pytest.mark.parametrize(
    ("start", "interval"),
    [("2026-11-20T00:00:00Z", "1d"), ("2026-11-19T23:00:00Z", "1h"), ("2026-12-01", "1h")],
)
def test_a_stream_may_begin_with_a_bucket_that_is_not_over_and_a_read_may_not(
    sandbox, client, agent, start, interval
):
    class Source(SitelineDataSource):
        registered = Registered({None: Access.of(client, agent)})

    source = Source({"site": "S1", "start": start, "interval": interval, "pagesize": "40"})
    kept = pickle.loads(pickle.dumps(source._fixed))
    assert isinstance(kept, siteline.errors.QueryError)
    with pytest.raises(siteline.errors.QueryError, match="The range is empty"):
        source.reader(_schema(True))
    assert sandbox.stats.data_requests == 0
    pytest.importorskip("pyspark.sql.streaming.datasource")
    stream = source.streamReader(_schema(True))
    begin = stream.initialOffset()
    assert stream.latestOffset(begin, None) == begin
    sandbox.clock.advance("30d")
    assert stream.latestOffset(begin, None) != begin
