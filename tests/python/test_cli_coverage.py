"""`siteline coverage` and `siteline lateness`: what a store knows of its feeds."""

import os
from datetime import datetime, timedelta

import pandas as pd
import pytest
import siteline
from kit.command import run_command, run_json
from kit.ranges import NOW

LATER = "2026-11-20T06:00:00Z"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store with two feeds: one was read wholly and has a day without points, one in parts."""
    path = tmp_path_factory.mktemp("store") / "plant.siteline"
    days = ["2026-11-15", "2026-11-16", "2026-11-18", "2026-11-19"]
    times = [time for day in days for time in pd.date_range(day, periods=24, freq="1h", tz="UTC")]
    query = {"site": "S1", "line": "L1", "interval": "1h", "since": "2026-11-15T00:00Z"}
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path) as store:
        sandbox.load(pd.DataFrame({"timestamp": times, "value": 1.0}), bucket="1h")
        sandbox.client().sync(siteline.Feed("whole", **query), store)
        spent = sandbox.client(daily_allowance=3)
        spent.sync(siteline.Feed("part", **query, page_size=30, window="1d"), store)
    return path


def windows_of(document, number=0):
    return [
        (one["start"][:10], one["state"], one["empty"])
        for one in document["feeds"][number]["windows"]
    ]


def test_coverage_tells_read_and_empty_from_never_read(path):
    document = run_json("coverage", path, "--now", LATER)
    assert document["command"] == "coverage"
    assert [feed["name"] for feed in document["feeds"]] == ["part", "whole"]
    assert windows_of(document, 1) == [
        ("2026-11-15", "settled", False),
        ("2026-11-16", "settled", False),
        ("2026-11-17", "settled", True),
        ("2026-11-18", "settled", False),
        ("2026-11-19", "provisional", False),
        ("2026-11-19", "unread", None),
        ("2026-11-20", "unread", None),
    ]
    unread = [empty for _, state, empty in windows_of(document) if state == "unread"]
    assert len(unread) > 1
    assert set(unread) == {None}


def test_coverage_gives_what_the_store_gives(path):
    document = run_json("coverage", path, "part", "--now", LATER)
    (feed,) = document["feeds"]
    with siteline.Store(path, read_only=True) as store:
        known = store.coverage("part", now=LATER)
    assert feed["now"] == LATER
    for name in ("settled_through", "read_through", "newest"):
        assert datetime.fromisoformat(feed[name]) == getattr(known, name)
    assert known.read_through < known.newest, "there is a gap"
    assert {state: timedelta(seconds=span) for state, span in feed["spans"].items()} == known.spans
    assert [list(window.values()) for window in feed["windows"]] == [
        [one if isinstance(one, (str, bool, type(None))) else as_text(one) for one in window]
        for window in known
    ]


def as_text(time):
    return time.isoformat().replace("+00:00", "Z")


def test_for_a_person_neighbours_in_the_same_state_are_one_row(path):
    text = run_command("coverage", path, "whole", "--now", LATER).stdout
    assert "settled through 2026-11-19 00:00, read through 2026-11-19 23:00" in text
    rows = [" ".join(line.split()) for line in text.splitlines() if line.startswith("  2026-11-1")]
    assert rows == [
        "2026-11-15 00:00 2026-11-17 00:00 2 d settled",
        "2026-11-17 00:00 2026-11-18 00:00 1 d settled read, empty",
        "2026-11-18 00:00 2026-11-19 00:00 1 d settled",
        "2026-11-19 00:00 2026-11-19 23:00 23 h provisional",
        "2026-11-19 23:00 2026-11-20 05:00 6 h unread",
    ]


def test_without_a_time_coverage_is_for_that_of_this_machine_or_a_later_read(path):
    (feed,) = run_json("coverage", path, "whole")["feeds"]
    assert feed["now"] >= NOW
    assert feed["settled_through"] == "2026-11-19T00:00:00Z"


def test_each_feed_is_shown_once_and_in_the_order_asked_for(path):
    document = run_json("coverage", path, "whole", "part", "whole", "--now", LATER)
    assert [feed["name"] for feed in document["feeds"]] == ["whole", "part"]


@pytest.mark.parametrize("command", ["coverage", "lateness"])
def test_a_wrong_feed_store_or_time_is_a_fault_of_usage(path, tmp_path, command):
    told = run_command(command, path, "line-9", status=2).stderr
    assert 'has no feed "line-9"' in told
    assert "Its feeds: part, whole." in told
    missing = tmp_path / "mistyped.siteline"
    assert "there is no store" in run_command(command, missing, status=2).stderr
    assert not missing.exists()
    text = tmp_path / "notes.txt"
    text.write_text("notes")
    assert "it is not a store of siteline" in run_command(command, text, status=2).stderr
    assert run_json("coverage", path, "--now", "soon", status=2)["error"]["type"] == "QueryError"


@pytest.mark.parametrize("command", ["coverage", "lateness"])
def test_a_store_without_feeds_says_so(tmp_path, command):
    empty = tmp_path / "empty.siteline"
    siteline.Store(empty).close()
    assert run_json(command, empty)["feeds"] == []
    assert "the store has no feeds" in run_command(command, empty).stdout


def test_neither_command_makes_a_file_nor_needs_a_credential(path):
    before = sorted(os.listdir(path.parent))
    for command in ("coverage", "lateness"):
        run_command(command, path, "--profile", "nobody")
    assert sorted(os.listdir(path.parent)) == before


def test_a_terminal_that_cannot_write_the_calendar_still_gets_the_rows(path):
    shown = run_command(
        "coverage", path, "whole", "--now", LATER, env={"PYTHONIOENCODING": "ascii"}
    ).stdout
    assert "? settled 4 d" in shown
    assert "2026-11-17 00:00" in shown


def test_lateness_gives_what_the_store_gives(sandbox, store):
    feed = siteline.Feed("line-2", site="S1", line="L2", interval="5m", since="2026-11-17T00:00Z")
    for _ in range(3):
        sandbox.client().sync(feed, store)
        sandbox.clock.advance("1h")
    known = store.lateness("line-2")
    assert known.points.count > 100
    (found,) = run_json("lateness", store.path)["feeds"]
    assert found["name"] == "line-2"
    assert found["lateness"] == 86_400
    assert found["verdict"] == known.verdict
    for name in ("settled", "looked", "suggested"):
        assert found[name] == seconds(getattr(known, name))
    for name in ("points", "revisions"):
        delays = getattr(known, name)
        assert found[name]["count"] == delays.count
        assert found[name]["late"] == delays.late
        for quantile in ("median", "p90", "p95", "p99", "longest"):
            assert found[name][quantile] == seconds(getattr(delays, quantile))
    assert run_command("lateness", store.path).stdout == f"{known}\n"


def seconds(length):
    return None if length is None else length.total_seconds()
