"""The cost and the partitions of a Spark read, tested without an engine."""

import itertools
import os
import pickle
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest
import siteline
import siteline.spark
from kit import spark as engine
from kit.target_rows import sorted_rows
from kit.tls_service import Authority
from siteline.spark import _driver
from siteline.spark._access import Access
from siteline.spark._batches import schema_of
from siteline.spark._options import Options
from siteline.spark._partitions import Density, measure, parts, shared
from siteline.spark._reading import Reading, Registered
from siteline.spark._source import SitelineDataSource
from siteline.testing import Variant

RANGE = {"start": "2026-11-01T00:00:00Z", "end": "2026-11-15T00:00:00Z"}
SITE = {"site": "S1", **RANGE, "interval": "1h", "page_size": "40"}


@pytest.fixture
def client(sandbox, monkeypatch):
    """A client with its key in a variable, so that tasks can use its settings."""
    return engine.client_by_variables(sandbox, monkeypatch)


@pytest.fixture
def agent(client):
    with siteline.Agent(client) as agent:
        yield agent


@pytest.fixture
def reading(client, agent):
    """Turns options into a read, as the driver does."""
    access = Access.of(client, agent)
    return lambda **options: Reading(Options.parse({**SITE, **options}), access).fixed()


def read(one, found, **how):
    batches = [batch for part in found for batch in one.read(part, True, is_bounded=False, **how)]
    return sorted_rows(pa.Table.from_batches(batches))


@pytest.mark.parametrize("name", ["private_key", "accessToken", "agent_secret"])
def test_an_option_that_may_be_a_secret_is_refused_and_its_value_not_shown(name):
    with pytest.raises(siteline.errors.ConfigError, match="options show in plans") as caught:
        Options.parse({**SITE, name: "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"machine": "M1"}, "'machine' is no option"),
        ({"start": ""}, "start is missing"),
        ({"pageSize": "5"}, "page_size is given twice"),
        ({"page_size": "0"}, "page_size='0' is not a whole number above 0"),
        ({"maxPages": "many"}, "maxPages='many'"),
        ({"filters": "M1"}, "filters is not a JSON object"),
    ],
)
def test_a_wrong_option_is_told(options, told):
    with pytest.raises(siteline.errors.ConfigError, match=told):
        Options.parse({**SITE, **options})


def test_names_of_options_may_be_written_in_any_case_and_with_or_without_underscores():
    given = {name.replace("_", "").upper(): value for name, value in SITE.items()}
    more = {"MAXPAGES": "7", "filters": '{"machineId": ["M1", "M2"]}', "settleLag": "1m"}
    found = Options.parse({**given, **more})
    assert found.query == {**SITE, "page_size": 40, "filters": {"machineId": ["M1", "M2"]}}
    assert (found.max_pages, found.times, found.by) == (7, {"settle_lag": "1m"}, None)
    with pytest.raises(siteline.errors.ConfigError, match="settle_lag are only for streams"):
        found.refuse_times()


@pytest.mark.parametrize("by", [None, "3", "7", "2d"])
def test_partitions_adjoin_lie_between_buckets_and_have_ten_pages(sandbox, client, by, reading):
    one = reading(by=by)
    plan, found, _ = one.planned(client)
    start, end = one.scan(client).query.start, one.scan(client).query.end
    assert (found[0].start, found[-1].end) == (start, end)
    for before, after in itertools.pairwise(found):
        assert before.end == after.start
        assert (after.start - start).total_seconds() % 3600 == 0
    length = [part.pages for part in found]
    assert min(length[:-1] or length) >= 10
    assert len(found) == {"3": 3, "7": 7}.get(by, len(found))
    assert plan.pages == sum(length) == sum(task.pages for task in plan.tasks)
    assert sandbox.stats.data_requests == 1
    points = read(one, found)
    assert sandbox.stats.data_requests == 1 + plan.pages
    assert points == sorted_rows(one.scan(client).to_arrow()) != []


SHAPE = Variant(
    end_inclusive=True, order="time", timestamps="epoch_ms", page_counts="envelopes", array="items"
)


@pytest.mark.sandbox(late=False, variant=SHAPE)
def test_points_are_unique_over_partitions_in_another_shape_of_the_service(client, reading):
    one = reading(page_size="20", by="1d")
    _, found, _ = one.planned(client)
    found = found if len(found) > 1 else parts(one.scan(client), Density(24, 1), "1d")
    assert len(found) > 1
    assert read(one, found) == sorted_rows(one.scan(client).to_arrow()) != []


