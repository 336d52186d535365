"""`siteline sync --every`: runs again and again, and ends when it is asked to."""

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
from siteline.cli.feeds import read_feeds
from siteline.cli.job import Job
from siteline.cli.metrics import MetricsFile
from siteline.cli.schedule import Ended
from siteline.cli.service import Service
from siteline.cli.stopping import Stop, Stopped
from siteline.cli.systemd import Notifier

pytestmark = systems.SIGNALS
IN_TEN_MINUTES = datetime(2026, 11, 20, 0, 10, tzinfo=UTC)


@pytest.fixture
def words(tmp_path):
    """The words of the command, without its name."""
    return (write_feeds(tmp_path), tmp_path / "plant.siteline", "--every", "1s")


def test_it_runs_until_sigterm(sandbox, words):
    with running("sync", *words, env=sandbox.env()) as process:
        first = process.stdout.readline()
        sandbox.clock.advance("1h")
        second = process.stdout.readline()
        while "read through 2026-11-19" in second:
            # The run began before the clock moved.
            second = process.stdout.readline()
        status, _, err = end(process)
    assert first.startswith("2026-11-20 00:00:00 UTC, run 1: complete, ")
    assert "read through 2026-11-19 23:55; next run 2026-11-20 00:00:0" in first
    assert "read through 2026-11-20 00:55; next run 2026-11-20 01:0" in second
    assert (status, err) == (0, "")
    with siteline.Store(words[1]) as store:
        assert len(store.read("line-2")) > 0


def test_a_signal_ends_the_wait_for_an_allowance(sandbox, words):
    env = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "2"}
    with running("sync", *words, "--json", env=env) as process:
        line = json.loads(process.stdout.readline())
        status, rest, _ = end(process, signal.SIGINT)
    assert (line["schema"], line["command"], line["exit"], line["run"]) == (1, "sync", 5, 1)
    assert (line["complete"], line["requests"]) == (False, 2)
    assert line["next_at"].startswith("2026-11-21T00:00:0")
    assert (status, rest) == (130, "")


def test_only_a_lasting_failure_ends_it(sandbox, words, tmp_path):
    metrics = tmp_path / "siteline.prom"
    sandbox.fault(on="data", times=4, status=503)
    words = [*words, "--concurrency", "1"]
    with running("sync", *words, "--json", "--metrics", metrics, env=sandbox.env()) as process:
        failed = json.loads(process.stdout.readline())
        assert 'siteline_sync_exit_status{store="' in metrics.read_text()
        done = json.loads(process.stdout.readline())
        sandbox.fault(on="data", every=1, status=403)
        sandbox.clock.advance("1h")
        out, err = process.communicate(timeout=60)
    assert (failed["exit"], failed["error"]["type"]) == (4, "ServiceUnavailable")
    assert "siteline: the service failed at GET" in err
    assert (done["exit"], done["run"], done["complete"]) == (0, 2, True)
    last = json.loads(out.splitlines()[-1])
    assert process.returncode == last["exit"] == 3
    assert last["error"]["type"] == "ScopeError"
    assert "Traceback" not in err


def test_damage_and_usage_end_it_at_once(sandbox, words, tmp_path):
    env = sandbox.env()
    sandbox.fault(on="data", drop=["nextCursor"])
    assert run_json("sync", *words, env=env, status=7)["error"]["type"] == "ProtocolError"
    missing = tmp_path / "missing" / "plant.siteline"
    run_command("sync", words[0], missing, *words[2:], env=env, status=2)
    for wrong in ("soon", "0s", "999ms", "32d", "-5m"):
        told = run_command("sync", *words[:2], f"--every={wrong}", env=env, status=2).stderr
        assert told.startswith(f"siteline: --every '{wrong}' is not ")
    for single in (("--until", "2026-11-18"), ("--reread", "a/b"), ("--skip-code", "0")):
        assert single[0] in run_command("sync", *words, *single, env=env, status=2).stderr


def test_a_busy_feed_is_waited_for(sandbox, words):
    feeds, store_path = words[:2]
    lines = []
    with contextlib.ExitStack() as stack:

        def meanwhile(_progress):
            if not lines:
                process = stack.enter_context(
                    running("sync", *words, "--json", env=sandbox.env())
                )  # fmt: skip
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


def service_of(job, metrics=None, stop=None, notifier=None):
    return Service(job, metrics, stop or Stop(), notifier or Notifier({}), as_json=False)


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (siteline.errors.TransportError("no connection"), Ended(4, is_failure=True)),
        (siteline.errors.StoreFull("no space"), Ended(4, is_failure=True)),
        (siteline.errors.RateLimited("later", retry_at=IN_TEN_MINUTES), Ended(4, 600.0)),
        (siteline.errors.RateLimited("later"), Ended(4, is_failure=True)),
        (siteline.errors.AllowanceExhausted("spent", retry_at=IN_TEN_MINUTES), Ended(5, 600.0)),
        (siteline.errors.DeadlineExceeded("too long"), Ended(4)),
        (siteline.errors.CursorLoop("again"), Ended(6)),
        (siteline.errors.UnreadRange("aside", retry_at=IN_TEN_MINUTES), Ended(6)),
        (siteline.errors.StoreBusy("busy"), Ended(75)),
        *((kind("lasts"), None) for kind in (
            siteline.errors.ScopeError,
            siteline.errors.ConfigError, siteline.errors.StoreError,
            siteline.errors.StoreCorrupt, siteline.errors.ProtocolError,
            siteline.errors.TlsError, siteline.errors.InternalError, BrokenPipeError,
            FileNotFoundError, RuntimeError,
        )),
    ],
)  # fmt: skip
def test_an_error_ends_a_run_or_the_service(shared_sandbox, error, ended, capsys):
    class FailingJob(Job):
        def run(self, progress):
            raise error

    service = service_of(FailingJob(shared_sandbox.client(), (), (), "plant.siteline", {}))
    if ended is None:
        with pytest.raises(type(error)):
            service.run()
    else:
        assert service.run()[0] == ended
        assert f"siteline: {error.message}\n" in capsys.readouterr().err


def test_a_signal_ends_a_run_after_its_page(sandbox, words, tmp_path, capsys):
    feeds, store_path = read_feeds(str(words[0])).feeds, str(words[1])
    metrics = MetricsFile(str(tmp_path / "siteline.prom"), store_path)

    class Ending(Notifier):
        def alive(self):
            if sandbox.stats.data_requests >= 2:
                os.kill(os.getpid(), signal.SIGTERM)

    with sandbox.client() as client, Stop() as stop:
        job = Job(client, feeds, ("line-1", "line-2"), store_path, {"concurrency": 1})
        with pytest.raises(Stopped), stop.after_a_page():
            service_of(job, metrics, stop, Ending({})).run()
    assert sandbox.stats.data_requests == 2
    text = capsys.readouterr().out
    assert text == "2026-11-20 00:00:00 UTC, run 1: stopped by SIGTERM after 2 pages, which stay\n"
    assert "siteline_sync_complete" in (tmp_path / "siteline.prom").read_text()
    with siteline.Store(store_path) as store:
        assert len(store.read("line-1", unread="keep")) == 1_000
        rest = sandbox.client().sync(feeds, store)
    assert rest.complete
    assert rest.pages == sandbox.stats.data_requests - 2
