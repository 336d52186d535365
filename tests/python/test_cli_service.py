"""`siteline sync --every`: runs again and again, obeys what a run said, and ends when asked to."""

import contextlib
import json
import os
import signal
from datetime import UTC, datetime

import pytest
import siteline
from kit import systems
from kit.command import run_command, run_json
from kit.feeds_file import write_feeds
from kit.running import end, running
from kit.waiting import wait_until
from siteline.cli.feeds import read_feeds
from siteline.cli.job import Job
from siteline.cli.metrics import MetricsFile
from siteline.cli.schedule import Ended
from siteline.cli.service import Service
from siteline.cli.stopping import Stop, Stopped
from siteline.cli.systemd import Notifier

pytestmark = systems.SIGNALS
TEN_MINUTES_ON = datetime(2026, 11, 20, 0, 10, tzinfo=UTC)


@pytest.fixture
def feeds(tmp_path):
    return write_feeds(tmp_path)


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "plant.siteline"


# The whole command, by its lines.


def test_it_runs_at_every_turn_and_sigterm_ends_it_with_0(sandbox, feeds, store_path):
    with running("sync", feeds, store_path, "--every", "1s", env=sandbox.env()) as process:
        first = process.stdout.readline()
        sandbox.clock.advance("1h")
        second = process.stdout.readline()
        while "run 2:" in second and " 0 pages" in second:
            # It may have begun before the clock was moved.
            second = process.stdout.readline()
        status, _, err = end(process)
    assert first.startswith("2026-11-20 00:00:00 UTC, run 1: complete, ")
    assert "read through 2026-11-19 23:55; next run 2026-11-20 00:00:0" in first
    assert "read through 2026-11-20 00:55; next run 2026-11-20 01:00:0" in second
    assert (status, err) == (0, "")
    with siteline.Store(store_path) as store:
        assert len(store.points("line-2")) > 0


def test_a_spent_allowance_is_waited_for_and_a_wait_ends_at_once(sandbox, feeds, store_path):
    env = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "2"}
    arguments = ("sync", feeds, store_path, "--every", "1s", "--json")
    with running(*arguments, env=env) as process:
        line = json.loads(process.stdout.readline())
        status, rest, _ = end(process, signal.SIGINT)
    assert (line["schema"], line["command"], line["exit"], line["run"]) == (1, "sync", 5, 1)
    assert (line["complete"], line["requests"]) == (False, 2)
    assert line["next_at"].startswith("2026-11-21T00:00:0")
    assert (status, rest) == (130, "")


def test_a_passing_failure_is_told_and_the_next_turn_goes_on(sandbox, feeds, store_path, tmp_path):
    metrics = tmp_path / "siteline.prom"
    sandbox.fault(on="data", times=4, status=503)
    arguments = ("sync", feeds, store_path, "--every", "1s", "--json", "--metrics", metrics)
    with running(*arguments, env=sandbox.env()) as process:
        failed = json.loads(process.stdout.readline())
        after_failure = metrics.read_text()
        done = json.loads(process.stdout.readline())
        status, _, err = end(process)
    assert (failed["exit"], failed["error"]["type"]) == (4, "ServiceUnavailable")
    assert 'siteline_sync_exit_status{store="' in after_failure
    assert (done["exit"], done["run"], done["complete"]) == (0, 2, True)
    assert status == 0
    assert "siteline: the service failed at GET" in err


def test_a_refusal_ends_it_with_its_status(sandbox, feeds, store_path):
    arguments = ("sync", feeds, store_path, "--every", "1s", "--json")
    with running(*arguments, env=sandbox.env()) as process:
        assert json.loads(process.stdout.readline())["exit"] == 0
        sandbox.fault(on="data", every=1, status=403)
        sandbox.clock.advance("1h")
        out, err = process.communicate(timeout=60)
    last = json.loads(out.splitlines()[-1])
    assert process.returncode == last["exit"] == 3
    assert last["error"]["type"] == "ScopeError"
    assert "Traceback" not in err


def test_damage_and_usage_end_it_at_its_first_run(sandbox, feeds, store_path, tmp_path):
    sandbox.fault(on="data", drop=["nextCursor"])
    every = ("--every", "1s")
    document = run_json("sync", feeds, store_path, *every, env=sandbox.env(), status=7)
    assert document["error"]["type"] == "ProtocolError"
    missing = tmp_path / "missing" / "plant.siteline"
    run_command("sync", feeds, missing, *every, env=sandbox.env(), status=2)
    for wrong in ("soon", "0s", "999ms", "32d", "-5m"):
        done = run_command(
            "sync", feeds, store_path, f"--every={wrong}", env=sandbox.env(), status=2
        )
        assert done.stderr.startswith(f"siteline: --every '{wrong}' is not ")
    for single in (("--until", "2026-11-18"), ("--reread", "a/b"), ("--skip-code", "0")):
        done = run_command("sync", feeds, store_path, *every, *single, env=sandbox.env(), status=2)
        assert single[0] in done.stderr