@pytest.mark.parametrize(("most", "error"), [(50, siteline.errors.QueryError), (None, None)])
def test_more_pages_than_allowed_are_refused_with_both_numbers_and_no_request(
    sandbox, client, reading, most, error
):
    client = siteline.Client(daily_allowance=60)
    one = replace(reading(by="7"), density=Density(12, 40))
    plan, found, _ = one.planned(client)
    with pytest.raises(error or siteline.errors.AllowanceExhausted) as caught:
        shared(plan, found, most)
    assert str(plan.pages) in str(caught.value)
    assert str(most or 60) in str(caught.value)
    assert sandbox.stats.data_requests == 0


def test_a_task_on_another_host_has_its_share_as_an_allowance_and_no_more(
    client, agent, reading, monkeypatch
):
    one = reading(by="7")
    plan, found, _ = one.planned(client)
    [part, *_] = shared(plan, found, None)
    used = agent.state.allowance.used
    monkeypatch.setattr("siteline.spark._access.this_host", lambda: "another")
    assert read(one, [part])
    with one.access.client(part.share) as own:
        assert own.allowance.limit == part.share
    with pytest.raises(siteline.errors.AllowanceExhausted):
        read(one, [replace(part, share=3)])
    assert agent.state.allowance.used == used


def test_a_task_on_another_host_uses_an_agent_over_a_network_with_its_secret(
    sandbox, client, tmp_path, monkeypatch
):
    authority = Authority(tmp_path / "agent")
    monkeypatch.setenv("SITELINE_AGENT_CA", str(authority.file))
    files = {"tls_certificate": authority.chain, "tls_key": authority.chain}
    with siteline.Agent(client, listen="https://127.0.0.1:0", **files) as agent:
        access = Access.of(client, agent)
        assert access.is_for_all_hosts
        assert agent.env()["SITELINE_AGENT_SECRET"] not in repr(access)
        for name in [*sandbox.env(), "SITELINE_AGENT_CA"]:
            monkeypatch.delenv(name, raising=False)  # as on another host
        monkeypatch.setattr("siteline.spark._access.this_host", lambda: "another")
        one = Reading(Options.parse(SITE), pickle.loads(pickle.dumps(access))).fixed()
        with one.access.client() as own:
            _, found, _ = one.planned(own)
        assert read(one, found[:1])
        assert agent.state.allowance.used == sandbox.stats.data_requests > 10
    assert sandbox.stats.token_requests == 1
    assert "SITELINE_AGENT_SECRET" not in os.environ


def test_a_key_that_was_given_itself_stays_in_the_driver(sandbox, monkeypatch):
    client = sandbox.client()  # the key as bytes
    with siteline.Agent(client) as agent:
        access = Access.of(client, agent)
        assert access.own is None
        assert b"PRIVATE KEY" not in pickle.dumps(access)
        with access.client() as own:
            assert own.scan(**{**SITE, "page_size": 40}).query
        monkeypatch.setattr("siteline.spark._access.this_host", lambda: "another")
        with pytest.raises(siteline.errors.ConfigError, match="only in its memory"):
            access.client()


YEAR = {"site": "S9", "start": "2025-11-01T00:00:00Z", "end": "2026-11-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("by", "density"), [(None, Density(0.0, 40.0)), ("7", Density(0.01, 40.0))]
)
def test_no_partition_of_few_points_is_longer_than_31_days(client, reading, by, density):
    one = replace(reading(**YEAR, by=by), density=density)
    plan, found, _ = one.planned(client)
    length = [part.end - part.start for part in found]
    assert sum(length, timedelta()) == timedelta(days=365)
    assert max(length) <= timedelta(days=31)
    assert plan.pages >= len(found) == 12
    long = replace(reading(**YEAR, by="60d"), density=density)
    assert len(long.planned(client)[1]) == 7  # as requested


def load(sandbox, first, days, tags):
    hours = [f"{first}T{hour:02}:00:00Z" for hour in range(24)]
    times = pa.array(hours).cast(pa.timestamp("us", "UTC"))
    for day in range(days):
        table = pa.table({"timestamp": pa.compute.add(times, pa.scalar(timedelta(days=day)))})
        table = table.append_column("value", pa.array([1.0] * 24))
        for tag in range(tags):
            sandbox.load(table, bucket="1h", site="S9", tag=f"T{tag}")


