"""`siteline store`: check, backup, restore and info."""

import os
import shutil
import signal
import sys
import textwrap
from datetime import datetime, timedelta

import pytest
import siteline
from kit import systems
from kit.command import on_terminal, run_command, run_json, run_program
from kit.feeds import damaged_copy, make_feed, stored_points
from kit.ranges import NOW
from siteline._doctor.machine import read
from siteline._times import iso


@pytest.fixture(scope="module")
def plant(shared_sandbox, tmp_path_factory):
    """A closed store with one feed."""
    path = tmp_path_factory.mktemp("store") / "plant.siteline"
    with siteline.Store(path) as store:
        shared_sandbox.client().sync(make_feed(page_size=2_000, audit_pages=2), store)
    return path


def is_plant(path, plant):
    """Whether the store at the path has the points of the plant."""
    with siteline.Store(path) as store, siteline.Store(plant, read_only=True) as other:
        store.check()
        return stored_points(store) == stored_points(other) != {}


def contents(folder):
    return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def test_a_check_changes_nothing(plant):
    before = contents(plant.parent)
    document = run_json("store", "check", plant)
    expected = {"store": str(plant), "feeds": 1, "bytes": plant.stat().st_size}
    assert document == {"schema": 2, "command": "store check", "exit": 0, **expected}
    assert "all checksums are correct" in run_command("store", "check", plant).stdout
    assert contents(plant.parent) == before


def test_damage_has_its_own_status(plant, tmp_path):
    damaged = damaged_copy(plant, tmp_path)
    assert run_json("store", "check", damaged, status=7)["error"]["type"] == "StoreCorrupt"
    told = run_command("store", "check", damaged, status=7)
    assert str(damaged) in told.stderr
    assert told.stdout == ""


def test_a_backup_equals_an_open_store(plant, tmp_path):
    copy = tmp_path / "copy.siteline"
    with siteline.Store(plant):
        document = run_json("store", "backup", plant, copy)
    assert document["bytes"] == copy.stat().st_size
    assert os.listdir(tmp_path) == ["copy.siteline"]
    assert is_plant(copy, plant)


def test_a_backup_replaces_nothing(plant, tmp_path):
    there = tmp_path / "there.siteline"
    there.write_text("something")
    told = run_command("store", "backup", plant, there, status=2).stderr
    assert "this path exists already" in told
    run_command("store", "backup", plant, plant, status=2)
    run_command("store", "backup", plant, tmp_path / "nowhere" / "copy", status=2)
    run_command("store", "backup", tmp_path / "mistyped", tmp_path / "copy", status=2)
    assert contents(tmp_path) == {"there.siteline": b"something"}


