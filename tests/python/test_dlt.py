"""`siteline.dlt`: a pipeline loads the points of a store, even if a load is interrupted."""

import doctest
import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest
import siteline
from kit.feeds import load_series, make_feed, stored_points, true_points

dlt = pytest.importorskip("dlt")
pytest.importorskip("duckdb")

import siteline.dlt  # noqa: E402
from dlt.destinations.exceptions import DatabaseTerminalException  # noqa: E402
from dlt.destinations.impl.duckdb.duck import DuckDbCopyJob  # noqa: E402
from dlt.load.load import Load  # noqa: E402
from dlt.pipeline.exceptions import PipelineStepFailed  # noqa: E402
from kit.pipelines import Pipelines  # noqa: E402
from siteline.dlt import _rows  # noqa: E402

LATER = partial(pytest.param, marks=pytest.mark.campaign)
"""A variant for campaigns."""
UPSERT = {"disposition": "merge", "strategy": "upsert"}


def half_hourly(**options):
    """A feed of few points."""
    return make_feed(interval="30m", **options)


def truth(sandbox, end, **options):
    """The points that the feed has now."""
    return true_points(sandbox, end, interval="30m", **options)


@pytest.fixture(autouse=True, scope="module")
def _separate_settings(tmp_path_factory):
    """Keeps the user's files unread, and contacts no other machine."""
    folder = str(tmp_path_factory.mktemp("dlt"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
        patch.setenv("DLT_DATA_DIR", folder)
        patch.setenv("DLT_PROJECT_DIR", folder)
        yield


@pytest.fixture
def duckdb(tmp_path):
    database = str(tmp_path / "plant.duckdb")
    return Pipelines(tmp_path, dlt.destinations.duckdb(database), database)


@pytest.fixture
def postgres(tmp_path, postgres_server):
    pytest.importorskip("psycopg2")
    # dlt requires a password and a host. libpq uses the socket's folder.
    uri = f"postgresql://postgres:none@localhost/postgres?host={postgres_server.socket}"
    return Pipelines(tmp_path, dlt.destinations.postgres(uri))


def fail_in_load(pipelines, points):
    """Makes a load fail after its rows were merged and before it is complete."""

    def fail(*arguments, **options):
        raise RuntimeError("failed here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Load, "complete_package", fail)
        with pytest.raises(PipelineStepFailed, match="failed here"):
            pipelines.pipeline.run(points)


def cause_of(failed):
    """The exception of siteline that ended a step."""
    error = failed.value
    while not isinstance(error, siteline.SitelineError):
        error = error.__cause__ or error.__context__
    return error


@pytest.mark.once
@pytest.mark.parametrize("where", ["duckdb", LATER("postgres")])
def test_at_every_step_a_destination_has_the_points_of_a_store(request, sandbox, store, where):
    pipelines = request.getfixturevalue(where)
    feed, revised = half_hourly(), 0
    for step in range(4):
        # A client remembers the density of a line, so each step uses a new client.
        expected = sandbox.client().sync(feed, store)
        points = siteline.dlt.points(sandbox.client(), feed)
        before = sandbox.stats.data_requests
        if step == 2:
            fail_in_load(pipelines, points)
            pipelines.attach()
            pipelines.pipeline.run()  # loads what is pending
        else:
            pipelines.pipeline.run(points)
            assert points.report.complete
        assert sandbox.stats.data_requests - before == expected.requests
        assert pipelines.points() == stored_points(store, unread="keep")
        settled = expected.settled_through
        assert pipelines.points(before=settled) == truth(sandbox, settled)
        revised += expected.revised
        sandbox.clock.advance("16h")
    assert revised > 0


@pytest.mark.parametrize("where", ["duckdb", "delta", LATER("upsert")])
def test_of_several_rows_of_a_point_in_one_load_the_newest_counts(duckdb, tmp_path, sandbox, where):
    pd = pytest.importorskip("pandas")
    first = {"line": "L2", "machine": None, "device": None, "tag": "T0"}
    load_series(sandbox)
    one = pd.DataFrame({"timestamp": ["2026-11-19T12:00Z"], "value": 1.0, "sample_count": 1})
    sandbox.load(one, bucket="5m", **first)

    def revise(progress):
        if progress.pages == 1:
            # A new point before the cursor shifts the rest: the next page repeats a point (§4.4.6).
            sandbox.revise("2026-11-19T00:00Z", 1.0, **first)
            sandbox.revise("2026-11-19T08:10Z", 1e6, line="L2", tag="T7")

    if where == "delta":
        pytest.importorskip("deltalake")
        target = dlt.destinations.filesystem((tmp_path / "lake").as_uri())
        pipelines = Pipelines(tmp_path, target)
    else:
        pipelines = duckdb
    feed = make_feed(page_size=100, start="2026-11-19T00:00Z")
    points = siteline.dlt.points(sandbox.client(), feed, progress=revise, concurrency=1)
    if where == "upsert":
        points.apply_hints(write_disposition=UPSERT)
    options = {"table_format": "delta"} if where == "delta" else {}
    for number in range(2 if where == "duckdb" else 1):
        pipelines.pipeline.run(points, **options)
        found = pipelines.points()
        if number == 0:
            assert (points.report.inserted, len(found)) == (289, 288), "one point arrived twice"
            assert 1e6 in {row[0] for row in found.values()}
        else:
            assert found == true_points(sandbox, points.report.read_through, start=feed.start)
        sandbox.clock.advance("1d")
    assert {key[2:4] for key in found} == {("M1", "D1"), (None, None)}


def test_a_chain_goes_on_on_the_machine_that_began_it_and_begins_again_elsewhere(
    duckdb, sandbox, store
):
    feed = half_hourly(page_size=60)
    expected = sandbox.client().sync(feed, store)

    def run(**options):
        before = sandbox.stats.data_requests
        points = siteline.dlt.points(sandbox.client(), feed, **options)
        duckdb.pipeline.run(points)
        return points, sandbox.stats.data_requests - before

    points, requests = run(max_pages=3)
    assert (points.report.complete, points.report.ended_by, requests) == (False, "max_pages", 3)
    with pytest.raises(siteline.errors.PageLimitReached):
        points.raise_for_incomplete()
    (whole,) = duckdb.kept
    if os.name == "posix":
        assert whole.stat().st_mode & 0o777 == 0o600
        assert whole.parent.stat().st_mode & 0o777 == 0o700
    bookmark = json.loads(whole.read_text().partition("\n")[0])["chains"][0]["bookmark"]
    local = (Path(duckdb.pipeline.working_dir) / "state.json").read_text()
    for text in (*duckdb.stored_texts(), local):
        assert "next_sequence" in text
        assert bookmark not in text
        assert "bookmark" not in text
    duckdb.move()
    _, requests = run(max_pages=4)
    duckdb.attach()
    points, more = run()
    assert points.report.complete
    assert requests + more == expected.requests, "the chain restarted, and then continued"
    assert duckdb.points() == stored_points(store)
    assert run()[1] == 0
    assert duckdb.kept == []


def give_up(pipelines):
    """Deletes only the packages that were not loaded, as dlt before 1.30 does."""
    working = Path(pipelines.pipeline.working_dir)
    for folder in (working / "normalize" / "extracted", working / "load" / "normalized"):
        for package in folder.iterdir():
            shutil.rmtree(package)


@pytest.mark.parametrize("ending", ["deleted", LATER("aborted"), LATER("moved")])
def test_points_whose_load_was_given_up_are_read_again(duckdb, sandbox, store, ending):
    if ending == "aborted" and not hasattr(dlt.Pipeline, "abort_packages"):
        pytest.skip("dlt has it since 1.30")
    feed = half_hourly(page_size=100)
    points = siteline.dlt.points(sandbox.client(), feed, max_pages=2)
    duckdb.pipeline.run(points)
    if ending == "moved":
        fail_in_load(duckdb, points)
        duckdb.move()
    else:
        duckdb.pipeline.extract(points)
        duckdb.pipeline.normalize()
    if ending == "deleted":
        give_up(duckdb)
    elif ending == "aborted":
        duckdb.pipeline.abort_packages()
    assert points.report.pages == 2
    points = siteline.dlt.points(sandbox.client(), feed)
    duckdb.pipeline.run(points)
    expected = sandbox.client().sync(feed, store)
    assert duckdb.points() == stored_points(store)
    # Only the machine that ran the earlier load knows the position of its chain.
    known = 0 if ending == "moved" else 2
    assert points.report.pages == expected.pages - known


@pytest.mark.parametrize("place", ["dataset", *map(LATER, ("argument", "table", "deleted"))])
def test_a_place_that_has_not_what_was_loaded_gets_it_all(duckdb, sandbox, store, place):
    feed, options = half_hourly(), {}
    points = siteline.dlt.points(sandbox.client(), feed)
    duckdb.pipeline.run(points)
    sandbox.clock.advance("1d")
    if place == "dataset":
        duckdb.dataset = "others"
        duckdb.attach("other").run([{"a": 1}], table_name="a")
        duckdb.attach()
    elif place == "argument":
        # Some versions of dlt give this to a resource only in the next run.
        options = {"dataset_name": "others"}
        duckdb.pipeline.run(points, **options)
    elif place == "table":
        options = {"table_name": "others"}
    else:
        Path(duckdb.database).unlink()
    points = siteline.dlt.points(sandbox.client(), feed)
    duckdb.pipeline.run(points, **options)
    expected = sandbox.client().sync(feed, store)
    assert duckdb.points(table=options.get("table_name", "points")) == stored_points(store)
    if place != "argument":
        assert points.report.requests == expected.requests
    duckdb.pipeline.run(points, **options)
    assert points.report.requests == 0


@pytest.mark.campaign
@pytest.mark.parametrize("setting", ["RESTORE_FROM_DESTINATION", "USE_SINGLE_DATASET"])
def test_nothing_is_read_again_where_dlt_puts_its_states_elsewhere(
    duckdb, sandbox, monkeypatch, setting
):
    monkeypatch.setenv(setting, "false")
    duckdb.attach().run([{"a": 1}], table_name="a")
    for reads in (True, False):
        points = siteline.dlt.points(sandbox.client(), half_hourly())
        duckdb.pipeline.run(dlt.source(lambda: points, name="other")())  # noqa: B023
        assert bool(points.report.requests) == reads


def test_a_load_that_is_pending_is_waited_for(duckdb, sandbox):
    points = siteline.dlt.points(sandbox.client(), half_hourly(page_size=150), max_pages=1)
    duckdb.pipeline.extract(points)
    for _ in range(2):
        with pytest.raises(PipelineStepFailed) as failed:
            duckdb.pipeline.extract(points)
        assert isinstance(cause_of(failed), siteline.errors.StoreBusy)
        assert points.report is None
        duckdb.pipeline.normalize()
    assert sandbox.stats.data_requests == 1
    duckdb.pipeline.run()
    duckdb.pipeline.extract(points)
    assert sandbox.stats.data_requests == 2


@pytest.mark.once
def test_a_load_that_was_completed_without_its_rows_is_not_built_upon(duckdb, sandbox, monkeypatch):
    points = siteline.dlt.points(sandbox.client(), half_hourly(), max_pages=1)
    monkeypatch.setenv("LOAD__RAISE_ON_FAILED_JOBS", "false")
    with monkeypatch.context() as patch:

        def fail(*arguments, **options):
            raise DatabaseTerminalException(Exception("no room"))

        patch.setattr(DuckDbCopyJob, "run", fail)
        duckdb.pipeline.run(points)
    with pytest.raises(PipelineStepFailed, match="without all of its rows"):
        duckdb.pipeline.run(points)
    assert sandbox.stats.data_requests == 1
    duckdb.pipeline.run(points, refresh="drop_resources")
    assert duckdb.points()
    assert sandbox.stats.data_requests == 2


@pytest.mark.once
def test_an_error_after_the_first_page_ends_a_run_whose_pages_are_loaded(
    duckdb, sandbox, store, caplog
):
    feed = half_hourly(page_size=100)
    points = siteline.dlt.points(sandbox.client(), feed)
    sandbox.fault(on="data", body="[]", nth=3)
    duckdb.pipeline.run(points)
    assert "loads the pages before this error" in caplog.text
    with pytest.raises(siteline.errors.ProtocolError):
        points.raise_for_incomplete()
    assert len(duckdb.points()) == points.report.inserted > 500, (
        "only the rest of one chain is missing"
    )
    (metrics,) = duckdb.pipeline.last_trace.last_extract_info.metrics.values()
    told = metrics[0]["resource_metrics"]["points"].custom_metrics
    report = points.report
    assert told == {"pages": report.pages, "requests": report.requests, "complete": False}
    sandbox.fault(on="data", status=403)
    with pytest.raises(PipelineStepFailed) as failed:
        duckdb.pipeline.run(points)
    assert isinstance(cause_of(failed), siteline.errors.ServiceError)
    with pytest.raises(siteline.errors.ServiceError):
        points.raise_for_incomplete()
    duckdb.pipeline.run(points)
    points.raise_for_incomplete()
    assert points.report.complete
    requests = sandbox.stats.data_requests
    expected = sandbox.client().sync(feed, store)
    assert duckdb.points() == stored_points(store)
    assert requests == expected.requests + 2, "only the failed requests were repeated"


@pytest.mark.campaign
def test_what_a_limit_of_dlt_cuts_off_is_read_again(duckdb, sandbox):
    feed = half_hourly(page_size=100)
    points = siteline.dlt.points(sandbox.client(), feed)
    duckdb.pipeline.run(points.add_limit(2))
    points = siteline.dlt.points(sandbox.client(), feed)
    duckdb.pipeline.run(points)
    assert duckdb.points() == truth(sandbox, points.report.read_through)


def test_what_cannot_succeed_is_refused_before_any_request(duckdb, tmp_path, sandbox):
    points = siteline.dlt.points(sandbox.client(), half_hourly())
    with pytest.raises(Exception, match="pipeline of dlt must read") as failed:
        list(points)
    assert isinstance(cause_of(failed), siteline.errors.ConfigError)
    lake = Pipelines(tmp_path, dlt.destinations.filesystem((tmp_path / "lake").as_uri()))
    with pytest.raises(PipelineStepFailed, match='table_format "delta"') as failed:
        lake.pipeline.run(points)
    assert isinstance(cause_of(failed), siteline.errors.ConfigError)
    for disposition in ("replace", "append", "skip"):
        with pytest.raises(
            PipelineStepFailed, match=r"must be merged[\s\S]*drop_resources"
        ) as failed:
            duckdb.pipeline.run(points, write_disposition=disposition)
        assert isinstance(cause_of(failed), siteline.errors.ConfigError)
    with pytest.raises(PipelineStepFailed, match="needs a destination") as failed:
        dlt.pipeline("nowhere", pipelines_dir=str(tmp_path)).extract(points)
    assert isinstance(cause_of(failed), siteline.errors.ConfigError)
    points.apply_hints(write_disposition={"disposition": "merge", "strategy": "scd2"})
    with pytest.raises(PipelineStepFailed, match="does not merge the points"):
        duckdb.pipeline.run(points)
    with pytest.raises(siteline.errors.QueryError, match="audit_pages"):
        siteline.dlt.points(sandbox.client(), [half_hourly(audit_pages=2)])
    assert sandbox.stats.token_requests == sandbox.stats.data_requests == 0


def test_the_key_of_a_series_is_of_its_feed_and_ids_alone(sandbox):
    ids = ("S1", "L2", None, "None", "")
    keys = {_rows.series_key(feed, given) for feed in ("a", "b") for given in (ids, ids[::-1])}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {32}
    assert _rows.series_key("a", ids) == "cd3e95dbe297edc4ad6afd113f6d3a21", "the key never changes"
    page, _ = next(sandbox.client().sync_pages(half_hourly()))
    rows = _rows.rows_of(page)
    assert rows.schema == _rows.SCHEMA
    assert rows.select(page.to_arrow().column_names).cast(page.to_arrow().schema) == page.to_arrow()
    for row in rows.to_pylist():
        assert row["series"] == _rows.series_key("line-2", [row[name] for name in _rows.IDS])
        assert (row["feed"], row["sequence"]) == ("line-2", 1)


@pytest.mark.parametrize("thing", [siteline.dlt, siteline.dlt.points])
def test_the_examples_of_the_docstrings_run(thing, sandbox, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {"siteline": siteline, "client": sandbox.client()}
    example = doctest.DocTestParser().get_doctest(thing.__doc__, space, "dlt", None, 0)
    assert doctest.DocTestRunner().run(example).failed == 0
