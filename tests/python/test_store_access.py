"""Who may use a store: other users, root, read-only use, and what an opening leaves behind."""

import asyncio
import os
import pickle
import stat
import threading

import pytest
import siteline
from kit import systems
from kit.feeds import make_feed, stored_points
from kit.interpreter import FORK_WITH_THREADS, run_script

# A store that this user has filled, in a folder where everybody may make files, and `as_other()`,
# which runs a function as another user and prints what it raises or returns. Without root there is
# no other user to become: the same user without the permission has to do.
SCRIPT = """
    import atexit, os, pathlib, shutil, sys, tempfile, traceback
    import siteline
    from siteline import SitelineError, Store  # another user may not be able to read the modules

    ROOT = os.geteuid() == 0
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o777)
    path = folder / "plant.siteline"

    def names():
        return sorted(file.name for file in folder.iterdir())

    def as_other(function):
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            try:
                if ROOT:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                print("gives", function())
            except SitelineError as error:
                print(type(error).__name__, error.args[0], "HINT", error.hint)
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)

    def mode(ending=""):
        return oct(pathlib.Path(f"{path}{ending}").stat().st_mode & 0o777)

    def fill():
        with siteline.Store(path) as store:
            store.apply("line-2", None, b"state")
"""


def run(script):
    """The output of a script that begins as `SCRIPT` does."""
    return run_script(SCRIPT + script, *FORK_WITH_THREADS)


@systems.FORK
def test_a_refused_opening_leaves_nothing_behind_and_the_owner_goes_on():
    printed = run("""
    fill()
    # Everybody may read it, as a store of an older siteline.
    path.chmod(0o644 if ROOT else 0o444)
    as_other(lambda: siteline.Store(path))
    print(names())
    path.chmod(0o644)
    fill()
    path.chmod(0o600 if ROOT else 0)
    as_other(lambda: siteline.Store(path))
    as_other(lambda: siteline.Store(path, read_only=True))
    path.chmod(0o600)
    fill()
    """)
    refused, left, *both = printed.splitlines()
    assert refused.startswith("StoreError store /")
    assert "this process may not write to it: it belongs to " in refused
    assert ", this process runs as " in refused
    assert "HINT Ask its owner to share it" in refused
    assert "os error" not in refused
    assert "-wal" not in left or "-shm" in left
    assert [line.split(": it belongs")[0].split(": ", 1)[1] for line in both] == [
        "this process may not write to it",
        "this process may not read it",
    ]


@systems.ROOT
@systems.FORK
def test_what_root_makes_beside_a_store_belongs_to_its_owner():
    printed = run("""
    os.chown(folder, 65534, 65533)
    folder.chmod(0o755)

    def owners():
        known = [file.stat() for file in folder.iterdir()]
        return [(file.st_uid, file.st_gid, oct(file.st_mode & 0o777)) for file in known]

    # A new store belongs to whom its folder belongs to; the lock, the log and the copy to the same.
    store = siteline.Store(path)
    with siteline.Sandbox() as sandbox:
        since = sandbox.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start=since)
        sandbox.client().sync(feed, store)
    store.backup(folder / "copy")
    print(len(owners()), set(owners()))
    store.close()

    def go_on():
        store = siteline.Store(path)
        store.apply("line-3", None, b"other")
        return store.state("line-3")

    as_other(go_on)
    """)
    made, went_on = printed.splitlines()
    assert made == "5 {(65534, 65533, '0o600')}"
    assert went_on == "gives b'other'"


@systems.ROOT
@systems.FORK
def test_the_group_of_a_shared_store_reads_or_writes_it():
    printed = run("""
    def member(function):
        def inner():
            os.setgroups([65533])
            os.setgid(65532)
            os.setuid(65534)
            return function()
        global ROOT
        ROOT = False
        as_other(inner)
        ROOT = True

    os.umask(0o077)
    for share in ("group-read", "group"):
        path = folder / share
        siteline.Store(path, share=share).close()
        os.chown(path, 0, 65533)
        for ending in ("-wal", "-shm"):
            pathlib.Path(f"{path}{ending}").unlink()
        store = siteline.Store(path)
        store.apply("line-2", None, b"state")
        print(mode(), mode("-wal"), mode("-shm"))
        member(lambda: siteline.Store(path, read_only=True).state("line-2"))
        store.close()
        member(lambda: siteline.Store(path, read_only=True).state("line-2"))
        member(lambda: siteline.Store(path))
    # A member of the group whose own group is another makes the log anew: it has the store's group.
    for ending in ("-wal", "-shm"):
        pathlib.Path(f"{path}{ending}").unlink()

    def write():
        store = siteline.Store(path)
        store.apply("line-2", None, b"of the member")
        return [pathlib.Path(f"{path}{ending}").stat().st_gid for ending in ("-wal", "-shm")]

    member(write)
    print(siteline.Store(path).state("line-2"))
    """)
    lines = printed.splitlines()
    assert lines[:3] == ["0o640 0o640 0o640", "gives b'state'", "gives b'state'"]
    assert lines[3].startswith("StoreError")
    assert "this process may not write to it" in lines[3]
    assert lines[4:7] == ["0o660 0o660 0o660", "gives b'state'", "gives b'state'"]
    assert lines[7].startswith("gives <Store ")
    assert lines[8:] == ["gives [65533, 65533]", "b'of the member'"]


