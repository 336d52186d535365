"""`siteline read` that ends early: the kept pages, and how it continues."""

import contextlib
import csv
import os
import signal
import sys
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.command import COMMAND, run_command, run_json, run_program, start_command
from kit.waiting import wait_until
from test_cli_read import PAGES, QUERY, RANGE

pytestmark = pytest.mark.once

SPOOL = ".out.csv.siteline"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)


def is_complete(sandbox, path="out.csv", **options):
    """Whether the file has all points of the service, each once."""
    with open(path, encoding="utf-8", newline="") as file:
        found = [(row["tag_guid"], row["timestamp"], row["value"]) for row in csv.DictReader(file)]
    truth = sandbox.expected(**{**RANGE, **options}, interval="1h").records()
    return found == [
        (row["tag_guid"], row["timestamp"].strftime("%Y-%m-%dT%H:%M:%SZ"), repr(row["value"]))
        for row in truth
    ]


@contextlib.contextmanager
def hanging(sandbox, *arguments, after):
    """Runs a read that waits for a page after this many pages."""
    sandbox.fault(on="data", hang=True, skip=after, times=1)
    before = sandbox.stats.data_requests
    process = start_command("read", *arguments, env=sandbox.env())
    try:
        wait_until(lambda: sandbox.stats.data_requests >= before + after + 1)
        yield process
    finally:
        process.kill()
        process.communicate()
        sandbox.clear_faults()


def read(sandbox, *arguments, how=run_command, output="out.csv", **options):
    """Runs a read in this process."""
    to = () if output is None else ("-o", output)
    return how("read", *to, *arguments, env=sandbox.env(), **options)


def fail_after(sandbox, pages, *arguments, **options):
    """A read that fails with exit status 4 after this many pages."""
    sandbox.fault(on="data", status=503, skip=pages, times=8)
    done = read(sandbox, *(arguments or QUERY), status=4, **options)
    sandbox.clear_faults()
    return done


@systems.SIGNALS
@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL", "SIGINT"])
def test_an_ended_read_can_be_resumed(sandbox, end):
    with hanging(sandbox, "-o", "out.csv", *QUERY, after=4) as process:
        process.send_signal(getattr(signal, end))
        process.wait()
        told = process.stderr.read()
    if end == "SIGINT":
        assert process.returncode == 130
        assert f"are kept in {SPOOL}. The same command with --resume continues." in told
    assert os.listdir() == [SPOOL]
    document = read(sandbox, "--resume", *QUERY, how=run_json)
    # The kill may happen before the fourth page is stored.
    kept = document["resumed_after_pages"]
    assert 3 <= kept <= 4
    assert document["pages"] == PAGES - kept
    assert sandbox.stats.data_requests == 5 + PAGES - kept
    assert is_complete(sandbox)


@systems.MODES
def test_a_failure_keeps_the_spool(sandbox):
    assert "No page was read." in fail_after(sandbox, 0).stderr
    assert os.listdir() == []
    told = fail_after(sandbox, 3).stderr
    assert f"3 pages of this read are kept in {SPOOL}. The same command with --resume" in told
    names = [SPOOL, *(f"{SPOOL}/{name}" for name in os.listdir(SPOOL))]
    assert {os.stat(name).st_mode & 0o077 for name in names} == {0}
    again = read(sandbox, *QUERY, status=2).stderr
    assert "has 3 pages of an earlier read" in again
    assert "--resume continues it, --restart drops its pages" in again
    before = sandbox.stats.data_requests
    document = read(sandbox, "--restart", *QUERY, how=run_json)
    assert (document["resumed_after_pages"], document["pages"]) == (0, PAGES)
    assert sandbox.stats.data_requests == before + PAGES
    assert os.listdir() == ["out.csv"]


def test_chains_of_several_lines_are_resumed(sandbox):
    query = [*QUERY, "--line", "L1"]
    document = fail_after(sandbox, 5, *query, how=run_json)
    assert document["pages"] >= 5
    kept = document["pages"]
    before = sandbox.stats.data_requests
    document = read(sandbox, "--resume", *query, how=run_json)
    assert document["resumed_after_pages"] == kept
    assert document["pages"] == sandbox.stats.data_requests - before == 2 * PAGES - kept
    truth = [sandbox.expected(**{**RANGE, "line": line}, interval="1h") for line in ("L1", "L2")]
    assert document["points"] == sum(map(len, truth))


