"""`siteline changes`: the changes of a store, and the start of the next changes."""

import json
import os

import pytest
import siteline
from kit.command import run_command, run_json
from kit.feeds import make_feed


@pytest.fixture(scope="module")
def path(shared_sandbox, tmp_path_factory):
    """A store with one feed, which was synced twice, an hour apart."""
    path = tmp_path_factory.mktemp("store") / "plant.siteline"
    sync(shared_sandbox, path)
    shared_sandbox.clock.advance("1h")
    sync(shared_sandbox, path)
    return path


def sync(sandbox, path):
    with siteline.Store(path) as store:
        return sandbox.client().sync(make_feed(), store)["line-2"]


def known(path, since, *range_):
    """The changes by the store itself, with times as text."""
    with siteline.Store(path, read_only=True) as store:
        rows = list(store.changes("line-2", since, *range_).records())
    return [{**row, "timestamp": row["timestamp"].strftime("%Y-%m-%dT%H:%M:%SZ")} for row in rows]


def test_the_next_changes_follow(shared_sandbox, path, tmp_path):
    out = tmp_path / "out.jsonl"
    first = run_json("changes", path, "line-2", "--since", "0", "-o", out)
    assert (first["since"], first["points"]) == (0, len(known(path, 0)))
    assert (first["format"], first["bytes"]) == ("jsonl", out.stat().st_size)
    nothing = run_json("changes", path, "line-2", "--since", first["next_since"], "-o", out)
    assert (nothing["points"], nothing["next_since"]) == (0, first["next_since"])
    assert out.read_bytes() == b""
    shared_sandbox.clock.advance("1h")
    report = sync(shared_sandbox, path)
    later = run_json("changes", path, "line-2", "--since", first["next_since"], "-o", out)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert rows == known(path, first["next_since"])
    assert {row["change"] for row in rows} <= {"new", "revised"}
    assert later["points"] == report.inserted + report.revised > 0
    assert later["next_since"] == report.sequence


def test_changes_since_a_time(shared_sandbox, path):
    shared_sandbox.clock.advance("1d")
    before = shared_sandbox.clock.now().isoformat()
    shared_sandbox.clock.advance("1m")
    report = sync(shared_sandbox, path)
    found = run_command("changes", path, "line-2", "--since", before, "--format", "jsonl").stdout
    assert [json.loads(line) for line in found.splitlines()] == known(path, before)
    assert 0 < len(found.splitlines()) == report.inserted + report.revised
    yesterday = ("--since", "-1d", "--format", "jsonl")
    assert run_command("changes", path, "line-2", *yesterday).stdout == found


def test_the_range_can_be_narrowed(path):
    range_ = ("2026-11-16T00:00:00Z", "2026-11-16T06:00:00Z")
    arguments = ["--start", range_[0], "--end", range_[1], "--format", "jsonl"]
    done = run_command("changes", path, "line-2", "--since", "0", *arguments)
    assert [json.loads(line) for line in done.stdout.splitlines()] == known(path, 0, *range_)


def test_an_unread_part_is_an_error(path):
    arguments = ["changes", path, "line-2", "--since", "0", "--start", "2026-11-01"]
    done = run_command(*arguments, status=6)
    assert done.stdout == ""
    assert "unread: 2026-11-01T00:00:00Z to 2026-11-15T00:00:00Z" in done.stderr
    assert "client.sync" not in done.stderr
    warned = run_command(*arguments, "--unread", "warn")
    assert len(warned.stdout.splitlines()) == 1 + len(known(path, 0))
    assert "warning" in warned.stderr
    assert "siteline coverage shows details" in warned.stderr
    exported = run_command("store", "export", path, "line-2", "--start", "2026-11-01", status=6)
    assert "siteline coverage shows the ranges that have been read." in exported.stderr
    assert 'unread="' not in exported.stderr


PLANT = ["plant.siteline", "line-2", "--since", "0"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.siteline", *PLANT[1:]], "There is no store"),
        (["plant.siteline", "line-3", *PLANT[2:]], "no feed"),
        ([*PLANT[:3], "999"], "does not exist yet"),
        ([*PLANT[:3], "9" * 5_000], "is not"),
        ([*PLANT[:3], "soon"], "is not"),
        (PLANT[:2], "--since"),
        ([*PLANT, "--json"], "stdout has the data"),
        ([*PLANT, "-o", "plant.siteline", "--format", "csv"], "a store, which -o does not replace"),
    ],
)
def test_a_wrong_line_changes_no_file(path, arguments, said):
    folder = path.parent
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    assert said in run_command("changes", *arguments, folder=folder, status=2).stderr
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before


def test_an_option_may_be_before_the_feed(path, tmp_path):
    out = ("-o", tmp_path / "out.csv")
    assert run_json("changes", path, "--since", "0", "line-2", *out)["feed"] == "line-2"
    assert run_json("store", "export", path, "--final", "line-2", *out)["feed"] == "line-2"
    run_command("coverage", path, "--lateness", "line-2")
    refused = run_command("changes", path, "--since", "0", "line-2", "line-3", status=2)
    assert "unrecognized arguments: line-3" in refused.stderr


def test_the_only_feed_needs_no_name(shared_sandbox, path, tmp_path):
    assert run_json("changes", path, "--since", "0", "-o", tmp_path / "out.csv")["feed"] == "line-2"
    assert run_json("store", "export", path, "-o", tmp_path / "out.csv")["feed"] == "line-2"
    assert "no feed" in run_command("changes", path, "", "--since", "0", status=2).stderr
    several = tmp_path / "several.siteline"
    feeds = [make_feed(name, start="2026-11-19") for name in ("line-1", "line-2")]
    shared_sandbox.client().sync(feeds, siteline.Store(several))
    for words in (("changes", several, "--since", "0"), ("store", "export", several)):
        done = run_command(*words, status=2)
        assert "its feeds are line-1, line-2." in done.stderr