@systems.MODES
def test_a_store_is_made_for_its_owner_alone_whatever_the_umask(tmp_path):
    for umask in (0, 0o077):
        before = os.umask(umask)
        try:
            for share, expected in ((None, 0o600), ("group-read", 0o640), ("group", 0o660)):
                path = tmp_path / f"{umask}-{share}"
                siteline.Store(path, share=share).close()
                assert stat.S_IMODE(path.stat().st_mode) == expected
        finally:
            os.umask(before)
    with pytest.raises(
        siteline.errors.ConfigError, match=r'share="everybody" is not known'
    ) as caught:
        siteline.Store(tmp_path / "new", share="everybody")
    assert 'share="group-read" or share="group"' in caught.value.hint
    assert not (tmp_path / "new").exists()


def test_a_read_only_store_reads_beside_a_writer_and_writes_nothing(client, sandbox, tmp_path):
    path, feed = tmp_path / "plant.siteline", make_feed()
    with pytest.raises(siteline.errors.StoreError, match="does not exist"):
        siteline.Store(path, read_only=True)
    with siteline.Store(path) as store:
        client.sync(feed, store)
        reader = siteline.Store(path, read_only=True)
        files = sorted(tmp_path.iterdir())
        assert repr(reader) == f"<Store {path}, read only>"
        assert stored_points(reader) == stored_points(store) != {}
        assert len(reader.coverage(feed, now=sandbox.clock.now())) > 0
        sandbox.clock.advance("1h")
        assert client.sync(feed, store).requests > 0
        assert stored_points(reader) == stored_points(store)
        for refused in (
            lambda: client.sync(feed, reader),
            lambda: reader.redefine(feed),
            lambda: reader.apply(feed, None, b""),
        ):
            with pytest.raises(siteline.errors.StoreError, match="read_only=True"):
                refused()
        assert sorted(tmp_path.iterdir()) == files
    copy = pickle.loads(pickle.dumps(reader))
    assert repr(copy) == repr(reader)
    assert stored_points(copy) == stored_points(reader)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "plant.siteline",
        "plant.siteline-lock",
    ]


def test_a_home_folder_is_expanded_and_names_of_sqlite_make_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert siteline.Store("~/plant.siteline").path == tmp_path / "plant.siteline"
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:plant?mode=memory"):
        with pytest.raises(siteline.errors.StoreError, match="a meaning of its own") as caught:
            siteline.Store(name)
        assert "temporary folder" in caught.value.hint
    assert [file.name for file in tmp_path.iterdir()] == ["plant.siteline"]


@pytest.fixture
def held_run(client, store):
    """A run that has read a page and holds its feed until it is told to go on."""
    holding, release = threading.Event(), threading.Event()

    def hold(progress):
        holding.set()
        assert release.wait(60)

    def go_on():
        release.set()
        run.join()

    feed = make_feed(interval="1h")
    run = threading.Thread(target=client.sync, args=(feed, store), kwargs={"progress": hold})
    run.start()
    assert holding.wait(60)
    yield feed, go_on
    go_on()


@systems.FORK
def test_a_sync_waits_for_a_feed_that_another_run_holds(client, store, held_run):
    feed, go_on = held_run
    with pytest.raises(siteline.errors.StoreBusy) as caught:
        client.sync(feed, store)
    assert "waited" not in str(caught.value)
    with pytest.raises(siteline.errors.StoreBusy, match="waited 120 s"):
        client.sync(feed, store, wait="2m")
    go_on()
    report = client.sync(feed, store, wait="2m")
    assert (report.complete, report.requests) == (True, 0)


@systems.FORK
def test_an_async_sync_waits_too(sandbox, store, held_run):
    feed, go_on = held_run

    async def main():
        async with sandbox.async_client() as client:
            with pytest.raises(siteline.errors.StoreBusy, match="waited 120 s"):
                await client.sync(feed, store, wait="2m")
            go_on()
            return await client.sync(feed, store, wait="2m")

    report = asyncio.run(main())
    assert (report.complete, report.requests) == (True, 0)


def test_wait_is_for_a_store(client):
    class Target:
        def state(self, feed):
            return None

        def apply(self, feed, page, state):
            return (0, 0, 0)

    with pytest.raises(siteline.errors.ConfigError, match=r"wait= is for a siteline\.Store"):
        client.sync(make_feed(), Target(), wait="1s")
