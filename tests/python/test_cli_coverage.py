"""`siteline coverage`, with and without `--lateness`: the state of the feeds in a store."""

import os
from datetime import datetime, timedelta

import pandas as pd
import pytest
import siteline
from kit.command import run_command, run_json, run_process
from kit.ranges import NOW

LATER = "2026-11-20T06:00:00Z"
BOTH = pytest.mark.parametrize("more", [[], ["--lateness"]], ids=str)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store with two feeds: one was read wholly and has a day without points, one in parts."""
    path = tmp_path_factory.mktemp("store") / "plant.siteline"
    days = ["2026-11-15", "2026-11-16", "2026-11-18", "2026-11-19"]
    times = [time for day in days for time in pd.date_range(day, periods=24, freq="1h", tz="UTC")]
    query = {"site": "S1", "line": "L1", "interval": "1h", "start": "2026-11-15T00:00Z"}
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path) as store:
        sandbox.load(pd.DataFrame({"timestamp": times, "value": 1.0}), bucket="1h")
        sandbox.client().sync(siteline.Feed("whole", **query), store)
        spent = sandbox.client(daily_allowance=3)
        spent.sync(siteline.Feed("part", **query, page_size=30, window="1d"), store)
    return path


def windows_of(feed):
    return [(one["start"][:10], one["state"], one["empty"]) for one in feed["windows"]]


def test_coverage_tells_empty_from_unread(path):
    document = run_json("coverage", path, "--now", LATER)
    part, whole = document["feeds"]
    assert (document["command"], part["feed"], whole["feed"]) == ("coverage", "part", "whole")
    assert windows_of(whole) == [
        ("2026-11-15", "settled", False),
        ("2026-11-16", "settled", False),
        ("2026-11-17", "settled", True),
        ("2026-11-18", "settled", False),
        ("2026-11-19", "provisional", False),
        ("2026-11-19", "unread", None),
        ("2026-11-20", "unread", None),
    ]
    unread = [empty for _, state, empty in windows_of(part) if state == "unread"]
    assert len(unread) > 1
    assert set(unread) == {None}
    with siteline.Store(path, read_only=True) as store:
        known = store.coverage("part", now=LATER)
    assert part == known.to_dict()
    assert (part["now"], datetime.fromisoformat(part["newest"])) == (LATER, known.newest)
    assert known.read_through < known.newest, "there is a gap"
    chosen = run_json("coverage", path, "whole", "part", "whole", "--now", LATER)
    assert chosen["feeds"] == [whole, part]
    # Without --now, the time of the service is used.
    now = datetime.fromisoformat(run_json("coverage", path, "whole")["feeds"][0]["now"])
    assert timedelta() <= now - datetime.fromisoformat(NOW) < timedelta(hours=1)


def test_text_joins_neighbours_in_one_state(path):
    # On a terminal that cannot write the calendar.
    env = {"PYTHONIOENCODING": "ascii"}
    text = run_process("coverage", path, "whole", "--now", LATER, env=env).stdout
    assert "settled through 2026-11-19 00:00, read through 2026-11-19 23:00" in text
    assert "? settled 4 d" in text
    rows = [" ".join(line.split()) for line in text.splitlines() if line.startswith("  2026-11-1")]
    assert rows == [
        "2026-11-15 00:00 2026-11-17 00:00 2 d settled",
        "2026-11-17 00:00 2026-11-18 00:00 1 d settled read, empty",
        "2026-11-18 00:00 2026-11-19 00:00 1 d settled",
        "2026-11-19 00:00 2026-11-19 23:00 23 h provisional",
        "2026-11-19 23:00 2026-11-20 05:00 6 h unread",
    ]


@BOTH
def test_a_wrong_argument_is_a_usage_error(path, tmp_path, more):
    told = run_command("coverage", path, "line-9", *more, status=2).stderr
    assert 'has no feed "line-9"' in told
    assert "Its feeds: part, whole." in told
    (tmp_path / "typed.siteline").touch()
    missing, text = tmp_path / "mistyped.siteline", tmp_path / "notes.txt"
    mistyped = run_command("coverage", missing, *more, status=2).stderr
    assert "There is no store" in mistyped
    assert "Nearest: 'typed.siteline'" in mistyped
    (tmp_path / "typed.siteline").unlink()
    text.write_text("notes")
    assert "it is not a store of siteline" in run_command("coverage", text, *more, status=2).stderr
    assert run_json("coverage", path, "--now", "soon", status=2)["error"]["type"] == "QueryError"
    both = run_command("coverage", path, "--lateness", "--now", LATER, status=2)
    assert "Leave out --now" in both.stderr
    assert os.listdir(tmp_path) == ["notes.txt"]


@BOTH
def test_it_neither_writes_nor_needs_credentials(path, tmp_path, more):
    before = sorted(os.listdir(path.parent))
    run_command("coverage", path, *more, "--profile", "nobody")
    assert sorted(os.listdir(path.parent)) == before
    empty = tmp_path / "empty.siteline"
    siteline.Store(empty, share="group-read").close()
    assert run_json("coverage", empty, *more)["feeds"] == []
    assert "The store has no feeds" in run_command("coverage", empty, *more).stdout


def test_lateness_equals_that_of_the_store(sandbox, store):
    feed = siteline.Feed("line-2", site="S1", line="L2", interval="5m", start="2026-11-17T00:00Z")
    for _ in range(3):
        sandbox.client().sync(feed, store)
        sandbox.clock.advance("1h")
    known = store.lateness("line-2")
    assert known.points.count > 100
    (found,) = run_json("coverage", store.path, "--lateness")["feeds"]
    assert (found["feed"], found["lateness"]) == ("line-2", 86_400)
    assert found == known.to_dict()
    assert found["points"]["longest"] == known.points.longest.total_seconds()
    assert run_command("coverage", store.path, "--lateness").stdout == f"{known}\n"
