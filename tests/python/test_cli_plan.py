"""`siteline plan`: the cost of a sync or a read. It sends no request and creates no file."""

import os

import pytest
import siteline
from kit.command import run_command, run_json, run_process
from kit.feeds_file import write_feeds
from siteline.cli.feeds import read_feeds

pytestmark = pytest.mark.once
RANGE = ("--start", "2026-11-01", "--end", "2026-11-03")
QUERY = ("--site", "S1", "--line", "L2", "--interval", "5m", "--page-size", "500")


@pytest.fixture(scope="module")
def synced(shared_sandbox, tmp_path_factory):
    """A file of feeds and a store that was synced a day ago."""
    folder = tmp_path_factory.mktemp("plant")
    feeds = write_feeds(folder)
    with siteline.Store(folder / "plant.siteline") as store:
        shared_sandbox.client(ledger="memory").sync(read_feeds(str(feeds)).feeds, store)
    shared_sandbox.clock.advance("1d")
    return feeds, folder / "plant.siteline"


@pytest.fixture
def plan(shared_sandbox):
    """Run `siteline plan`, which sends nothing; returns its document."""

    def plan(*words, how=run_json, allowance=None, **options):
        env = shared_sandbox.env()
        if allowance:
            env["SITELINE_DAILY_ALLOWANCE"] = allowance
        before = shared_sandbox.stats
        done = how("plan", *words, env=env, **options)
        assert shared_sandbox.stats == before
        return done

    return plan


def test_a_plan_equals_client_plan(shared_sandbox, synced, plan):
    feeds, path = synced
    names, files = os.listdir(path.parent), path.read_bytes()
    document = plan(*synced)
    with siteline.Store(path, read_only=True) as store:
        known = shared_sandbox.client().plan(read_feeds(str(feeds)).feeds, store)
    assert plan(*synced, how=run_process).stdout == f"{known}\n"
    assert document["pages"] == known.pages > 2
    assert (document["kind"], document["fits"], document["skipped"]) == ("sync", None, 0)
    assert document["now"] == "2026-11-21T00:00:00Z"
    assert (document["store"], document["store_exists"]) == (str(path), True)
    assert [(task["feed"], task["why"]) for task in document["tasks"]] == [
        (task.feed, task.why) for task in known.tasks
    ]
    assert document["tasks"][0]["start"] == "2026-11-20T00:00:00Z"
    assert document["allowance"]["resets_at"] == "2026-11-22T00:00:00Z"
    assert (os.listdir(path.parent), path.read_bytes()) == (names, files)


def test_a_plan_is_narrowed(synced, plan):
    words = ("--feed", "line-2", "--until", "2026-11-20T12:00Z", "--reread")
    document = plan(*synced, *words, "2026-11-17/2026-11-18")
    assert {task["feed"] for task in document["tasks"]} == {"line-2"}
    assert max(task["end"] for task in document["tasks"]) == "2026-11-20T12:00:00Z"
    reread = [task for task in document["tasks"] if task["why"] == "reread"]
    assert [(task["start"][:10], task["end"][:10]) for task in reread] == [
        ("2026-11-17", "2026-11-18")
    ]


def test_check_compares_with_the_allowance(synced, plan):
    assert plan(*synced, allowance="1")["fits"] is False
    document = plan(*synced, "--check", allowance="1", status=5)
    assert (document["fits"], document["allowance"]["left"]) == (False, 1)
    text = plan(*synced, "--check", allowance="1", status=5, how=run_command).stdout
    assert "not enough" in text
    assert plan(*synced, "--check", allowance="1000")["fits"] is True
    assert plan(*synced, "--check")["fits"] is None


def test_a_missing_store_is_not_made(synced, plan, tmp_path):
    path = tmp_path / "new.siteline"
    document = plan(synced[0], path)
    assert document["store_exists"] is False
    assert (document["pages"], document["fits"]) == (None, None)
    assert {task["why"] for task in document["tasks"]} == {"recent", "backfill"}
    assert f"There is no store {path} yet" in plan(synced[0], path, how=run_command).stdout
    assert os.listdir(tmp_path) == []
    other = tmp_path / "notes.txt"
    other.write_text("not a store, but a text that is long enough to look at\n" * 100)
    assert "not a store" in plan(synced[0], other, status=2)["error"]["message"]
    for wrong in (tmp_path, other / "plant.siteline"):
        plan(synced[0], wrong, status=2)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_plan_opens_the_store_read_only(synced, plan, monkeypatch):
    opened, real = [], siteline.Store

    def open_store(path, **options):
        opened.append(options)
        return real(path, **options)

    # Root may write whatever the modes are.
    monkeypatch.setattr(siteline, "Store", open_store)
    plan(*synced)
    assert opened == [{"read_only": True}]


def test_a_plan_of_a_query(shared_sandbox, synced, plan, tmp_path):
    document = plan(*QUERY, *RANGE)
    assert (document["kind"], document["store"], document["pages"]) == ("scan", None, None)
    (task,) = document["tasks"]
    assert (task["start"], task["end"]) == ("2026-11-01T00:00:00Z", "2026-11-03T00:00:00Z")
    text = plan(*QUERY, *RANGE[:2], how=run_command).stdout
    assert "2026-11-01 00:00 to 2026-11-20 23:55" in text
    # The pages are estimated from a store.
    estimate = (*QUERY, *RANGE, "--estimate-from", synced[1])
    document = plan(*estimate)
    assert (document["store"], document["tasks"][0]["feed"]) == (str(synced[1]), "line-2")
    scan = shared_sandbox.client().scan(
        site="S1", line="L2", interval="5m", page_size=500, start=RANGE[1], end=RANGE[3]
    )
    assert abs(document["pages"] - sum(1 for _ in scan.pages())) <= 2
    plan(*estimate, "--check", allowance="2", status=5)
    plan(*estimate[:-1], tmp_path / "other.siteline", status=2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--start is missing"),
        (["--site", "S1"], "--start is missing"),
        (["FEEDS"], "STORE is missing"),
        (["FEEDS", "STORE", "--site", "S1"], "leave out --site"),
        (["FEEDS", "STORE", "--start", "2026-11-01"], "leave out --start"),
        (["FEEDS", "STORE", "--estimate-from", "STORE"], "leave out --estimate-from"),
        (["FEEDS", "STORE", "--reread", "2026-11-01"], "is not START/END"),
        (["FEEDS", "STORE", "--reread", "a/b"], "not an ISO 8601 time"),
        (["FEEDS", "STORE", "--feed", "line-9"], "there is no feed 'line-9'"),
        (["--start", "2026-11-01", "--until", "2026-11-02"], "leave out --until"),
        (["--start", "2026-11-01", "--filter", "x"], "is not NAME=VALUE"),
        (["--start", "yesterday"], "start="),
    ],
)
def test_a_wrong_line_is_a_usage_error(synced, plan, arguments, message):
    named = dict(zip(("FEEDS", "STORE"), synced, strict=True))
    words = (named.get(one, one) for one in arguments)
    assert message in plan(*words, status=2, how=run_command).stderr
