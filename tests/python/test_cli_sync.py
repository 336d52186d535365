"""`siteline sync`: what it prints and stores, and its exit status for each way to end."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import siteline
from kit.command import environment, run_command, run_json
from kit.feeds import rows_by_key
from kit.feeds_file import write_feeds
from siteline.cli.feeds import read_feeds


@pytest.fixture
def feeds(tmp_path):
    return write_feeds(tmp_path)


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "plant.siteline"


def test_a_sync_reads_all_feeds_and_prints_its_report(sandbox, feeds, store_path):
    first = run_command("sync", feeds, store_path, env=sandbox.env())
    lines = first.stdout.splitlines()
    assert lines[0].startswith("Sync complete, 2026-11-20 00:00 UTC: ")
    assert "line-1" in lines[1]
    assert "read through 2026-11-19 23:55" in lines[4]
    assert first.stderr == ""
    with siteline.Store(store_path, read_only=True) as store:
        for feed in read_feeds(str(feeds)).feeds:
            truth = sandbox.truth(
                site="S1", line=feed.line, interval="5m", start="2026-11-17",
                end="2026-11-19T23:55Z",
            )  # fmt: skip
            assert rows_by_key(store.points(feed)) == rows_by_key(truth)
    before = sandbox.stats["data_requests"]
    assert f"{before} requests" in lines[0]
    document = run_json("sync", feeds, store_path, env=sandbox.env())
    assert (document["complete"], document["pages"], document["requests"]) == (True, 0, 0)
    assert sandbox.stats["data_requests"] == before


def test_the_document_is_that_of_the_report(sandbox, feeds, store_path):
    document = run_json("sync", feeds, store_path, "--concurrency", "2", env=sandbox.env())
    assert document["command"] == "sync"
    assert [one["name"] for one in document["feeds"]] == ["line-1", "line-2"]
    assert document["inserted"] == sum(one["inserted"] for one in document["feeds"]) > 1_000
    assert document["read_through"] == "2026-11-19T23:55:00Z"
    assert (document["resumes_at"], document["todo"]) == (None, [])
    assert document["requests"] == sandbox.stats["data_requests"]
    with siteline.Store(store_path) as store:
        report = sandbox.client().sync(read_feeds(str(feeds)).feeds, store)
    assert set(document) == {"schema", "command", "exit", *report.to_dict()}


def test_status_3_the_service_refuses(sandbox, feeds, store_path):
    env = sandbox.env()
    sandbox.revoke(env["SITELINE_SUBJECT"])
    document = run_json("sync", feeds, store_path, env=env, status=3)
    assert document["error"]["type"] == "AuthenticationError"
    assert "refused" in run_command("sync", feeds, store_path, env=env, status=3).stderr


def test_status_4_a_passing_failure_after_which_the_next_run_goes_on(sandbox, feeds, store_path):
    sandbox.fault(on="data", skip=2, times=4, status=503)
    document = run_json("sync", feeds, store_path, env=sandbox.env(), status=4)
    assert document["error"]["type"] == "ServiceUnavailable"
    assert document["error"]["retryable"] is True
    before = sandbox.stats["data_requests"]
    rest = run_json("sync", feeds, store_path, env=sandbox.env())
    whole = run_json("sync", feeds, store_path.with_name("other"), env=sandbox.env())
    assert (
        rest["pages"]
        == whole["pages"] - 2
        == sandbox.stats["data_requests"] - before - (whole["pages"])
    )


def test_status_4_a_deadline_passes(sandbox, feeds, store_path):
    sandbox.fault(on="data", skip=1, times=99, status=503, retry_after=50)
    document = run_json("sync", feeds, store_path, "--deadline", "30s", env=sandbox.env(), status=4)
    assert document["error"]["type"] == "DeadlineExceeded"


def test_status_5_the_allowance_ends_it_and_says_when_it_goes_on(sandbox, feeds, store_path):
    # Requests of a sandbox are counted in memory, for each process anew.
    env = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "3"}
    document = run_json("sync", feeds, store_path, env=env, status=5)
    assert (document["complete"], document["requests"]) == (False, 3)
    assert document["resumes_at"] == "2026-11-21T00:00:00Z"
    assert document["todo"][0]["feed"] == "line-1"
    done = run_command("sync", feeds, store_path, env=env, status=5)
    assert "still to do, from 2026-11-21 00:00 UTC on: " in done.stdout
    document = run_json("sync", feeds, store_path, "--skip-code", 99, env=env, status=99)
    assert (document["complete"], document["requests"]) == (False, 3)
    assert sandbox.stats["data_requests"] == 9


@pytest.mark.sandbox(daily_allowance=3)
def test_status_5_the_service_says_that_the_allowance_is_spent(sandbox, feeds, store_path):
    document = run_json("sync", feeds, store_path, env=sandbox.env(), status=5)
    assert document["pages"] == 3
    assert document["resumes_at"] == "2026-11-21T00:00:00Z"
    run_command("sync", feeds, store_path, "--skip-code", "0", env=sandbox.env())


def test_status_6_ranges_are_set_aside(sandbox, feeds, store_path):
    sandbox.fault(on="data", repeat_cursor=True, times=9)
    arguments = ("sync", feeds, store_path, "--feed", "line-1", "--until", "2026-11-18")
    document = run_json(*arguments, env=sandbox.env(), status=6)
    assert document["error"]["type"] == "CursorLoop"
    sandbox.clear_faults()
    document = run_json(*arguments, env=sandbox.env(), status=6)
    assert document["complete"] is False
    (aside,) = document["feeds"][0]["set_aside"]
    assert (aside["error"], aside["start"]) == ("CursorLoop", "2026-11-17T00:00:00Z")
    done = run_command(*arguments, "--skip-code", "99", env=sandbox.env(), status=6)
    assert "set aside until" in done.stdout
    run_command(*arguments, "--reread", "2026-11-17/2026-11-18", env=sandbox.env())


def test_status_6_the_pages_that_were_allowed_end_it(sandbox, feeds, store_path):
    document = run_json("sync", feeds, store_path, "--max-pages", "3", env=sandbox.env(), status=6)
    assert (document["complete"], document["pages"]) == (False, 3)
    assert document["todo"]
    assert sandbox.stats["data_requests"] == 3
    rest = run_json("sync", feeds, store_path, "--max-pages", "99", env=sandbox.env())
    assert rest["complete"] is True


def test_status_7_the_service_sends_what_is_no_reply(sandbox, feeds, store_path):
    sandbox.fault(on="data", skip=1, drop=["nextCursor"])
    document = run_json("sync", feeds, store_path, env=sandbox.env(), status=7)
    assert document["error"]["type"] == "ProtocolError"


def test_status_7_the_store_is_damaged(sandbox, feeds, store_path):
    run_json("sync", feeds, store_path, "--until", "2026-11-18", env=sandbox.env())
    whole = bytearray(store_path.read_bytes())
    for at in range(4_096, len(whole), 64):
        whole[at] ^= 0xFF
    store_path.write_bytes(whole)
    document = run_json("sync", feeds, store_path, env=sandbox.env(), status=7)
    assert document["error"]["type"] == "StoreCorrupt"


def test_status_75_another_run_holds_the_feed(sandbox, feeds, store_path):
    seen = []

    def meanwhile(progress):
        if not seen:
            seen.append(run_json("sync", feeds, store_path, env=sandbox.env(), status=75))
            seen.append(run_json("plan", feeds, store_path, env=sandbox.env()))

    chosen = read_feeds(str(feeds)).feeds[1]
    with siteline.Store(store_path) as store:
        assert sandbox.client().sync(chosen, store, progress=meanwhile).complete
    assert seen[0]["error"]["type"] == "StoreBusy"
    assert seen[1]["tasks"]


def test_a_wrong_range_makes_no_store(sandbox, feeds, store_path):
    wrong = [
        ("--until", "yesterday"),
        ("--until", "2026-11-18T00:00"),
        ("--reread", "2026-11-18"),
        ("--reread", "2026-11-18/2026-11-17"),
        ("--max-pages", "0"),
        ("--concurrency", "0"),
        ("--concurrency", "x"),
        ("--skip-code", "256"),
        ("--skip-code", "-1"),
    ]
    for arguments in wrong:
        run_command("sync", feeds, store_path, *arguments, env=sandbox.env(), status=2)
    assert os.listdir(store_path.parent) == ["feeds.toml"]
    run_command("sync", feeds, store_path, "--wait", "soon", env=sandbox.env(), status=2)
    run_command("sync", feeds, store_path, "--deadline", "soon", env=sandbox.env(), status=2)
    assert sandbox.stats["data_requests"] == 0


def test_a_folder_that_is_not_there_is_not_made(sandbox, feeds, tmp_path):
    store = tmp_path / "missing" / "plant.siteline"
    done = run_command("sync", feeds, store, env=sandbox.env(), status=2)
    assert "folder does not exist" in done.stderr
    assert not store.parent.exists()


def test_a_feed_with_another_definition_is_refused_without_a_request(sandbox, feeds, store_path):
    run_command("sync", feeds, store_path, env=sandbox.env())
    before = sandbox.stats["data_requests"]
    feeds.write_text(feeds.read_text().replace('line = "L2"', 'line = "L1"'))
    document = run_json("sync", feeds, store_path, env=sandbox.env(), status=2)
    assert document["error"]["type"] == "FeedChanged"
    assert sandbox.stats["data_requests"] == before


def test_the_stores_time_is_that_of_the_service(sandbox, feeds, store_path):
    sandbox.clock.advance("90m")
    document = run_json("sync", feeds, store_path, env=sandbox.env())
    assert datetime.fromisoformat(document["now"]) == datetime(2026, 11, 20, 1, 30, tzinfo=UTC)