def test_another_run_of_a_feed_is_waited_out(sandbox, feeds, store_path):
    lines = []
    with contextlib.ExitStack() as stack:

        def meanwhile(progress):
            if not lines:
                arguments = ("sync", feeds, store_path, "--every", "1s", "--json")
                process = stack.enter_context(running(*arguments, env=sandbox.env()))
                lines.extend((json.loads(process.stdout.readline()), process))

        with siteline.Store(store_path) as store:
            sandbox.client().sync(read_feeds(str(feeds)).feeds, store, progress=meanwhile)
        busy, process = lines
        done = json.loads(process.stdout.readline())
        while done["exit"] == 75:
            done = json.loads(process.stdout.readline())
        assert end(process)[0] == 0
    assert (busy["exit"], busy["error"]["type"]) == (75, "StoreBusy")
    assert (done["exit"], done["complete"]) == (0, True)


def test_a_second_signal_ends_a_run_whose_page_does_not_come(sandbox, feeds, store_path):
    sandbox.fault(on="data", skip=2, times=99, hang=True)
    with running(
        "sync", feeds, store_path, "--every", "1s", "--json", env=sandbox.env()
    ) as process:
        wait_until(lambda: sandbox.stats["data_requests"] == 3)

        def ended():
            process.send_signal(signal.SIGTERM)
            return process.poll() is not None

        wait_until(ended)
        out, err = process.communicate()
    assert process.returncode == 0
    line = json.loads(out)
    assert (line["exit"], line["stopped"], line["pages"]) == (0, "SIGTERM", 2)
    assert line["next_at"] is None
    assert err == ""
    sandbox.clear_faults()
    before = sandbox.stats["data_requests"]
    assert run_json("sync", feeds, store_path, env=sandbox.env())["complete"]
    assert sandbox.stats["data_requests"] > before


def test_a_closed_pipe_ends_it(sandbox, feeds, store_path):
    with running("sync", feeds, store_path, "--every", "1s", env=sandbox.env()) as process:
        process.stdout.readline()
        process.stdout.close()
        process.wait(timeout=60)
        assert process.returncode == 141
        assert process.stderr.read() == ""


# One run, in this process.


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (siteline.TransportError("no connection"), Ended(4, is_failure=True)),
        (siteline.ServiceUnavailable("failed"), Ended(4, is_failure=True)),
        (siteline.StoreFull("no space"), Ended(4, is_failure=True)),
        (siteline.RateLimited("later", retry_at=TEN_MINUTES_ON), Ended(4, 600.0)),
        (siteline.RateLimited("later"), Ended(4, is_failure=True)),
        (siteline.AllowanceExhausted("spent", retry_at=TEN_MINUTES_ON), Ended(5, 600.0)),
        (siteline.DeadlineExceeded("too long"), Ended(4)),
        (siteline.CursorLoop("again"), Ended(6)),
        (siteline.UnreadRange("aside", retry_at=TEN_MINUTES_ON), Ended(6)),
        (siteline.StoreBusy("busy"), Ended(75)),
    ],
)
def test_what_passes_is_left_to_the_next_turn(shared_sandbox, error, ended, capsys):
    service = failing(shared_sandbox.client(), error)
    assert service.run()[0] == ended
    assert f"siteline: {error.message}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        siteline.ScopeError("refused"),
        siteline.RequestRejected("refused"),
        siteline.ConfigError("wrong"),
        siteline.StoreError("wrong"),
        siteline.FeedChanged("changed"),
        siteline.StoreCorrupt("damaged"),
        siteline.ProtocolError("not JSON"),
        siteline.TlsError("not trusted"),
        siteline.InternalError("a bug"),
        BrokenPipeError("closed"),
        FileNotFoundError("missing"),
        RuntimeError("a bug"),
    ],
)
def test_what_does_not_pass_is_raised(shared_sandbox, error):
    with pytest.raises(type(error)):
        failing(shared_sandbox.client(), error).run()


def failing(client, error):
    """A service whose job raises this."""

    class FailingJob(Job):
        def run(self, progress):
            raise error

    job = FailingJob(client, (), (), "plant.siteline", {})
    return Service(job, None, Stop(), Notifier({}), as_json=False)


# A run that is asked to end.


def test_a_run_ends_at_the_next_page_and_what_was_applied_stays(
    sandbox, feeds, store_path, tmp_path, capsys
):
    file = read_feeds(str(feeds))
    metrics = MetricsFile(str(tmp_path / "siteline.prom"), str(store_path))

    class Ending(Notifier):
        def alive(self):
            if sandbox.stats["data_requests"] >= 2:
                os.kill(os.getpid(), signal.SIGTERM)

    with sandbox.client() as client, Stop() as stop:
        job = Job(client, file.feeds, ("line-1", "line-2"), str(store_path), {})
        service = Service(job, metrics, stop, Ending({}), as_json=False)
        with pytest.raises(Stopped), stop.after_a_page():
            service.run()
    assert sandbox.stats["data_requests"] == 2
    text = capsys.readouterr().out
    assert text == "2026-11-20 00:00:00 UTC, run 1: stopped by SIGTERM after 2 pages, which stay\n"
    assert "siteline_sync_complete" in (tmp_path / "siteline.prom").read_text()
    with siteline.Store(store_path) as store:
        assert len(store.points("line-1", unread="keep")) == 1_000
        rest = sandbox.client().sync(file.feeds, store)
    assert rest.complete
    assert rest.pages == sandbox.stats["data_requests"] - 2
