"""The programs of docs/spark.md, unchanged, in Sail or Spark.

Sail has no streams. Spark cannot read Delta here, because that needs a package of no index.
"""

import contextlib

import pytest
import siteline
import siteline.spark
from kit import spark as engine
from kit.pages import blocks
from kit.waiting import wait_until

deltalake = pytest.importorskip("deltalake")

pytestmark = [
    pytest.mark.once,
    pytest.mark.sandbox(now="2026-11-08T06:00:00Z"),
    pytest.mark.skipif(not engine.IS_SPARK and not engine.IS_SAIL, reason="there is no engine"),
]
FIRST, *OTHERS = blocks("spark.md", "py")
PROGRAMS = dict(zip(("sync", "network", "stream"), OTHERS, strict=True))


def forget(spark):
    """Removes the clients that other tests registered in the shared session."""
    with contextlib.suppress(siteline.errors.ConfigError):
        siteline.spark._driver.registered(spark).accesses.clear()


@pytest.fixture
def page(spark, sandbox, tmp_path, monkeypatch):
    """The names that the first program defines, and a function that runs another with them."""
    engine.write_profile(sandbox, tmp_path, "plant-a", monkeypatch)
    monkeypatch.setenv("SITELINE_SANDBOX_CLOCK", sandbox.env()["SITELINE_SANDBOX_CLOCK"])
    names = {"spark": spark}

    def run(program, places):
        for there, here in places.items():
            assert there in program
            program = program.replace(there, str(here))
        exec(program, names)

    forget(spark)
    run(FIRST, {})
    yield names, run
    siteline.spark.register(spark, "plant-a").close()
    forget(spark)


def count_at_the_service(sandbox):
    week = {"start": "2026-11-01", "end": "2026-11-08", "interval": "1m"}
    return len(sandbox.expected(site="S1", **week))


def test_a_week_is_planned_and_read(page, sandbox):
    names, _ = page
    assert names["points"].count() == count_at_the_service(sandbox) > 10_000
    assert sandbox.stats.token_requests == 1


def test_a_table_of_delta_is_filled_and_read_without_a_request(page, sandbox, tmp_path):
    names, run = page
    lake = tmp_path / "points"
    filling, reading = PROGRAMS["sync"].split("points = ")
    run(filling, {"/lake/points": lake})
    before = sandbox.stats.data_requests
    stored = deltalake.DeltaTable(lake).to_pyarrow_table().num_rows
    assert stored >= count_at_the_service(sandbox)
    if engine.IS_SAIL:
        run(f"points = {reading}", {"/lake/points": lake})
        assert names["points"].count() == stored
    assert sandbox.stats.data_requests == before


def test_an_agent_on_a_network_serves_the_tasks(page, sandbox, authority, monkeypatch):
    names, run = page
    monkeypatch.setenv("SITELINE_AGENT_CA", str(authority.file))
    names["client"] = siteline.Client(profile="plant-a")
    run(
        PROGRAMS["network"],
        {
            "https://driver.example.com:8443": "https://127.0.0.1:0",
            "agent.pem": authority.chain,
            "agent-key.pem": authority.chain,
        },
    )
    before = sandbox.stats.data_requests
    line = names["spark"].read.format("siteline").options(**names["week"], line="L2")
    assert line.load().count() > 0
    served = sandbox.stats.data_requests - before
    assert names["agent"].state.allowance.used >= served > 0
    names["agent"].close()


@pytest.mark.skipif(not engine.IS_SPARK, reason="Sail has no streams of Python sources")
def test_a_stream_fills_a_table(page, sandbox, tmp_path):
    names, run = page
    run(
        PROGRAMS["stream"],
        {"/lake/points": tmp_path / "points", "/lake/checkpoint": tmp_path / "checkpoint"},
    )
    [query] = names["spark"].streams.active
    try:
        wait_until(lambda: query.exception() or query.lastProgress is not None)
        assert query.exception() is None
    finally:
        query.stop()
    stored = deltalake.DeltaTable(tmp_path / "points").to_pyarrow_table().num_rows
    assert stored == query.lastProgress["numInputRows"] > 10_000