def test_another_query_is_not_resumed(sandbox, key):
    fail_after(sandbox, 2)
    before = sandbox.stats.requests
    for name, value, said in (
        ("--line", "L1", "--line was L2, now L2 L1"),
        ("--start", "2026-11-02", f"--start was {RANGE['start']}, now 2026-11-02"),
        ("--interval", "5m", "--interval was 1h, now 5m"),
        ("--page-size", "50", "--page-size was 100, now 50"),
        ("--filter", "machineId=M1", "--filter was not given, now machineId=M1"),
        ("--find", "speed", "--find was not given, now speed"),
        ("--tag", "speed", "--tag was not given, now speed"),
    ):
        told = read(sandbox, "--resume", *QUERY, name, value, status=2).stderr
        assert f"is of another query: {said}." in told
    # The pages of another subject are not resumed either.
    key.save("other.pem")
    other = {**sandbox.env(), "SITELINE_SUBJECT": sandbox.enroll(key.public_jwk)}
    del other["SITELINE_PRIVATE_KEY"]
    other["SITELINE_PRIVATE_KEY_FILE"] = "other.pem"
    for query in (QUERY, []):
        words = ("read", "-o", "out.csv", "--resume", *query)
        assert "of another service or subject" in run_command(*words, env=other, status=2).stderr
    assert sandbox.stats.requests == before


def test_a_page_limit_and_relative_times(sandbox):
    query = [*QUERY[:4], "--start", "-7d", *QUERY[8:]]
    told = read(sandbox, *query, "--max-pages", "2", status=6).stderr
    assert f"2 pages of this read are kept in {SPOOL}." in told
    sandbox.clock.advance("3h")
    document = read(sandbox, "--resume", *query, how=run_json)
    assert (document["start"], document["end"]) == ("2026-11-13T00:00:00Z", "2026-11-19T23:00:00Z")
    assert document["resumed_after_pages"] == 2


@pytest.mark.sandbox(daily_allowance=4)
def test_a_spent_allowance_goes_on_next_day(sandbox):
    first = read(sandbox, *QUERY, "--resume", how=run_json, status=5)
    assert "bookmark" not in read(sandbox, *QUERY, output=None, status=5).stderr
    assert first["error"]["type"] == "AllowanceExhausted"
    assert first["error"]["retry_at"] == "2026-11-21T00:00:00Z"
    assert "The next requests are possible from 2026-11-21 00:00 UTC on." in first["error"]["hint"]
    assert "collect(" not in first["error"]["hint"]
    assert (first["pages"], first["spool"]) == (4, SPOOL)
    sandbox.clock.advance("1d")
    told = read(sandbox, *QUERY, "--resume", "--skip-code", "99", status=99).stderr
    assert "8 pages" in told
    sandbox.clock.advance("1d")
    third = read(sandbox, *QUERY, "--resume", how=run_json)
    assert (third["resumed_after_pages"], third["pages"]) == (8, PAGES - 8)
    assert is_complete(sandbox)
    log = [entry for entry in sandbox.stats.log if entry.query and entry.status == 200]
    assert [("cursor=" in entry.query) for entry in log] == [False, *[True] * (PAGES - 1)]


