"""`siteline store`: check, backup, restore and info."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest
import siteline
from kit import systems
from kit.command import environment, run_command, run_json
from kit.feeds import make_feed, stored_points
from kit.ranges import NOW
from siteline.cli.stores import read


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """A closed store with one feed."""
    path = tmp_path_factory.mktemp("store") / "plant.siteline"
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path) as store:
        sandbox.client().sync(make_feed(page_size=2_000, audit_pages=2), store)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A closed store of over four megabytes, whose copy has several steps."""
    path = tmp_path_factory.mktemp("store") / "large.siteline"
    feed = make_feed(since="2026-10-25T00:00Z", interval="1m", page_size=10_000)
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path) as store:
        sandbox.client().sync(feed, store)
    assert path.stat().st_size > 4 << 20
    return path


@pytest.fixture
def damaged(plant, tmp_path):
    """A copy of the store with a bit of each page but the first changed."""
    path = tmp_path / "damaged.siteline"
    found = bytearray(plant.read_bytes())
    for at in range(4_096 + 2_000, len(found), 4_096):
        found[at] ^= 1
    path.write_bytes(found)
    return path


def test_a_sound_store_is_checked_and_left_as_it_is(plant):
    before = {name: (plant.parent / name).read_bytes() for name in os.listdir(plant.parent)}
    document = run_json("store", "check", plant)
    assert document == {
        "schema": 1,
        "command": "store check",
        "exit": 0,
        "store": str(plant),
        "feeds": 1,
        "bytes": plant.stat().st_size,
    }
    assert "everything agrees with its checksums" in run_command("store", "check", plant).stdout
    assert before == {name: (plant.parent / name).read_bytes() for name in os.listdir(plant.parent)}


def test_damage_is_found_and_has_its_own_status(damaged):
    document = run_json("store", "check", damaged, status=7)
    assert document["error"]["type"] == "StoreCorrupt"
    told = run_command("store", "check", damaged, status=7)
    assert str(damaged) in told.stderr
    assert told.stdout == ""


def test_a_backup_is_the_store_also_while_another_has_it_open(plant, tmp_path):
    copy = tmp_path / "copy.siteline"
    with siteline.Store(plant) as store:
        document = run_json("store", "backup", plant, copy)
        points = stored_points(store)
    assert document["command"] == "store backup"
    assert document["bytes"] == copy.stat().st_size
    with siteline.Store(copy, read_only=True) as store:
        assert stored_points(store) == points != {}
    assert os.listdir(tmp_path) == ["copy.siteline"]


def test_a_backup_replaces_nothing(plant, tmp_path):
    there = tmp_path / "there.siteline"
    there.write_text("something")
    told = run_command("store", "backup", plant, there, status=2).stderr
    assert "this path exists already" in told
    assert there.read_text() == "something"
    run_command("store", "backup", plant, plant, status=2)
    run_command("store", "backup", plant, tmp_path / "nowhere" / "copy", status=2)
    run_command("store", "backup", tmp_path / "mistyped", tmp_path / "copy", status=2)
    assert os.listdir(tmp_path) == ["there.siteline"]