def test_a_denser_part_may_have_the_pages_that_others_are_not_expected_to_need(
    sandbox, client, reading
):
    load(sandbox, "2026-11-01", 14, 1)
    load(sandbox, "2026-11-12", 3, 5)
    one = replace(
        reading(site="S9", page_size="10", maxPages="75", by="4d"), density=Density(1, 10)
    )
    plan, found, _ = one.planned(client)
    found = shared(plan, found, 75)
    assert [part.most - part.pages for part in found] == [75 - plan.pages] * len(found)
    before = sandbox.stats.data_requests
    batches = [batch for part in found for batch in one.read(part, True, is_bounded=True)]
    assert sum(map(len, batches)) == 14 * 24 + 3 * 24 * 4
    assert plan.pages < sandbox.stats.data_requests - before <= 75
    with pytest.raises(siteline.errors.PageLimitReached, match="max_pages=40 was reached"):
        list(one.read(replace(found[-1], most=40), True, is_bounded=True))


@pytest.mark.parametrize("ledger", [None, "memory"])
def test_without_an_agent_a_task_that_no_ledger_counts_has_its_share(
    sandbox, client, reading, ledger
):
    own = siteline.Client(daily_allowance=60, ledger=ledger)
    one = replace(reading(by="2"), access=Access.of(own, None), density=Density(6, 40))
    plan, found, _ = one.planned(own)
    [first, second] = shared(plan, found, None)
    assert first.share + second.share <= 60
    with one.access.client(first.share) as task:
        assert task.allowance.limit == first.share
    with pytest.raises(siteline.errors.AllowanceExhausted):
        read(one, [replace(first, share=3)])
    assert sandbox.stats.data_requests == 3


def test_without_an_agent_tasks_of_the_drivers_host_count_in_its_ledger(
    tmp_path, monkeypatch, set_variables
):
    with siteline.Sandbox() as sandbox:
        set_variables(sandbox.env())
        own = siteline.Client(daily_allowance=60, ledger=tmp_path / "ledger")
        access = pickle.loads(pickle.dumps(Access.of(own, None)))
        assert access.is_shared
        with access.client(5) as task:
            assert task.allowance.limit == 60
        monkeypatch.setattr("siteline.spark._access.this_host", lambda: "another")
        assert not access.is_shared
        with access.client(5) as task:
            assert task.allowance.limit == 5


def test_no_variable_of_an_agent_travels_to_where_it_is_not_needed(client, agent, monkeypatch):
    for name in ("SECRET", "CA", "CERTIFICATE_FILE", "KEY_FILE"):
        monkeypatch.setenv(f"SITELINE_AGENT_{name}", "of-another")
    assert agent.address.startswith("unix:")
    assert not [name for name in Access.of(client, agent).variables if "AGENT" in name]

    class Mutual:  # identifies its clients by certificate
        address = "https://driver.example:8443"

        def env(self):
            return {"SITELINE_AGENT": self.address}

    variables = Access.of(client, Mutual()).variables
    assert "SITELINE_AGENT_SECRET" not in variables
    assert variables["SITELINE_AGENT_KEY_FILE"] == "of-another"


def test_among_several_profiles_one_is_named(client, agent):
    access = Access.of(client, agent)
    for name in (None, "plant-a"):
        assert Registered({"plant-a": access}).access(name) is access
    several = Registered({"plant-a": access, "plant-b": replace(access, base_url="http://b")})
    assert several.access("plant-b").base_url == "http://b"
    with pytest.raises(siteline.errors.ConfigError, match=r"plant-a, plant-b: option\('profile'"):
        several.access(None)
    several.accesses[None] = access
    assert several.access(None) is access


@pytest.mark.sandbox(variant=Variant(max_range="31d"))
def test_a_measurement_asks_for_no_range_that_is_too_long_and_for_no_page_twice(
    sandbox, client, reading
):
    ages = reading(site="S9", start="1980-01-01T00:00:00Z")
    for most, cost in ((100, 3), (2, 2), (1, 1)):
        assert measure(client, ages.scan(client), ages.options.query, most) == ((0, 40), cost)
    short = reading(start="2026-11-13T00:00:00Z", page_size="5")
    assert measure(client, short.scan(client), short.options.query) == ((12, 5), 3)
    assert sandbox.stats.data_requests == 3 + 2 + 1 + 3


EMPTY = {"site": "S1", "interval": "1h", "page_size": 40, "line": "none"}
EMPTY |= {"start": "2026-01-01T00:00:00Z", "end": "2026-06-01T00:00:00Z"}
WEEK = {**EMPTY, "line": None, "start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"}


def session(name):
    """The attributes of a Spark session that the driver reads."""
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
        source.reader(schema_of(True))
    assert sandbox.stats.data_requests == 0
    pytest.importorskip("pyspark.sql.streaming.datasource")
    stream = source.streamReader(schema_of(True))
    begin = stream.initialOffset()
    assert stream.latestOffset(begin, None) == begin
    sandbox.clock.advance("30d")
    assert stream.latestOffset(begin, None) != begin
