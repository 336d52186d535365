"""`siteline sync`: its output, its store, and its exit statuses."""

import os
from datetime import UTC, datetime

import pytest
import siteline
from kit.command import run_command, run_json, run_process
from kit.feeds import rows_by_key
from kit.feeds_file import write_feeds
from siteline.cli.feeds import read_feeds


@pytest.fixture
def feeds(tmp_path):
    return write_feeds(tmp_path)


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "plant.siteline"


@pytest.fixture
def sync(sandbox, feeds, store_path):
    """Returns a function that runs a sync with ``--json`` and returns its document."""

    def sync(*more, path=store_path, how=run_json, variables=(), **options):
        env = {**sandbox.env(), **dict(variables)}
        return how("sync", feeds, path, *more, env=env, **options)

    return sync


def test_a_sync_reads_all_feeds(sandbox, feeds, store_path, sync):
    sandbox.clock.advance("90m")
    first = sync("--concurrency", "2")
    assert first["command"] == "sync"
    assert [one["name"] for one in first["feeds"]] == ["line-1", "line-2"]
    assert first["inserted"] == sum(one["inserted"] for one in first["feeds"]) > 1_000
    assert first["read_through"] == "2026-11-20T01:25:00Z"
    # The service sets the time.
    assert datetime.fromisoformat(first["now"]) == datetime(2026, 11, 20, 1, 30, tzinfo=UTC)
    assert (first["resumes_at"], first["tasks"]) == (None, [])
    before = sandbox.stats.data_requests
    assert first["requests"] == before
    with siteline.Store(store_path) as store:
        for feed in read_feeds(str(feeds)).feeds:
            truth = sandbox.expected(
                site="S1", line=feed.line, interval="5m", start="2026-11-17",
                end="2026-11-20T01:25Z",
            )  # fmt: skip
            assert rows_by_key(store.read(feed)) == rows_by_key(truth)
        report = sandbox.client().sync(read_feeds(str(feeds)).feeds, store)
    assert set(first) == {"schema", "command", "exit", *report.to_dict()}
    again = sync()
    assert (again["complete"], again["pages"], again["requests"]) == (True, 0, 0)
    assert sandbox.stats.data_requests == before
    reread = sync("--feed", "line-2", "--reread", "2026-11-17/2026-11-17T12:00Z")
    assert [one["name"] for one in reread["feeds"]] == ["line-2"]
    assert (reread["inserted"], reread["unchanged"] > 0) == (0, True)


def test_a_dry_run_is_the_plan(sandbox, feeds, store_path, sync):
    words = ("--dry-run", "--until", "2026-11-19", "--reread", "2026-11-17/2026-11-18")
    first = sync(*words)
    assert (first["kind"], first["store_exists"], first["pages"]) == ("sync", False, None)
    assert "The run creates the store" in sync("--dry-run", how=run_command).stdout
    assert not store_path.exists()
    sync()
    sandbox.clock.advance("1d")
    before, content = sandbox.stats, store_path.read_bytes()
    document = sync("--dry-run", "--feed", "line-2", *words[1:])
    with siteline.Store(store_path, read_only=True) as store:
        feed = read_feeds(str(feeds)).feeds[1]
        reread = ("2026-11-17", "2026-11-18")
        plan = sandbox.client().plan(feed, store, until="2026-11-19", reread=reread)
    assert set(document) == {"schema", "command", "exit", "store", "store_exists", *plan.to_dict()}
    assert document["pages"] == plan.pages > 1
    assert {task["feed"] for task in document["tasks"]} == {"line-2"}
    assert sync("--dry-run", "--metrics", store_path.with_suffix(".prom"))["fits"] is None
    poor = {"SITELINE_DAILY_ALLOWANCE": "1"}
    assert sync("--dry-run", variables=poor, status=5)["fits"] is False
    assert "not enough" in sync("--dry-run", variables=poor, status=5, how=run_command).stdout
    assert sync("--dry-run", "--skip-code", "0", variables=poor)["fits"] is False
    assert sync("--dry-run", variables={"SITELINE_DAILY_ALLOWANCE": "999"})["fits"] is True
    assert (sandbox.stats, store_path.read_bytes()) == (before, content)
    assert not store_path.with_suffix(".prom").exists()


