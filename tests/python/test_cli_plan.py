"""`siteline plan`: what a sync or a read would cost. No request is sent, and no file is made."""

import os

import pytest
import siteline
from kit.command import run_command, run_json
from kit.feeds_file import write_feeds
from kit.ranges import NOW
from siteline.cli import main
from siteline.cli.feeds import read_feeds

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def synced(tmp_path_factory):
    """A sandbox of which a store was synced, a day ago."""
    folder = tmp_path_factory.mktemp("plant")
    feeds = write_feeds(folder)
    with siteline.Sandbox(now=NOW) as sandbox:
        with siteline.Store(folder / "plant.siteline") as store:
            sandbox.client(ledger="memory").sync(read_feeds(str(feeds)).feeds, store)
        sandbox.clock.advance("1d")
        yield sandbox, feeds, folder / "plant.siteline"


def test_a_plan_of_feeds_says_what_client_plan_says_and_asks_nothing(synced):
    sandbox, feeds, path = synced
    before = sandbox.stats
    document = run_json("plan", feeds, path, env=sandbox.env())
    text = run_command("plan", feeds, path, env=sandbox.env()).stdout
    assert sandbox.stats == before
    with siteline.Store(path, read_only=True) as store:
        plan = sandbox.client().plan(read_feeds(str(feeds)).feeds, store)
    assert text == f"{plan}\n"
    assert document["pages"] == plan.pages > 2
    assert (document["kind"], document["fits"], document["set_aside"]) == ("sync", None, 0)
    assert document["now"] == "2026-11-21T00:00:00Z"
    assert (document["store"], document["store_exists"]) == (str(path), True)
    assert [(task["feed"], task["why"]) for task in document["tasks"]] == [
        (task.feed, task.why) for task in plan.tasks
    ]
    assert document["tasks"][0]["start"] == "2026-11-20T00:00:00Z"
    assert document["allowance"]["resets_at"] == "2026-11-22T00:00:00Z"


def test_check_exits_with_5_where_the_allowance_is_not_enough(synced):
    sandbox, feeds, path = synced
    poor = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "1"}
    assert run_json("plan", feeds, path, env=poor)["fits"] is False
    document = run_json("plan", feeds, path, "--check", env=poor, status=5)
    assert (document["fits"], document["allowance"]["left"]) == (False, 1)
    assert "not enough" in run_command("plan", feeds, path, "--check", env=poor, status=5).stdout
    rich = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "1000"}
    assert run_json("plan", feeds, path, "--check", env=rich)["fits"] is True
    assert run_json("plan", feeds, path, "--check", env=sandbox.env())["fits"] is None


def test_a_store_that_is_not_there_is_not_made_and_all_is_to_be_read(synced, tmp_path):
    sandbox, feeds, _ = synced
    path = tmp_path / "new.siteline"
    document = run_json("plan", feeds, path, env=sandbox.env())
    assert document["store_exists"] is False
    assert (document["pages"], document["fits"]) == (None, None)
    assert {task["why"] for task in document["tasks"]} == {"edge", "fill"}
    assert f"There is no store {path} yet" in run_command(
        "plan", feeds, path, env=sandbox.env()
    ).stdout  # fmt: skip
    assert os.listdir(tmp_path) == []


def test_a_plan_only_reads_so_that_who_may_only_read_can_plan(synced, monkeypatch, capsys):
    sandbox, feeds, path = synced
    opened, real = [], siteline.Store

    def open_store(path, **options):
        opened.append(options)
        return real(path, **options)

    # Root may write whatever the modes are.
    monkeypatch.setattr(siteline, "Store", open_store)
    for name, value in sandbox.env().items():
        monkeypatch.setenv(name, value)
    assert main(["plan", str(feeds), str(path)]) == 0
    assert "pages expected" in capsys.readouterr().out
    assert opened == [{"read_only": True}]


def test_what_is_there_and_is_no_store_is_refused_and_left_as_it_is(synced, tmp_path):
    sandbox, feeds, _ = synced
    path = tmp_path / "notes.txt"
    path.write_text("not a store, but a text that is long enough to look at\n" * 100)
    document = run_json("plan", feeds, path, env=sandbox.env(), status=2)
    assert "not a store" in document["error"]["message"]
    assert os.listdir(tmp_path) == ["notes.txt"]
    run_command("plan", feeds, tmp_path, env=sandbox.env(), status=2)
    run_command("plan", feeds, path / "plant.siteline", env=sandbox.env(), status=2)


def test_a_plan_of_a_query_is_that_of_a_scan(synced):
    sandbox, _, _ = synced
    before = sandbox.stats
    query = ("--site", "S1", "--line", "L2", "--interval", "5m", "--filter", "machineId=M3")
    document = run_json(
        "plan", *query, "--start", "2026-11-01", "--end", "2026-11-03", env=sandbox.env()
    )
    assert sandbox.stats == before
    assert (document["kind"], document["store"], document["store_exists"]) == ("scan", None, None)
    (task,) = document["tasks"]
    assert (task["start"], task["end"]) == ("2026-11-01T00:00:00Z", "2026-11-03T00:00:00Z")
    text = run_command("plan", *query, "--start", "2026-11-01", env=sandbox.env()).stdout
    assert "2026-11-01 00:00 to 2026-11-20 23:55" in text


def test_the_pages_of_a_read_are_estimated_from_a_store(synced, tmp_path):
    sandbox, _, path = synced
    query = (
        "plan", "--site", "S1", "--line", "L2", "--interval", "5m", "--page-size", "500",
        "--start", "2026-11-01", "--end", "2026-11-03",
    )  # fmt: skip
    assert run_json(*query, env=sandbox.env())["pages"] is None
    document = run_json(*query, "--estimate-from", path, env=sandbox.env())
    assert (document["store"], document["tasks"][0]["feed"]) == (str(path), "line-2")
    scan = sandbox.client().data(
        site="S1", line="L2", interval="5m", page_size=500, start="2026-11-01", end="2026-11-03"
    )
    assert abs(document["pages"] - sum(1 for _ in scan.pages())) <= 2
    poor = {**sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "2"}
    run_command(*query, "--estimate-from", path, "--check", env=poor, status=5)
    other = tmp_path / "other.siteline"
    run_command(*query, "--estimate-from", other, env=sandbox.env(), status=2)
    assert not other.exists()


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
def test_a_wrong_command_line_is_a_usage_error(synced, arguments, message):
    sandbox, feeds, path = synced
    named = {"FEEDS": feeds, "STORE": path}
    before = sandbox.stats
    done = run_command(
        "plan", *(named.get(one, one) for one in arguments), env=sandbox.env(), status=2
    )
    assert message in done.stderr
    assert sandbox.stats == before
