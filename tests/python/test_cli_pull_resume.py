"""`siteline pull` that ends early: the kept pages, and how it continues."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

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
    """The names in the folder and in the temporary folder."""
    return sorted({*os.listdir(), *os.listdir("tmp")} - {"tmp"})


def is_complete(sandbox, path="out.csv"):
    """Whether the file has all points of the service, each once."""
    with open(path, encoding="utf-8", newline="") as file:
        found = [(row["tag_guid"], row["timestamp"], row["value"]) for row in csv.DictReader(file)]
    truth = sandbox.expected(**RANGE, interval="1h").records()
    return found == [
        (row["tag_guid"], row["timestamp"].strftime("%Y-%m-%dT%H:%M:%SZ"), repr(row["value"]))
        for row in truth
    ]


@contextlib.contextmanager
def hanging(sandbox, *arguments, after):
    """A pull that waits for a page after this many pages."""
    sandbox.fault(on="data", hang=True, skip=after, times=1)
    before = sandbox.stats.data_requests
    process = subprocess.Popen(
        [*COMMAND, "pull", *arguments],
        env=environment(env_of(sandbox)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: sandbox.stats.data_requests >= before + after + 1)
        yield process
    finally:
        process.kill()
        process.communicate()
        sandbox.clear_faults()


def pull(sandbox, *arguments, how=run_command, output="out.csv", **options):
    """Run a pull in this process; returns the finished command, or its document."""
    return how("pull", "-o", output, *arguments, env=env_of(sandbox), **options)


def fail_after(sandbox, pages, *arguments, **options):
    """A pull that fails with exit status 4 after this many pages."""
    sandbox.fault(on="data", status=503, skip=pages, times=4)
    done = pull(sandbox, *(arguments or QUERY), status=4, **options)
    sandbox.clear_faults()
    return done


@systems.SIGNALS
def test_a_killed_pull_can_be_resumed(sandbox):
    with hanging(sandbox, "-o", "out.csv", *QUERY, after=4) as process:
        process.kill()
        process.wait()
    assert SPOOL in files()
    assert "out.csv" not in files()
    document = pull(sandbox, "--resume", *QUERY, how=run_json)
    # The kill may happen before the fourth page is stored.
    kept = document["resumed_after_pages"]
    assert 3 <= kept <= 4
    assert document["pages"] == PAGES - kept
    assert sandbox.stats.data_requests == 5 + PAGES - kept
    assert is_complete(sandbox)


@systems.MODES
def test_a_failure_keeps_the_spool(sandbox):
    assert "nothing is kept" in fail_after(sandbox, 0).stderr
    assert files() == []
    told = fail_after(sandbox, 3).stderr
    assert "3 pages. The same command with --resume goes on there." in told
    assert {os.stat(name).st_mode & 0o077 for name in files()} == {0}
    again = pull(sandbox, *QUERY, status=2).stderr
    assert "has 3 pages of an earlier run" in again
    assert "--resume goes on there, --restart removes them" in again
    before = sandbox.stats.data_requests
    document = pull(sandbox, "--restart", *QUERY, how=run_json)
    assert (document["resumed_after_pages"], document["pages"]) == (0, PAGES)
    assert sandbox.stats.data_requests == before + PAGES
    assert files() == ["out.csv"]


def test_another_query_is_not_resumed(sandbox, key):
    fail_after(sandbox, 2)
    before, spool = sandbox.stats.requests, os.stat(SPOOL).st_ino
    start = "--start was 2026-11-01T00:00:00Z, now 2026-11-02T00:00:00Z"
    for name, value, said in (
        ("--line", "L1", "--line was L2, now L1"),
        ("--start", "2026-11-02", start),
        ("--end", "2026-11-09", "--end was 2026-11-08T00:00:00Z, now 2026-11-09T00:00:00Z"),
        ("--interval", "5m", "--interval was 1 h, now 5 min"),
        ("--page-size", "50", "--page-size was 100, now 50"),
        ("--filter", "machineId=M1", "--filter was not given, now machineId=M1"),
    ):
        # Ids of lines would be added.
        query = [word for word in QUERY if name != "--line" or word not in ("--line", "L2")]
        told = pull(sandbox, "--resume", *query, name, value, status=2).stderr
        assert f"was begun with another query: {said}." in told
    # The pages of another subject are not resumed either.
    key.save("other.pem")
    other = {**env_of(sandbox), "SITELINE_SUBJECT": sandbox.enroll(key.public_jwk)}
    del other["SITELINE_PRIVATE_KEY"]
    other["SITELINE_PRIVATE_KEY_FILE"] = "other.pem"
    for query in (QUERY, []):
        words = ("pull", "-o", "out.csv", "--resume", *query)
        told = run_command(*words, env=other, status=2).stderr
        assert "at another service, or for another subject" in told
    assert sandbox.stats.requests == before
    assert os.stat(SPOOL).st_ino == spool


def test_a_missing_end_stays_the_same(sandbox):
    query = [*QUERY[:6], *QUERY[8:]]
    fail_after(sandbox, 2, *query)
    sandbox.clock.advance("3h")
    told = pull(sandbox, "--resume", *QUERY, status=2).stderr
    assert "--end was not given, now 2026-11-08T00:00:00Z" in told
    document = pull(sandbox, "--resume", *query, how=run_json)
    assert document["end"] == "2026-11-19T23:00:00Z"
    assert document["resumed_after_pages"] == 2


@pytest.mark.sandbox(daily_allowance=4)
def test_a_spent_allowance_goes_on_next_day(sandbox):
    first = pull(sandbox, *QUERY, "--resume", how=run_json, status=5)
    assert first["error"]["type"] == "AllowanceExhausted"
    assert first["error"]["retry_at"] == "2026-11-21T00:00:00Z"
    assert "There are requests again from 2026-11-21 00:00 UTC on." in first["error"]["hint"]
    assert "sync(" not in first["error"]["hint"]
    assert (first["pages"], os.path.basename(first["spool"])) == (4, SPOOL)
    sandbox.clock.advance("1d")
    told = pull(sandbox, *QUERY, "--resume", "--skip-code", "99", status=99).stderr
    assert "8 pages" in told
    sandbox.clock.advance("1d")
    third = pull(sandbox, *QUERY, "--resume", how=run_json)
    assert (third["resumed_after_pages"], third["pages"]) == (8, PAGES - 8)
    assert is_complete(sandbox)
    log = [entry for entry in sandbox.stats.log if entry.query and entry.status == 200]
    assert [("cursor=" in entry.query) for entry in log] == [False, *[True] * (PAGES - 1)]


@systems.SIGNALS
def test_a_second_pull_is_busy(sandbox):
    words = ["--spool", "my.spool", *QUERY]
    with hanging(sandbox, "-o", "out.csv", *words, after=4) as first:
        for more in ([], ["--resume"], ["--restart"]):
            second = pull(sandbox, *words, *more, how=run_json, status=75)
            assert second["error"]["type"] == "StoreBusy"
        # The spool is busy for another output, too.
        pull(sandbox, *words, "--restart", output="-", status=75)
        assert sandbox.stats.data_requests == 5
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
def test_an_unwritable_output_costs_no_page(sandbox):
    fail_after(sandbox, PAGES - 1)
    Path("out.csv").write_text("old")
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
    assert Path("out.csv").read_text() == "old"
    assert ".out.csv.siteline-new" not in files()
    document = pull(sandbox, "--resume", how=run_json)
    assert (document["pages"], document["requests"]) == (0, 0)
    assert is_complete(sandbox)
    assert files() == ["out.csv"]


def test_other_files_are_no_spools(sandbox):
    feed = siteline.Feed("line-2", site="S1", interval="1h", start="2026-11-19T00:00Z")
    with siteline.Store("plant.siteline") as store:
        sandbox.client().sync(feed, store)
        points = len(store.read(feed))
    Path("notes.txt").write_text("mine")
    for more in ([], ["--restart"], ["--resume"]):
        told = pull(sandbox, "--spool", "plant.siteline", *QUERY, *more, status=2).stderr
        assert "is a store with feeds of your own" in told
        pull(sandbox, "--spool", "notes.txt", *QUERY, *more, status=2)
    with siteline.Store("plant.siteline", read_only=True) as store:
        assert len(store.read(feed)) == points
    assert Path("notes.txt").read_text() == "mine"
    before = files()
    for spool in ("out.csv", ".out.csv.siteline-run", ".out.csv.siteline-new", "out"):
        output = "out-wal" if spool == "out" else "out.csv"
        words = ("--format", "csv", "--spool", spool, *QUERY)
        told = pull(sandbox, *words, output=output, status=2).stderr
        assert told.startswith(f"siteline: --spool {spool} is a file of the output")
    assert files() == before


def test_restart_replaces_a_damaged_spool(sandbox):
    Path(SPOOL).write_bytes(b"SQLite format 3\0" + bytes(4080))
    done = pull(sandbox, "--resume", *QUERY, status=7)
    assert "--restart removes the spool" in done.stderr
    pull(sandbox, "--restart", *QUERY)
    assert is_complete(sandbox)
    assert files() == ["out.csv"]


def test_a_broken_chain_begins_again(sandbox):
    import pyarrow as pa

    at = [siteline.testing.Clock(f"2026-11-01T0{hour}:00Z").now() for hour in range(6)]
    values = {"value": [float(hour) for hour in range(6)], "minimum": [0.0] * 6}
    values |= {"maximum": [9.0] * 6, "sample_count": [1] * 6}
    sandbox.load(pa.table({"timestamp": at, **values}))
    query = ["--site", "S1", "--line", "L1", "--filter", "tagGuid=T1", "--page-size", "2"]
    query += ["--start", "2026-11-01", "--end", "2026-11-02", "--interval", "1h"]
    sandbox.fault(on="data", repeat_cursor=True, skip=1, times=100)
    told = pull(sandbox, *query, output="out.jsonl", status=6).stderr
    assert "--resume begins the chain anew." in told
    assert "sync(" not in told
    sandbox.clear_faults()
    sandbox.withdraw(at[1])
    # A point that the new chain does not have is not in the output.
    assert pull(sandbox, *query, "--resume", output="out.jsonl", how=run_json)["points"] == 5
    lines = Path("out.jsonl").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == [0.0, 2.0, 3.0, 4.0, 5.0]


def test_a_pull_to_stdout_needs_a_named_spool(sandbox):
    told = fail_after(sandbox, 3, *QUERY, output="-").stderr
    assert "Not kept: 3 pages. With --spool FILE it would be." in told
    assert files() == []
    words = ("--spool", "my.spool", *QUERY)
    failed = fail_after(sandbox, 3, *words, output="-")
    assert (failed.stdout, "my.spool" in failed.stderr) == ("", True)
    Path("out.csv").write_text(pull(sandbox, *words, "--resume", output="-").stdout)
    assert is_complete(sandbox)
    assert files() == ["out.csv"]
