"""``format("siteline")`` in Sail; ``make campaigns ONLY=spark`` runs it in Spark."""

import os
import signal
import sys

import pytest
import siteline
import siteline.spark
from kit import spark as engine
from kit import systems
from kit.target_rows import sorted_rows

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not engine.IS_SPARK and not engine.IS_SAIL, reason="there is no engine"),
]
SPARK = pytest.mark.skipif(not engine.IS_SPARK, reason="Sail has no processes for its tasks")
SITE = {
    "site": "S1",
    "start": "2026-11-01T00:00:00Z",
    "end": "2026-11-15T00:00:00Z",
    "interval": "1h",
    "page_size": 40,
}


@pytest.fixture
def client(sandbox, monkeypatch):
    return engine.client_by_variables(sandbox, monkeypatch)


@pytest.fixture
def agent(spark, client):
    agent = siteline.spark.register(spark, client)
    yield agent
    agent.close()


def load(spark, **options):
    return spark.read.format("siteline").options(**{**SITE, **options}).load()


def scanned(client):
    scan = client.scan(**SITE, labels=False).to_arrow()
    client.close()
    return sorted_rows(scan)


def test_two_weeks_of_a_site_are_one_scan_and_cost_what_the_plan_says(
    spark, sandbox, client, agent
):
    plan = siteline.spark.plan(spark, **SITE, by=7)
    assert len(plan.tasks) == 7
    before = sandbox.stats.data_requests
    table = load(spark, by=7).toArrow()
    assert sandbox.stats.data_requests - before == plan.pages
    assert agent.state.allowance.used == sandbox.stats.data_requests
    assert sorted_rows(table) == scanned(client) != []
    assert sandbox.stats.token_requests == 1


def test_loading_sends_no_request_and_each_action_reads_anew(spark, sandbox, agent):
    plan = siteline.spark.plan(spark, **SITE)
    frame, before = load(spark), sandbox.stats.data_requests
    assert before == 1
    for times in (1, 2):
        assert frame.count() > 0
        assert sandbox.stats.data_requests - before == times * plan.pages


def test_no_secret_is_in_a_plan_or_in_what_an_engine_gets(spark, sandbox, agent, capfd):
    from pyspark import cloudpickle

    frame = load(spark)
    frame.explain(True)
    [known] = [
        one for one in siteline.spark._driver._sessions.values() if agent.address in str(one)
    ]
    sent = cloudpickle.dumps(known)
    shown = capfd.readouterr().out.encode()
    key = sandbox.env()["SITELINE_PRIVATE_KEY"].splitlines()[1].encode()
    assert key not in sent + shown
    assert b"site_id" in shown


def test_a_schema_of_ones_own_is_refused(spark, agent):
    with pytest.raises(Exception, match="schema of siteline is fixed"):
        spark.read.format("siteline").schema("a int").options(**SITE).load().count()


def test_a_task_that_fails_pays_again_and_is_counted(spark, sandbox, client, agent):
    siteline.spark.plan(spark, **SITE, by=4)
    sandbox.fault(on="data", status=503, skip=40, times=16)  # four tries of four tasks
    if engine.IS_SAIL:
        with pytest.raises(Exception, match="503"):
            load(spark, by=4).count()
        assert agent.state.allowance.used >= sandbox.stats.data_requests > 5
    else:
        table = load(spark, by=4).toArrow()
        assert agent.state.allowance.used == sandbox.stats.data_requests > 16 + 40
        assert sorted_rows(table) == scanned(client)


def test_several_profiles_are_read_in_one_session(spark, sandbox, agent, tmp_path, monkeypatch):
    engine.write_profile(sandbox, tmp_path, "plant-b", monkeypatch)
    assert siteline.spark.register(spark, "plant-b") is agent  # of the same service and subject
    assert load(spark, profile="plant-b", line="none").count() == 0
    with pytest.raises(Exception, match="plant-c"):
        load(spark, profile="plant-c").count()


def watched(spark, folder, *, is_killed):
    """Registers a source. Its tasks note their process; the first may be killed after a page."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])

    class Watched(siteline.spark.SitelineDataSource):
        registered = siteline.spark._driver.registered(spark)

        def reader(self, schema):
            reader = super().reader(schema)
            read = reader.read

            def watched(partition):
                is_first = not os.listdir(folder)
                with open(os.path.join(folder, str(os.getpid())), "w"):
                    pass
                if is_first and is_killed:
                    with reader._reading.access.client() as client:
                        next(client.scan(**SITE).pages())
                        os.kill(os.getpid(), signal.SIGKILL)
                yield from read(partition)

            reader.read = watched
            return reader

    spark.dataSource.register(Watched)


@SPARK
@systems.SIGNALS
def test_a_killed_worker_costs_what_the_agent_lent_it_and_no_point(
    spark, sandbox, client, agent, tmp_path
):
    siteline.spark.plan(spark, **SITE, by=4)
    assert load(spark, by=4).count() > 0
    before = sandbox.stats.data_requests
    watched(spark, str(tmp_path), is_killed=True)
    table = load(spark, by=4).toArrow()
    requests, used = sandbox.stats.data_requests, agent.state.allowance.used
    assert requests == before + (before - 1) + 1
    assert requests <= used <= requests + 16
    assert sorted_rows(table) == scanned(client)


@SPARK
def test_four_processes_make_one_exchange(spark, sandbox, agent, tmp_path):
    siteline.spark.plan(spark, **SITE, by=4)
    sandbox.clock.advance("1h")  # no process has a token that is valid
    before = sandbox.stats.token_requests
    watched(spark, str(tmp_path), is_killed=False)
    assert load(spark, by=4).count() > 0
    assert len(os.listdir(tmp_path)) == 4
    assert sandbox.stats.token_requests - before == 1