def test_status_4_the_next_run_goes_on(sandbox, store_path, sync):
    sandbox.fault(on="data", skip=2, times=4, status=503)
    # A skip code is only for status 5.
    error = sync("--skip-code", "99", "--concurrency", "1", status=4)["error"]
    assert (error["type"], error["retryable"]) == ("ServiceUnavailable", True)
    before = sandbox.stats.data_requests
    rest = sync()
    assert rest["pages"] == sandbox.stats.data_requests - before
    assert rest["pages"] == sync(path=store_path.with_name("other"))["pages"] - 2


def test_status_5_the_own_allowance_is_spent(sandbox, sync):
    # The requests of a sandbox are counted in the memory of each client.
    poor = {"SITELINE_DAILY_ALLOWANCE": "3"}
    document = sync(variables=poor, status=5)
    assert (document["complete"], document["requests"]) == (False, 3)
    assert document["resumes_at"] == "2026-11-21T00:00:00Z"
    assert document["tasks"][0]["feed"] == "line-1"
    done = sync(variables=poor, status=5, how=run_command)
    assert (
        "still to do, as the daily allowance ended the sync, from 2026-11-21 00:00 UTC on: "
        in done.stdout
    )
    document = sync("--skip-code", 99, variables=poor, status=99)
    assert (document["complete"], document["requests"]) == (False, 3)
    assert sandbox.stats.data_requests == 9


@pytest.mark.sandbox(daily_allowance=3)
def test_status_5_the_service_counts(sync):
    document = sync(status=5)
    assert (document["pages"], document["resumes_at"]) == (3, "2026-11-21T00:00:00Z")
    sync("--skip-code", "0")


def test_status_6_ranges_are_skipped(sandbox, sync):
    sandbox.fault(on="data", repeat_cursor=True, times=9)
    words = ("--feed", "line-1", "--until", "2026-11-18")
    assert sync(*words, status=6)["error"]["type"] == "CursorLoop"
    sandbox.clear_faults()
    document = sync(*words, status=6)
    assert document["complete"] is False
    (aside,) = document["feeds"][0]["skipped"]
    assert (aside["error"], aside["start"]) == ("CursorLoop", "2026-11-17T00:00:00Z")
    assert "skipped until" in sync(*words, status=6, how=run_command).stdout
    sync(*words, "--reread", "2026-11-17/2026-11-18")


def test_status_6_enough_pages_were_read(sandbox, sync):
    document = sync("--max-pages", "3", status=6)
    assert (document["complete"], document["pages"], bool(document["tasks"])) == (False, 3, True)
    assert sandbox.stats.data_requests == 3


def test_status_75_another_run_holds_the_feed(sandbox, feeds, store_path, sync):
    seen = []

    def meanwhile(_progress):
        if not seen:
            seen.append(sync(status=75, run=run_process))
            seen.append(run_json("sync", feeds, store_path, "--dry-run", env=sandbox.env()))

    chosen = read_feeds(str(feeds)).feeds[1]
    with siteline.Store(store_path) as store:
        assert sandbox.client().sync(chosen, store, progress=meanwhile).complete
    assert seen[0]["error"]["type"] == "StoreBusy"
    assert seen[1]["tasks"]


@pytest.mark.parametrize(
    "words",
    [
        ("--until", "2026-11-18T00"),
        ("--reread", "2026-11-18"),
        ("--reread", "2026-11-18/2026-11-17"),
        ("--max-pages", "0"),
        ("--concurrency", "x"),
        ("--skip-code", "256"),
        ("--wait", "soon"),
        ("--deadline", "soon"),
    ],
    ids=" ".join,
)
def test_a_wrong_option_makes_no_store(sandbox, tmp_path, sync, words):
    assert words[0].strip("-") in sync(*words, status=2, how=run_command).stderr
    assert os.listdir(tmp_path) == ["feeds.toml"]
    assert sandbox.stats.token_requests == 0


def test_an_unusable_store_or_feed_is_refused(sandbox, feeds, tmp_path, sync):
    path = tmp_path / "missing" / "plant.siteline"
    done = sync(path=path, status=2, how=run_command)
    assert "folder does not exist" in done.stderr
    assert not path.parent.exists()
    sync()
    before = sandbox.stats.data_requests
    feeds.write_text(feeds.read_text().replace('line = "L2"', 'line = "L1"'))
    assert sync(status=2)["error"]["type"] == "FeedChanged"
    assert sandbox.stats.data_requests == before
