"""`siteline sync --metrics`: the file for node_exporter's textfile collector, after every run."""

import os
import re
import signal
import stat
import time

import pytest
import siteline
from kit import systems
from kit.command import run_command, run_json, start_command
from kit.feeds_file import write_feeds
from kit.waiting import wait_until
from siteline.cli.metrics import MetricsFile, RunFacts

SAMPLE = re.compile(
    r'([a-z_]+)\{store="(?:[^"\\]|\\.)*"(?:,feed="((?:[^"\\]|\\.)*)")?'
    r'(?:,kind="([a-z]+)",status="(\w+)")?\} (\S+)'
)
FAILURE = {"on": "data", "times": 4, "status": 503}


@pytest.fixture
def feeds(tmp_path):
    return write_feeds(tmp_path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "siteline.prom"


@pytest.fixture
def sync(sandbox, feeds, tmp_path, path):
    """Returns a function that runs a sync with metrics."""

    def sync(*more, store="plant", env=None, **options):
        words = ("sync", feeds, tmp_path / store, "--metrics", path, *more)
        return run_command(*words, env={**sandbox.env(), **(env or {})}, **options)

    return sync


def read_metrics(path):
    """Read the file as Prometheus does: a dict of (name without prefix, feed) to number.

    For counts of requests, the second part of the key is their kind and status.
    """
    read, described = {}, set()
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            help_of = line.split()[2]
            assert help_of not in described, "a family is written in one piece"
            described.add(help_of)
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {help_of} gauge"
        else:
            name, feed, kind, status, value = SAMPLE.fullmatch(line).groups()
            assert name == help_of
            key = (name.removeprefix("siteline_"), feed or (kind and (kind, status)))
            assert key not in read
            read[key] = float(value)
    return read


def test_a_run_writes_feeds_and_allowance(sandbox, feeds, tmp_path, path):
    before = time.time()
    env = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "500"}
    report = run_json("sync", feeds, tmp_path / "plant", "--metrics", path, env=env)
    told = read_metrics(path)
    for name in ("sync_last_run", "sync_last_success"):
        assert before - 1 <= told.pop((f"{name}_timestamp_seconds", None)) <= time.time() + 1
    assert told["sync_received_bytes", None] > 1_000
    expected = {
        ("sync_complete", None): 1,
        ("sync_exit_status", None): 0,
        ("sync_requests", None): report["requests"],
        ("sync_pages", None): report["pages"],
        ("sync_http_requests", ("data", "200")): report["requests"],
        ("sync_http_requests", ("token", "200")): 1,
        ("sync_http_requests", ("discovery", "200")): 1,
        ("sync_exchanges", None): 1,
        ("sync_received_bytes", None): told["sync_received_bytes", None],
        ("sync_points", None): sum(feed["inserted"] for feed in report["feeds"]),
        ("allowance_used", None): report["requests"],
        ("allowance_limit", None): 500,
        ("allowance_left", None): 500 - report["requests"],
        ("allowance_resets_at", None): 1_795_219_200,
    }
    for feed in report["feeds"]:
        for name in ("inserted", "revised", "unchanged", "withdrawn"):
            expected[(f"sync_points_{name}", feed["name"])] = feed[name]
        expected[("sync_settled_through_timestamp_seconds", feed["name"])] = 1_795_046_400
        expected[("sync_read_through_timestamp_seconds", feed["name"])] = 1_795_132_500
        expected[("sync_skipped_ranges", feed["name"])] = 0
    assert told == expected
    text = path.read_text()
    assert f'{{store="{tmp_path / "plant"}"}}' in text
    for secret in ("SITELINE_SUBJECT", "SITELINE_PRIVATE_KEY"):
        assert sandbox.env()[secret] not in text


def test_unread_feeds_have_no_time(sync, path):
    env = {"SITELINE_DAILY_ALLOWANCE": "1"}
    # A skip code changes the status of the process, and not that in the metrics.
    sync("--skip-code", 0, "--concurrency", 1, env=env)
    told = read_metrics(path)
    assert (told["sync_complete", None], told["sync_exit_status", None]) == (0, 5)
    assert told["allowance_left", None] == 0
    assert told["sync_points_inserted", "line-2"] == 0
    assert not [name for name, _ in told if "through" in name or "success" in name]