# Runs a command that may write no file longer than some bytes.
SHORT_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
os.execv(sys.argv[1], sys.argv[1:])
"""


@systems.SIGNALS
def test_an_unwritable_output_costs_no_page(sandbox):
    fail_after(sandbox, PAGES - 1)
    Path("out.csv").write_text("old")
    words = (*COMMAND, "read", "-o", "out.csv", "--resume", *QUERY)
    done = run_program(sys.executable, "-c", SHORT_FILES, *words, env=sandbox.env())
    assert done.returncode == 2, done
    assert "File too large" in done.stderr
    assert f"{PAGES} pages of this read are kept" in done.stderr
    assert Path("out.csv").read_text() == "old"
    assert sorted(os.listdir()) == [SPOOL, "out.csv"]
    document = read(sandbox, "--resume", "--pivot", how=run_json)
    assert (document["pages"], document["requests"]) == (0, 0)
    assert os.listdir() == ["out.csv"]


def test_other_files_are_no_spools(sandbox):
    siteline.Store("plant.siteline", share="group-read").close()
    Path("notes.txt").write_text("mine")
    Path("folder").mkdir()
    Path("folder/mine.txt").write_text("mine")
    Path("stores").mkdir()
    siteline.Store("stores/points.siteline", share="group-read").close()
    before = sorted([*os.listdir(), *os.listdir("stores")])
    for spool in ("plant.siteline", "notes.txt", "folder", "stores"):
        for more in ([], ["--restart"], ["--resume"]):
            told = read(sandbox, "--spool", spool, *QUERY, *more, status=2).stderr
            assert f"{spool} is not the spool of a read" in told
    assert sorted([*os.listdir(), *os.listdir("stores")]) == before
    assert Path("folder/mine.txt").read_text() == "mine"


@pytest.mark.parametrize("damage", ["siteline-read.spool", "query.json", None])
def test_restart_replaces_a_damaged_spool(sandbox, damage):
    fail_after(sandbox, 3)
    contents = [b"SQLite format 3\0" + bytes(4080), b"garbage"] if damage else [b""]
    if not damage:
        os.rename(Path(SPOOL, "query.json"), Path(SPOOL, "query.json-new-1a2b"))
    kept, is_store = sorted(os.listdir(SPOOL)), damage == "siteline-read.spool"
    for content in contents:
        if damage:
            Path(SPOOL, damage).write_bytes(content)
        status = 2 if is_store and content == b"garbage" else 7
        done = read(sandbox, "--resume", *QUERY, status=status)
        assert f"  --restart removes {SPOOL} and reads again." in done.stderr
        done = read(sandbox, *QUERY, status=2 if is_store else 7)
        assert "\n  --restart " in done.stderr
    assert sorted(os.listdir(SPOOL)) == kept
    read(sandbox, "--restart", *QUERY)
    assert is_complete(sandbox)
    assert os.listdir() == ["out.csv"]


@pytest.mark.parametrize("fault", ["repeat_cursor", "forget_cursors"])
def test_a_broken_chain_begins_again(sandbox, fault):
    sandbox.fault(on="data", skip=3, times=100, **{fault: True})
    read(sandbox, *QUERY, status=6)
    sandbox.clear_faults()
    before = sandbox.stats.data_requests
    _, way = read(sandbox, "--resume", *QUERY, status=6).stderr.splitlines()
    assert way == (
        "  The chain cannot be continued: --resume tries it again only a day later. "
        f"--restart removes {SPOOL} and starts again, and all pages are paid for again."
    )
    assert sandbox.stats.data_requests == before
    document = read(sandbox, *QUERY, "--restart", how=run_json)
    assert document["requests"] == document["pages"] == PAGES
    assert is_complete(sandbox)


@systems.MODES
def test_the_users_own_folder_stays(sandbox):
    Path("mine").mkdir(mode=0o755)
    read(sandbox, *QUERY, "--spool", "mine")
    assert os.listdir("mine") == []
    fail_after(sandbox, 3, *QUERY, "--spool", "mine")
    assert {os.stat(path).st_mode & 0o077 for path in Path("mine").iterdir()} == {0}
    assert os.stat("mine").st_mode & 0o777 == 0o755
    read(sandbox, "--spool", "mine", "--resume")
    assert os.listdir("mine") == []


def test_stdout_needs_a_named_spool(sandbox):
    told = fail_after(sandbox, 3, *QUERY, output=None).stderr
    assert "No page is kept: with -o FILE or --spool FOLDER, --resume continues." in told
    assert os.listdir() == []
    words = ("--spool", "my.spool", *QUERY)
    failed = fail_after(sandbox, 3, *words, output=None)
    assert (failed.stdout, "kept in my.spool" in failed.stderr) == ("", True)
    before = sandbox.stats.data_requests
    Path("out.csv").write_text(read(sandbox, *words, "--resume", output=None).stdout)
    assert sandbox.stats.data_requests == before + PAGES - 3
    assert is_complete(sandbox)
    assert os.listdir() == ["out.csv"]


def test_a_second_read_changes_no_spool(sandbox):
    pytest.importorskip("fcntl")
    with hanging(sandbox, *QUERY, "-o", "out.csv", after=4):
        kept = {path.name: path.stat().st_ino for path in Path(SPOOL).iterdir()}
        for option in ("--restart", "--resume"):
            done = read(sandbox, *QUERY, option, status=75)
            assert "Another run of siteline read uses" in done.stderr
            assert {path.name: path.stat().st_ino for path in Path(SPOOL).iterdir()} == kept
    read(sandbox, *QUERY, "--resume")
    assert is_complete(sandbox)
