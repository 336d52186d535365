"""`siteline pull` that ends early: what is kept, what goes on, and what is left alone."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys

import pytest
import siteline
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from kit.waiting import wait_until

pytestmark = pytest.mark.once

RANGE = {"site": "S1", "line": "L2", "start": "2026-11-01T00:00Z", "end": "2026-11-08T00:00Z"}
QUERY = [part for name, value in RANGE.items() for part in (f"--{name}", value)]
QUERY += ["--interval", "1h", "--page-size", "100"]
PAGES = 11
SPOOL = ".out.csv.siteline-part"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()


def env_of(sandbox):
    """The variables of the sandbox, and a folder for temporary files that nobody else uses."""
    return {**sandbox.env(), "TMPDIR": os.path.abspath("tmp")}


def files():
    """The names in the folder, and in that of temporary files."""
    return sorted({*os.listdir(), *os.listdir("tmp")} - {"tmp"})


def is_complete(sandbox, path="out.csv"):
    """Whether the file has all points of the service, each once."""
    with open(path, encoding="utf-8", newline="") as file:
        found = [(row["tag_guid"], row["timestamp"], row["value"]) for row in csv.DictReader(file)]
    truth = sandbox.truth(**RANGE, interval="1h").records()
    return found == [
        (row["tag_guid"], row["timestamp"].strftime("%Y-%m-%dT%H:%M:%SZ"), repr(row["value"]))
        for row in truth
    ]


@contextlib.contextmanager
def hanging(sandbox, *arguments, after):
    """A pull whose next page after so many does not come, so that it waits there."""
    sandbox.fault(on="data", hang=True, skip=after, times=1)
    before = sandbox.stats["data_requests"]
    process = subprocess.Popen(
        [*COMMAND, "pull", *arguments],
        env=environment(env_of(sandbox)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: sandbox.stats["data_requests"] == before + after + 1)
        yield process
    finally:
        process.kill()
        process.communicate()
        sandbox.clear_faults()


def pull(sandbox, *arguments, how=run_command, output="out.csv", **options):
    """Run a pull in this process; returns the finished command, or its document."""
    return how("pull", "-o", output, *arguments, env=env_of(sandbox), **options)


def fail_after(sandbox, pages, *arguments, **options):
    """A pull that ends with exit status 4 after so many pages."""
    sandbox.fault(on="data", status=503, skip=pages, times=4)
    done = pull(sandbox, *(arguments or QUERY), status=4, **options)
    sandbox.clear_faults()
    return done


@systems.SIGNALS
def test_a_killed_pull_goes_on_at_the_page_that_it_was_at(sandbox):
    with hanging(sandbox, "-o", "out.csv", *QUERY, after=4) as process:
        process.kill()
        process.wait()
    assert SPOOL in files()
    assert "out.csv" not in files()
    document = pull(sandbox, "--resume", *QUERY, how=run_json)
    # The kill may come before the last of the four pages is stored.
    kept = document["resumed_after_pages"]
    assert 3 <= kept <= 4
    assert document["pages"] == PAGES - kept
    assert sandbox.stats["data_requests"] == 5 + PAGES - kept
    assert is_complete(sandbox)
    assert files() == ["out.csv"]


def test_a_failure_keeps_the_spool_and_says_so_where_nobody_watches(sandbox):
    done = fail_after(sandbox, 3)
    assert "3 pages. The same command with --resume goes on there." in done.stderr
    again = pull(sandbox, *QUERY, status=2)
    assert "has 3 pages of an earlier run" in again.stderr
    assert "--resume goes on there, --restart removes them" in again.stderr
    before = sandbox.stats["data_requests"]
    document = pull(sandbox, "--restart", *QUERY, how=run_json)
    assert (document["resumed_after_pages"], document["pages"]) == (0, PAGES)
    assert sandbox.stats["data_requests"] == before + PAGES
    assert files() == ["out.csv"]


def test_a_failure_before_the_first_page_leaves_nothing(sandbox):
    done = fail_after(sandbox, 0)
    assert "nothing is kept" in done.stderr
    assert files() == []


def test_another_query_is_not_resumed(sandbox):
    fail_after(sandbox, 2)
    before, spool = sandbox.stats["requests"], os.stat(SPOOL).st_ino
    start = "--start was 2026-11-01T00:00:00Z, now 2026-11-02T00:00:00Z"
    for name, value, said in (
        ("--line", "L1", "--line was L2, now L1"),
        ("--start", "2026-11-02", start),
        ("--end", "2026-11-09", "--end was 2026-11-08T00:00:00Z, now 2026-11-09T00:00:00Z"),
        ("--interval", "5m", "--interval was 1 h, now 5 min"),
        ("--page-size", "50", "--page-size was 100, now 50"),
        ("--filter", "machineId=M1", "--filter was not given, now machineId=M1"),
    ):
        told = pull(sandbox, "--resume", *QUERY, name, value, status=2).stderr
        assert f"was begun with another query: {said}." in told
    assert sandbox.stats["requests"] == before
    assert os.stat(SPOOL).st_ino == spool


def test_an_end_that_was_left_out_stays_that_of_the_first_run(sandbox):
    query = [*QUERY[:6], *QUERY[8:]]
    sandbox.fault(on="data", status=503, skip=2, times=4)
    pull(sandbox, *query, status=4)
    sandbox.clear_faults()
    sandbox.clock.advance("3h")
    done = pull(sandbox, "--resume", *QUERY, status=2)
    assert "--end was not given, now 2026-11-08T00:00:00Z" in done.stderr
    document = pull(sandbox, "--resume", *query, how=run_json)
    assert document["end"] == "2026-11-19T23:00:00Z"
    assert document["resumed_after_pages"] == 2


def test_the_pages_of_another_subject_stay(sandbox, key):
    fail_after(sandbox, 2)
    key.save("other.pem")
    other = {
        **env_of(sandbox),
        "SITELINE_SUBJECT": sandbox.enroll(key.public_jwk),
        "SITELINE_PRIVATE_KEY_FILE": "other.pem",
    }
    other.pop("SITELINE_PRIVATE_KEY", None)
    for query in (QUERY, []):
        done = run_command("pull", "-o", "out.csv", "--resume", *query, env=other, status=2)
        assert "at another service, or for another subject" in done.stderr


@pytest.mark.sandbox(daily_allowance=4)
def test_a_spent_allowance_ends_it_and_the_next_days_go_on(sandbox):
    arguments = ["pull", "-o", "out.csv", *QUERY, "--resume"]
    first = run_json(*arguments, env=env_of(sandbox), status=5)
    assert first["error"]["type"] == "AllowanceExhausted"
    assert first["error"]["retry_at"] == "2026-11-21T00:00:00Z"
    assert "There are requests again from 2026-11-21 00:00 UTC on." in first["error"]["hint"]
    assert "sync(" not in first["error"]["hint"]
    assert (first["pages"], os.path.basename(first["spool"])) == (4, SPOOL)
    sandbox.clock.advance("1d")
    second = run_command(*arguments, "--skip-code", "99", env=env_of(sandbox), status=99)
    assert "8 pages" in second.stderr
    sandbox.clock.advance("1d")
    third = run_json(*arguments, env=env_of(sandbox))
    assert (third["resumed_after_pages"], third["pages"]) == (8, PAGES - 8)
    assert is_complete(sandbox)


@systems.SIGNALS
def test_a_second_pull_is_busy(sandbox):
    words = ["--spool", "my.spool", *QUERY]
    with hanging(sandbox, "-o", "out.csv", *words, after=4) as first:
        for more in ([], ["--resume"], ["--restart"]):
            second = pull(sandbox, *words, *more, how=run_json, status=75)
            assert second["error"]["type"] == "StoreBusy"
        # The spool is busy for another output, too.
        pull(sandbox, *words, "--restart", output="-", status=75)
        assert sandbox.stats["data_requests"] == 5
        assert "my.spool" in files()
        first.send_signal(signal.SIGINT)
        assert first.wait(60) == 130
    rest = pull(sandbox, "--resume", "--spool", "my.spool", how=run_json)
    assert rest["pages"] + rest["resumed_after_pages"] == PAGES


# Runs a command that may write no file longer than some bytes.
SHORT_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000))
os.execv(sys.argv[1], sys.argv[1:])
"""