@pytest.fixture
def killed(tmp_path):
    """A store with a leftover log, because its sync was killed."""
    path = tmp_path / "killed.siteline"
    script = """
        import os, signal, sys, siteline
        since = "2026-11-01T00:00Z"
        feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", since=since)
        with siteline.Sandbox(now="2026-11-21T10:00:00Z") as sandbox:
            store = siteline.Store(sys.argv[1])
            sandbox.client().sync(feed, store)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), path]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert path.with_name("killed.siteline-wal").stat().st_size > 0
    return path


def backup_of(plant, folder):
    """Makes a backup of the store and returns its path."""
    run_command("store", "backup", plant, folder / "backup.siteline")
    return folder / "backup.siteline"


@systems.SIGNALS
def test_a_backup_replaces_the_store_of_a_killed_sync(plant, killed, tmp_path):
    backup, mode = backup_of(plant, tmp_path), 0o640
    killed.chmod(mode)
    document = run_json("store", "restore", backup, killed)
    assert document == {
        "schema": 1,
        "command": "store restore",
        "exit": 0,
        "backup": str(backup),
        "store": str(killed),
        "bytes": killed.stat().st_size,
        "replaced": True,
    }
    assert not killed.with_name("killed.siteline-wal").exists()
    run_command("store", "check", killed)
    assert killed.stat().st_mode & 0o777 == mode
    with siteline.Store(killed) as store, siteline.Store(plant, read_only=True) as other:
        assert stored_points(store) == stored_points(other) != {}


@systems.SIGNALS
@pytest.mark.parametrize("put", [shutil.copyfile, os.replace])
def test_a_copy_put_by_hand_is_not_destroyed(plant, killed, tmp_path, put):
    put(backup_of(plant, tmp_path), killed)
    # A command that only reads leaves the log in place.
    told = run_command("store", "check", killed, status=2).stderr
    assert "belongs to another file" in told
    with siteline.Store(killed) as store, siteline.Store(plant, read_only=True) as other:
        store.check()
        assert stored_points(store) == stored_points(other) != {}
    assert [name for name in os.listdir(tmp_path) if "-other-wal-" in name]
    run_command("store", "check", killed)


@systems.LINUX
def test_a_store_in_use_is_not_replaced(plant, tmp_path):
    backup, path = backup_of(plant, tmp_path), tmp_path / "used.siteline"
    with siteline.Store(path):
        told = run_command("store", "restore", backup, path, status=75).stderr
        assert "a process has it open" in told
        assert "Nothing was changed" in told
    text = run_command("store", "restore", backup, path).stdout
    assert "the file that was there is gone" in text


def test_what_cannot_be_restored_changes_nothing(plant, damaged, tmp_path):
    path = tmp_path / "store.siteline"
    shutil.copyfile(plant, path)
    before = path.read_bytes()
    told = run_command("store", "restore", damaged, path, status=7).stderr
    assert str(damaged) in told
    run_command("store", "restore", tmp_path / "mistyped", path, status=2)
    run_command("store", "restore", path, path, status=2)
    (tmp_path / "text").write_text("no store" * 999)
    told = run_command("store", "restore", tmp_path / "text", path, status=2).stderr
    assert "not a store of siteline" in told
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["damaged.siteline", "store.siteline", "text"]
    assert run_json("store", "restore", plant, tmp_path / "new")["replaced"] is False


def test_a_read_that_a_writer_disturbs_is_begun_again_twice(plant):
    tries = []

    def work(store):
        tries.append(list(store.feeds))
        if len(tries) < busy + 1:
            raise siteline.StoreBusy("a writer has opened the store meanwhile")
        return len(tries)

    busy = 2
    assert read(plant, work) == 3
    assert all(tries)
    busy = 9
    tries.clear()
    with pytest.raises(siteline.StoreBusy):
        read(plant, work)
    assert len(tries) == 3


def test_a_store_that_stays_busy_is_given_up_with_its_own_status(plant):
    tries = []

    def work(store):
        tries.append(store)
        raise siteline.StoreBusy("the store is busy")

    with pytest.raises(siteline.StoreBusy):
        read(plant, work)
    assert 1 < len(tries) < 10


INTERRUPTED = """
    import os, signal, sys
    import siteline.progress
    from siteline.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Where a terminal would show the first line: the command is in the midst of its work.
    siteline.progress._is_terminal = lambda stream: True
    siteline.progress._StoreLine.__call__ = lambda *_: os.kill(os.getpid(), signal.SIGINT)
    sys.exit(main(sys.argv[1:]))
