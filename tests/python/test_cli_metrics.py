"""`siteline sync --metrics`: the file for node_exporter's textfile collector, after every run."""

import errno
import os
import re
import signal
import stat
import subprocess
import time

import pytest
import siteline
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from kit.feeds_file import write_feeds
from kit.waiting import wait_until
from siteline.cli.metrics import MetricsFile, RunFacts

SAMPLE = re.compile(
    r'([a-z_]+)\{store="(?:[^"\\]|\\.)*"(?:,feed="((?:[^"\\]|\\.)*)")?'
    r'(?:,kind="([a-z]+)",status="(\w+)")?\} (\S+)'
)


@pytest.fixture
def feeds(tmp_path):
    return write_feeds(tmp_path)


def read_metrics(path):
    """Read the file as Prometheus does: a dict of (name without prefix, feed) to number.

    In the place of the feed, counts of requests have their kind and status.
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


def test_a_run_is_told_with_its_feeds_and_the_allowance(sandbox, feeds, tmp_path):
    path, before = tmp_path / "siteline.prom", time.time()
    env = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "500"}
    report = run_json("sync", feeds, tmp_path / "plant", "--metrics", path, env=env)
    told = read_metrics(path)
    assert before - 1 <= told.pop(("sync_last_run_timestamp_seconds", None)) <= time.time() + 1
    assert before - 1 <= told.pop(("sync_last_success_timestamp_seconds", None)) <= time.time() + 1
    expected = {
        ("sync_complete", None): 1,
        ("sync_exit_status", None): 0,
        ("sync_requests", None): report["requests"],
        ("sync_pages", None): report["pages"],
        ("sync_http_requests", ("data", "200")): report["requests"],
        ("sync_http_requests", ("token", "200")): 1,
        ("sync_exchanges", None): 1,
        ("sync_received_bytes", None): told["sync_received_bytes", None],
        ("sync_points", None): sum(feed["inserted"] for feed in report["feeds"]),
        ("allowance_used", None): report["requests"],
        ("allowance_limit", None): 500,
        ("allowance_left", None): 500 - report["requests"],
        ("allowance_resets_at", None): 1_795_219_200,
    }
    for feed in report["feeds"]:
        for name in ("inserted", "revised", "unchanged", "flagged"):
            expected[(f"sync_points_{name}", feed["name"])] = feed[name]
        expected[("sync_settled_through_timestamp_seconds", feed["name"])] = 1_795_046_400
        expected[("sync_read_through_timestamp_seconds", feed["name"])] = 1_795_132_500
        expected[("sync_set_aside_ranges", feed["name"])] = 0
    assert told == expected
    assert told["sync_received_bytes", None] > 1_000
    assert f'{{store="{tmp_path / "plant"}"}}' in path.read_text()


def test_what_was_never_read_has_no_time(sandbox, feeds, tmp_path):
    path = tmp_path / "siteline.prom"
    env = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "1"}
    run_command("sync", feeds, tmp_path / "plant", "--metrics", path, env=env, status=5)
    told = read_metrics(path)
    assert (told["sync_complete", None], told["sync_exit_status", None]) == (0, 5)
    assert told["allowance_left", None] == 0
    assert told["sync_points_inserted", "line-2"] == 0
    assert not [name for name, _ in told if "through" in name or "success" in name]


def test_a_skip_code_is_not_in_the_metrics(sandbox, feeds, tmp_path):
    path = tmp_path / "siteline.prom"
    env = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "1"}
    arguments = ("sync", feeds, tmp_path / "plant", "--metrics", path, "--skip-code", 0)
    run_command(*arguments, env=env)
    assert read_metrics(path)["sync_exit_status", None] == 5


def test_a_failed_run_keeps_what_it_did_not_change(sandbox, feeds, tmp_path):
    path, store = tmp_path / "siteline.prom", tmp_path / "plant"
    run_command("sync", feeds, store, "--metrics", path, env=sandbox.env())
    first = read_metrics(path)
    sandbox.clock.advance("1h")
    sandbox.fault(on="data", times=4, status=503)
    run_command("sync", feeds, store, "--metrics", path, env=sandbox.env(), status=4)
    second = read_metrics(path)
    kept = ("sync_last_success_timestamp_seconds", None)
    assert second[kept] == first[kept]
    run = ("sync_last_run_timestamp_seconds", None)
    assert second[run] > first[run]
    assert (second["sync_complete", None], second["sync_exit_status", None]) == (0, 4)
    for feed in ("line-1", "line-2"):
        name = ("sync_read_through_timestamp_seconds", feed)
        assert second[name] == first[name]
    assert ("sync_pages", None) not in second
    assert second["sync_http_requests", ("data", "503")] == 4
    assert second["sync_points", None] == 0
    assert ("sync_points_inserted", "line-1") not in second
    assert ("allowance_used", None) in second

    run_command("sync", feeds, store, "--metrics", path, env=sandbox.env())
    third = read_metrics(path)
    assert third[kept] > second[kept]
    assert third[name] == first[name] + 3_600


def test_a_run_that_could_not_begin_is_told_too(sandbox, feeds, tmp_path):
    path, store = tmp_path / "siteline.prom", tmp_path / "plant"
    run_command("sync", feeds, store, "--metrics", path, env=sandbox.env())
    first = read_metrics(path)
    feeds.write_text("[feeds.")
    run_command("sync", feeds, store, "--metrics", path, env=sandbox.env(), status=2)
    second = read_metrics(path)
    assert (second["sync_exit_status", None], second["sync_complete", None]) == (2, 0)
    name = ("sync_settled_through_timestamp_seconds", "line-2")
    assert second[name] == first[name]


def test_a_run_of_one_feed_keeps_the_others_and_drops_feeds_that_are_gone(sandbox, feeds, tmp_path):
    path, store = tmp_path / "siteline.prom", tmp_path / "plant"
    arguments = ("sync", feeds, store, "--metrics", path)
    run_command(*arguments, env=sandbox.env())
    run_command(*arguments, "--feed", "line-2", env=sandbox.env())
    assert ("sync_read_through_timestamp_seconds", "line-1") in read_metrics(path)
    feeds.write_text(feeds.read_text().replace("[feeds.line-1]", "[feeds.line-3]"))
    run_command(*arguments, "--feed", "line-2", env=sandbox.env())
    told = read_metrics(path)
    assert ("sync_read_through_timestamp_seconds", "line-2") in told
    assert "line-1" not in {feed for _, feed in told}


def test_another_stores_samples_are_not_taken_over(sandbox, feeds, tmp_path):
    path = tmp_path / "siteline.prom"
    run_command("sync", feeds, tmp_path / "plant", "--metrics", path, env=sandbox.env())
    sandbox.fault(on="data", times=4, status=503)
    run_command("sync", feeds, tmp_path / "other", "--metrics", path, env=sandbox.env(), status=4)
    assert not [name for name, _ in read_metrics(path) if "success" in name]


def test_names_are_escaped_and_survive_a_failed_run(sandbox, tmp_path):
    name = 'a "line" \\ of ours'
    feeds = write_feeds(
        tmp_path, f"[feeds.'{name}']\nsite='S1'\nline='L1'\ninterval='1h'\nsince=2026-11-19\n"
    )
    path = tmp_path / "siteline.prom"
    arguments = ("sync", feeds, tmp_path / "plant", "--metrics", path)
    run_command(*arguments, env=sandbox.env())
    escaped = 'a \\"line\\" \\\\ of ours'
    key = ("sync_read_through_timestamp_seconds", escaped)
    first = read_metrics(path)[key]
    sandbox.clock.advance("2h")
    sandbox.fault(on="data", times=4, status=503)
    run_command(*arguments, env=sandbox.env(), status=4)
    assert read_metrics(path)[key] == first


@systems.MODES
def test_the_file_can_be_read_by_node_exporter_and_nothing_is_left_beside_it(
    sandbox, feeds, tmp_path
):
    folder = tmp_path / "textfile"
    folder.mkdir()
    path = folder / "siteline.prom"
    for _ in range(2):
        run_command("sync", feeds, tmp_path / "plant", "--metrics", path, env=sandbox.env())
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert os.listdir(folder) == ["siteline.prom"]
    text = path.read_text()
    for secret in ("SITELINE_SUBJECT", "SITELINE_PRIVATE_KEY"):
        assert sandbox.env()[secret] not in text


def test_a_file_that_cannot_be_written_is_a_warning(sandbox, feeds, tmp_path):
    path = tmp_path / "missing" / "siteline.prom"
    arguments = ("sync", feeds, tmp_path / "plant", "--metrics", path)
    done = run_command(*arguments, env=sandbox.env())
    assert done.stderr == (
        f"siteline: warning: the metrics were not written to {path}: No such file or directory\n"
    )
    assert done.stdout.startswith("Sync complete")
    sandbox.clock.advance("1h")
    sandbox.fault(on="data", times=4, status=503)
    assert "warning" in run_command(*arguments, env=sandbox.env(), status=4).stderr


def test_nothing_is_left_beside_a_file_that_cannot_be_replaced(tmp_path, monkeypatch, capsys):
    path = tmp_path / "siteline.prom"
    metrics = MetricsFile(str(path), "plant.siteline")
    metrics.record(RunFacts(4))
    before = path.read_text()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("chmod", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            metrics.record(RunFacts(7))
        assert capsys.readouterr().err.endswith(f"{path}: No space left on device\n")
        assert (os.listdir(tmp_path), path.read_text()) == (["siteline.prom"], before)


def test_what_is_no_file_of_metrics_is_not_replaced(sandbox, feeds, tmp_path):
    store = tmp_path / "plant.siteline"
    for other in (feeds, store):
        done = run_command("sync", feeds, store, "--metrics", other, env=sandbox.env())
        assert f"{other}: it is something else than metrics" in done.stderr
    with siteline.Store(store) as opened:
        assert len(opened.points("line-2")) > 0
    assert "[feeds.line-1]" in feeds.read_text()
    folder = run_command("sync", feeds, store, "--metrics", tmp_path, env=sandbox.env())
    assert "not a regular file" in folder.stderr


@systems.MODES
def test_a_device_or_pipe_stays_what_it_is(sandbox, feeds, tmp_path):
    pipe = tmp_path / "pipe.prom"
    os.mkfifo(pipe)
    done = run_command("sync", feeds, tmp_path / "plant", "--metrics", pipe, env=sandbox.env())
    assert "not a regular file" in done.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@systems.SIGNALS
def test_ctrl_c_is_told_too(sandbox, feeds, tmp_path):
    path = tmp_path / "siteline.prom"
    sandbox.fault(on="data", skip=2, times=99, hang=True)
    process = subprocess.Popen(
        [*COMMAND, "sync", feeds, tmp_path / "plant", "--metrics", path],
        env=environment(sandbox.env()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: sandbox.stats["data_requests"] == 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "siteline: interrupted\n")
    assert read_metrics(path)["sync_exit_status", None] == 130
    with siteline.Store(tmp_path / "plant") as store:
        assert len(store.points("line-1", unread="keep")) == 1_000