@pytest.fixture
def killed(tmp_path):
    """A store with a leftover log, because its sync was killed."""
    path = tmp_path / "killed.siteline"
    script = """
        import os, signal, sys, siteline
        start = "2026-11-01T00:00Z"
        feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start=start)
        with siteline.Sandbox(now="2026-11-21T10:00:00Z") as sandbox:
            store = siteline.Store(sys.argv[1])
            sandbox.client().sync(feed, store)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = run_program(sys.executable, "-c", textwrap.dedent(script), path)
    assert done.returncode == -signal.SIGKILL
    assert path.with_name("killed.siteline-wal").stat().st_size > 0
    return path


@systems.SIGNALS
def test_restore_replaces_a_killed_store(plant, killed, tmp_path):
    backup, mode = tmp_path / "backup.siteline", 0o640
    run_command("store", "backup", plant, backup)
    killed.chmod(mode)
    document = run_json("store", "restore", backup, killed)
    expected = {"backup": str(backup), "store": str(killed), "bytes": killed.stat().st_size}
    expected |= {"command": "store restore", "replaced": True}
    assert document == {"schema": 2, "exit": 0, **expected}
    assert not killed.with_name("killed.siteline-wal").exists()
    assert killed.stat().st_mode & 0o777 == mode
    assert is_plant(killed, plant)


@systems.LINUX
def test_a_store_in_use_is_not_replaced(plant, tmp_path):
    path = tmp_path / "used.siteline"
    with siteline.Store(path, share="group-read"):
        told = run_command("store", "restore", plant, path, status=75).stderr
        assert "a process has it open" in told
        assert "Nothing was changed" in told
    text = run_command("store", "restore", plant, path).stdout
    assert "it replaced the old file" in text


def test_a_failed_restore_changes_nothing(plant, tmp_path):
    path, text = tmp_path / "store.siteline", tmp_path / "text"
    damaged = damaged_copy(plant, tmp_path)
    shutil.copyfile(plant, path)
    text.write_text("no store" * 999)
    before = contents(tmp_path)
    assert str(damaged) in run_command("store", "restore", damaged, path, status=7).stderr
    run_command("store", "restore", tmp_path / "mistyped", path, status=2)
    run_command("store", "restore", path, path, status=2)
    told = run_command("store", "restore", text, path, status=2).stderr
    assert "not a store of siteline" in told
    assert contents(tmp_path) == before
    assert run_json("store", "restore", plant, tmp_path / "new")["replaced"] is False


def test_a_disturbed_read_is_repeated_twice(plant):
    tried = []

    def work(store):
        tried.append(list(store.feeds))
        if len(tried) % 6 != 3:
            raise siteline.errors.StoreBusy("a writer has opened the store meanwhile")
        return len(tried)

    assert read(plant, work) == 3
    with pytest.raises(siteline.errors.StoreBusy):
        read(plant, work)
    assert len(tried) == 6


@systems.TERMINAL
@pytest.mark.parametrize("more", [None, "--no-progress", "--json"])
def test_progress_is_shown_on_a_terminal(plant, more):
    status, told = on_terminal("store", "check", plant, *filter(None, [more]))
    assert status == 0
    assert ("100%" in told) == (more is None), told


def test_info_lists_files_and_feeds(plant):
    document = run_json("store", "info", plant)
    assert document["store"] == str(plant)
    assert document["files"] == [
        {"name": name, "bytes": (plant.parent / name).stat().st_size}
        for name in ("plant.siteline", "plant.siteline-lock")
    ]
    assert document["free_bytes"] > 0
    (feed,) = document["feeds"]
    with siteline.Store(plant, read_only=True) as store:
        coverage = store.coverage("line-2", now=NOW)
        assert feed.pop("points") == len(stored_points(store)) > 1_000
    names = "name site line interval page_size filters start settle_lag overlap lateness window"
    made = make_feed(page_size=2_000, audit_pages=2)
    expected = {name: plain(getattr(made, name)) for name in [*names.split(), "audit_pages"]}
    through = ("settled_through", "read_through", "newest")
    assert feed == expected | {name: plain(getattr(coverage, name)) for name in through}
    text = run_command("store", "info", plant).stdout
    assert "siteId S1, lineId L2, interval 5 min, page size 2000" in text
    assert "settled through 2026-11-19 00:00, read through 2026-11-19 23:55" in text


def plain(value):
    if isinstance(value, timedelta):
        return value.total_seconds()
    return iso(value) if isinstance(value, datetime) else value


@systems.MODES
def test_info_shows_who_may_use_it(tmp_path):
    path = tmp_path / "shared.siteline"
    siteline.Store(path, share="group-read").close()
    document = run_json("store", "info", path)
    found = [document[name] for name in ("mode", "may_read", "may_write")]
    assert found == ["0640", ["owner", "group"], ["owner"]]
    assert "mode 0640" in run_command("store", "info", path).stdout


def test_info_shows_feeds_without_points(shared_sandbox, tmp_path):
    path = tmp_path / "new.siteline"
    feeds = [make_feed("a"), make_feed("b", filters={"tagGuid": "T1"})]
    with siteline.Store(path) as store:
        shared_sandbox.client(daily_allowance=1).sync(feeds, store, concurrency=1)
    _, feed = run_json("store", "info", path)["feeds"]
    assert (feed["points"], feed["newest"], feed["read_through"]) == (0, None, None)
    assert feed["filters"] == {"tagGuid": ["T1"]}
    assert "nothing read yet" in run_command("store", "info", path).stdout


@systems.ROOT
def test_a_store_of_another_user_is_named(plant, tmp_path):
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    shutil.copyfile(plant, folder / "plant.siteline")
    script = """
import os, sys
from siteline.cli import main
# Loads every module that the refusal needs: the other user may not read them.
main(["store", "info", sys.argv[1] + ".missing"])
os.setgid(65_534)
os.setuid(65_534)
print("as another user", file=sys.stderr)
sys.exit(main(["store", "info", sys.argv[1]]))
"""
    done = run_program(sys.executable, "-c", script, folder / "plant.siteline")
    assert done.returncode == 2, done
    refusal = done.stderr.partition("as another user")[2]
    assert "permission denied" in refusal
    assert "There is no store" not in refusal