def test_a_failed_run_keeps_earlier_values(sandbox, sync, feeds, path):
    sync()
    first = read_metrics(path)
    sandbox.clock.advance("1h")
    sandbox.fault(**FAILURE)
    sync("--concurrency", 1, status=4)
    second = read_metrics(path)
    success, run = (f"sync_last_{name}_timestamp_seconds" for name in ("success", "run"))
    assert second[success, None] == first[success, None]
    assert second[run, None] > first[run, None]
    assert (second["sync_complete", None], second["sync_exit_status", None]) == (0, 4)
    through = "sync_read_through_timestamp_seconds"
    for feed in ("line-1", "line-2"):
        assert second[through, feed] == first[through, feed]
    assert ("sync_pages", None) not in second
    assert second["sync_http_requests", ("data", "503")] == 4
    assert second["sync_points", None] == 0
    assert ("sync_points_inserted", "line-1") not in second
    assert ("allowance_used", None) in second
    # A run that could not begin is recorded too.
    text = feeds.read_text()
    feeds.write_text("[feeds.")
    sync(status=2)
    assert read_metrics(path)["sync_exit_status", None] == 2
    feeds.write_text(text)
    sync()
    third = read_metrics(path)
    assert third[success, None] > second[success, None]
    assert third[through, "line-1"] == first[through, "line-1"] + 3_600
    # The values of another store are not kept.
    sandbox.fault(**FAILURE)
    sync("--concurrency", 1, store="other", status=4)
    assert not [name for name, _ in read_metrics(path) if "success" in name]


def test_feeds_that_are_gone_are_dropped(sync, feeds, path):
    sync()
    sync("--feed", "line-2")
    assert ("sync_read_through_timestamp_seconds", "line-1") in read_metrics(path)
    feeds.write_text(feeds.read_text().replace("[feeds.line-1]", "[feeds.line-3]"))
    sync("--feed", "line-2")
    told = read_metrics(path)
    assert ("sync_read_through_timestamp_seconds", "line-2") in told
    assert "line-1" not in {feed for _, feed in told}


def test_names_of_feeds_are_escaped(sandbox, sync, feeds, path):
    text = "[feeds.'{}']\nsite='S1'\nline='L1'\ninterval='1h'\nstart=2026-11-19\n"
    feeds.write_text(text.format('a "line" \\ of ours'))
    sync()
    key = ("sync_read_through_timestamp_seconds", 'a \\"line\\" \\\\ of ours')
    first = read_metrics(path)[key]
    sandbox.clock.advance("2h")
    sandbox.fault(**FAILURE)
    sync(status=4)
    assert read_metrics(path)[key] == first


@systems.MODES
def test_node_exporter_can_read_the_file(tmp_path):
    for _ in range(2):
        MetricsFile(str(tmp_path / "siteline.prom"), "plant").record(RunFacts(4))
        assert stat.S_IMODE((tmp_path / "siteline.prom").stat().st_mode) == 0o644
        assert os.listdir(tmp_path) == ["siteline.prom"]


@systems.MODES
def test_only_metrics_are_replaced(sandbox, feeds, tmp_path):
    store, pipe = tmp_path / "plant.siteline", tmp_path / "pipe.prom"
    os.mkfifo(pipe)
    for other, why in (
        (tmp_path / "missing" / "siteline.prom", "No such file or directory"),
        (feeds, "it is not a file of metrics of siteline"),
        (store, "it is not a file of metrics of siteline"),
        (tmp_path, "it is not a regular file"),
        (pipe, "it is not a regular file"),
    ):
        done = run_command("sync", feeds, store, "--metrics", other, env=sandbox.env())
        warning = f"siteline: warning: the metrics were not written to {other}: {why}\n"
        assert done.stderr == warning
        assert done.stdout.startswith("Sync complete")
    with siteline.Store(store) as opened:
        assert len(opened.read("line-2")) > 0
    assert "[feeds.line-1]" in feeds.read_text()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@systems.SIGNALS
def test_ctrl_c_is_recorded(sandbox, feeds, tmp_path, path):
    sandbox.fault(on="data", skip=2, times=99, hang=True)
    words = ("sync", feeds, tmp_path / "plant", "--metrics", path, "--concurrency=1")
    process = start_command(*words, env=sandbox.env())
    wait_until(lambda: sandbox.stats.data_requests >= 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "siteline: interrupted\n")
    assert read_metrics(path)["sync_exit_status", None] == 130