"""


@systems.SIGNALS
@pytest.mark.parametrize("action", ["check", "backup"])
def test_ctrl_c_ends_the_work_with_its_status_and_leaves_nothing_or_all(large, tmp_path, action):
    target = [tmp_path / "copy.siteline"] if action == "backup" else []
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), "store", action, large, *target],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "siteline: interrupted\n")
    # The last progress is told when the copy is whole: then it stays.
    for copy in tmp_path.iterdir():
        run_command("store", "check", copy)


@systems.TERMINAL
def test_progress_is_shown_on_a_terminal_unless_it_is_not_wanted(plant):
    import pty

    for more, shown in (((), True), (("--no-progress",), False), (("--json",), False)):
        terminal, side = pty.openpty()
        command = [sys.executable, "-m", "siteline", "store", "check", str(plant), *more]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=side, env=environment()
        ) as one:
            os.close(side)
            output = one.stdout.read()
        assert one.returncode == 0
        assert output
        try:
            told = os.read(terminal, 4_096)
        except OSError:  # nobody wrote to it
            told = b""
        os.close(terminal)
        assert (b"100%" in told) == shown, told


def test_info_tells_the_files_the_feeds_and_how_far_they_are_read(plant):
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
        assert feed["points"] == len(stored_points(store)) > 1_000
    known = make_feed(page_size=2_000, audit_pages=2)
    expected = {
        name: plain(getattr(known, name))
        for name in ("name", "site", "line", "interval", "page_size", "filters", "since")
    }
    times = ("settle_lag", "overlap", "lateness", "window", "audit_pages")
    expected |= {name: plain(getattr(known, name)) for name in times}
    through = ("settled_through", "read_through", "newest")
    expected |= {name: plain(getattr(coverage, name)) for name in through}
    assert {name: value for name, value in feed.items() if name != "points"} == expected
    text = run_command("store", "info", plant).stdout
    assert "siteId S1, lineId L2, interval 5 min, page size 2000" in text
    assert "settled through 2026-11-19 00:00, read through 2026-11-19 23:55" in text
    assert f"{feed['points']:,}" in text


def plain(value):
    from siteline.cli.output import _plain

    return value if isinstance(value, (str, int, dict, type(None))) else _plain(value)


@systems.MODES
@pytest.mark.parametrize(
    ("share", "mode", "readers", "writers"),
    [
        (None, "0600", ["owner"], ["owner"]),
        ("group-read", "0640", ["owner", "group"], ["owner"]),
        ("group", "0660", ["owner", "group"], ["owner", "group"]),
    ],
)
def test_info_tells_who_may_use_the_store(tmp_path, share, mode, readers, writers):
    path = tmp_path / "shared.siteline"
    siteline.Store(path, share=share).close()
    document = run_json("store", "info", path)
    assert (document["mode"], document["may_read"], document["may_write"]) == (
        mode,
        readers,
        writers,
    )
    assert f"mode {mode}" in run_command("store", "info", path).stdout


def test_info_of_a_feed_that_was_never_read_says_so(tmp_path):
    path = tmp_path / "new.siteline"
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path) as store:
        feeds = [make_feed("a"), make_feed("b", filters={"tagGuid": "T1"})]
        sandbox.client(daily_allowance=1).sync(feeds, store)
    _, feed = run_json("store", "info", path)["feeds"]
    assert (feed["points"], feed["newest"], feed["read_through"]) == (0, None, None)
    assert feed["filters"] == {"tagGuid": ["T1"]}
    assert "nothing read yet" in run_command("store", "info", path).stdout


@systems.ROOT
def test_a_store_of_another_user_is_told_as_such_and_not_as_missing(plant, tmp_path):
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    (folder / "plant.siteline").write_bytes(plant.read_bytes())
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
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), folder / "plant.siteline"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert done.returncode == 2, done
    refusal = done.stderr.partition("as another user")[2]
    assert "Permission denied" in refusal
    assert "there is no store" not in refusal


def test_no_command_of_a_store_loads_what_it_does_not_need(plant, tmp_path):
    script = """
        import json, sys
        from siteline.cli import main
        status = main(json.loads(sys.argv[1]))
        heavy = {"pandas", "polars", "pyarrow", "numpy", "asyncio", "duckdb"}
        print(status, sorted(heavy & set(sys.modules)), file=sys.stderr)
    """
    for arguments in (
        ["store", "check", str(plant)],
        ["store", "info", str(plant)],
        ["store", "backup", str(plant), str(tmp_path / "copy.siteline")],
        ["coverage", str(plant), "--json"],
        ["lateness", str(plant)],
    ):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), json.dumps(arguments)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment(),
        )
        assert done.stderr == "0 []\n", (arguments, done.stderr)