@systems.SIGNALS
def test_an_output_that_cannot_be_written_costs_no_page_again(sandbox):
    fail_after(sandbox, PAGES - 1)
    with open("out.csv", "w", encoding="utf-8") as file:
        file.write("old")
    done = subprocess.run(
        [sys.executable, "-c", SHORT_FILES, *COMMAND, "pull", "-o", "out.csv", "--resume", *QUERY],
        env=environment(env_of(sandbox)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done
    assert "File too large" in done.stderr
    assert f"{PAGES} pages. The same command with --resume" in done.stderr
    with open("out.csv", encoding="utf-8") as file:
        assert file.read() == "old"
    assert ".out.csv.siteline-new" not in files()
    before = sandbox.stats["data_requests"]
    document = pull(sandbox, "--resume", how=run_json)
    assert (document["pages"], document["requests"]) == (0, 0)
    assert sandbox.stats["data_requests"] == before
    assert is_complete(sandbox)
    assert files() == ["out.csv"]


def test_a_store_with_feeds_is_no_spool(sandbox):
    with siteline.Store("plant.siteline") as store:
        feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
        sandbox.client().sync(feed, store)
        points = len(store.points(feed))
    for more in ([], ["--restart"], ["--resume"]):
        done = pull(sandbox, "--spool", "plant.siteline", *QUERY, *more, status=2)
        assert "is a store with feeds of your own" in done.stderr
    with siteline.Store("plant.siteline", read_only=True) as store:
        assert len(store.points(feed)) == points


def test_a_file_that_is_no_store_is_no_spool_and_is_left_alone(sandbox):
    for name, more in (("notes.txt", ["--restart"]), ("notes.txt", [])):
        with open(name, "w", encoding="utf-8") as file:
            file.write("mine")
        arguments = ["pull", "-o", "out.csv", "--spool", name, *QUERY, *more]
        run_command(*arguments, env=env_of(sandbox), status=2)
        with open(name, encoding="utf-8") as file:
            assert file.read() == "mine"


def test_a_damaged_spool_is_named_and_restart_replaces_it(sandbox):
    with open(SPOOL, "wb") as file:
        file.write(b"SQLite format 3\0" + bytes(4080))
    done = pull(sandbox, "--resume", *QUERY, status=7)
    assert "--restart removes the spool" in done.stderr
    pull(sandbox, "--restart", *QUERY)
    assert is_complete(sandbox)
    assert files() == ["out.csv"]


def test_a_chain_that_the_service_did_not_end_is_begun_again_when_asked(sandbox):
    sandbox.fault(on="data", repeat_cursor=True, skip=1, times=100)
    done = pull(sandbox, *QUERY, status=6)
    assert "--resume begins the chain anew." in done.stderr
    assert "sync(" not in done.stderr
    sandbox.clear_faults()
    document = pull(sandbox, "--resume", *QUERY, how=run_json)
    assert document["pages"] == PAGES
    assert is_complete(sandbox)


def test_what_a_chain_that_is_begun_anew_does_not_bring_is_not_in_the_output(sandbox):
    import pyarrow as pa

    at = [siteline.Clock(f"2026-11-01T0{hour}:00Z").now() for hour in range(6)]
    values = {"value": [float(hour) for hour in range(6)], "minimum": [0.0] * 6}
    values |= {"maximum": [9.0] * 6, "sample_count": [1] * 6}
    sandbox.load(pa.table({"timestamp": at, **values}))
    query = ["--site", "S1", "--line", "L1", "--filter", "tagGuid=T1", "--page-size", "2"]
    query += ["--start", "2026-11-01", "--end", "2026-11-02", "--interval", "1h"]
    arguments = ["pull", "-o", "out.jsonl", *query]
    sandbox.fault(on="data", repeat_cursor=True, skip=1, times=100)
    run_command(*arguments, env=env_of(sandbox), status=6)
    sandbox.clear_faults()
    sandbox.withdraw(at[1])
    document = run_json(*arguments, "--resume", env=env_of(sandbox))
    assert document["points"] == 5
    with open("out.jsonl", encoding="utf-8") as file:
        assert [json.loads(line)["value"] for line in file] == [0.0, 2.0, 3.0, 4.0, 5.0]


def test_resume_to_stdout_needs_a_named_spool_and_has_one(sandbox):
    sandbox.fault(on="data", status=503, skip=3, times=4)
    arguments = ["pull", "-o", "-", "--spool", "my.spool", *QUERY]
    failed = run_command(*arguments, env=env_of(sandbox), status=4)
    assert (failed.stdout, "my.spool" in failed.stderr) == ("", True)
    sandbox.clear_faults()
    done = run_command(*arguments, "--resume", env=env_of(sandbox))
    with open("out.csv", "w", encoding="utf-8") as file:
        file.write(done.stdout)
    assert is_complete(sandbox)
    assert files() == ["out.csv"]


def test_what_went_to_stdout_alone_is_said_to_be_lost(sandbox):
    sandbox.fault(on="data", status=503, skip=3, times=4)
    done = run_command("pull", "-o", "-", *QUERY, env=env_of(sandbox), status=4)
    assert "Not kept: 3 pages. With --spool FILE it would be." in done.stderr
    assert files() == []


@pytest.mark.parametrize("more", [[], ["--as-read"]])
@systems.SIGNALS
def test_a_closed_pipe_ends_it_quietly_and_leaves_nothing(sandbox, more):
    process = subprocess.Popen(
        [*COMMAND, "pull", "-o", "-", *QUERY, *more],
        env=environment(env_of(sandbox)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141
    assert files() == []


@systems.SIGNALS
def test_a_terminated_pull_to_stdout_leaves_no_points_in_the_temporary_folder(sandbox):
    with hanging(sandbox, "-o", "-", *QUERY, after=4) as process:
        assert len(files()) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
        assert process.stderr.read() == ""
    assert files() == []


@systems.MODES
def test_a_spool_is_for_its_owner_alone(sandbox):
    fail_after(sandbox, 2)
    assert {os.stat(name).st_mode & 0o077 for name in files()} == {0}


@pytest.mark.parametrize(
    "spool", ["out.csv", "out", ".out.csv.siteline-run", ".out.csv.siteline-new"]
)
def test_a_spool_that_is_a_file_of_the_output_is_refused(sandbox, spool):
    output = "out-wal" if spool == "out" else "out.csv"
    arguments = ["-o", output, "--format", "csv", "--spool", spool, *QUERY]
    document = run_json("pull", *arguments, env=env_of(sandbox), status=2)
    assert document["error"]["message"].startswith(f"--spool {spool} is a file of the output")
    assert (files(), sandbox.stats["token_requests"]) == ([], 0)
