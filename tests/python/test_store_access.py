"""Access to a store: other users, root, file modes, special names and waits."""

import stat
import threading

import pytest
import siteline
from kit import systems
from kit.feeds import make_feed
from kit.interpreter import FORK_WITH_THREADS, run_script


@systems.ROOT
@systems.FORK
def test_what_root_makes_beside_a_store_belongs_to_its_owner():
    printed = run_script(
        """
    import atexit, os, pathlib, shutil, sys, tempfile
    import siteline
    from siteline import Store  # another user may not be able to read the modules

    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "plant.siteline"
    os.chown(folder, 65534, 65533)
    folder.chmod(0o755)

    def owners():
        known = [file.stat() for file in folder.iterdir()]
        return [(file.st_uid, file.st_gid, oct(file.st_mode & 0o777)) for file in known]

    # A new store, its lock, its log and its copy belong to the owner of the folder.
    store = Store(path)
    with siteline.Sandbox() as sandbox:
        since = sandbox.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start=since)
        sandbox.client().sync(feed, store)
    store.backup(folder / "copy")
    print(len(owners()), set(owners()), flush=True)
    store.close()
    if (child := os.fork()) == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        store = Store(path)
        print(store.apply("line-2", None, store.state("line-2")), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    """,
        *FORK_WITH_THREADS,
    )
    assert printed.splitlines() == ["5 {(65534, 65533, '0o600')}", "(0, 0, 0, 0)"]


@systems.MODES
def test_a_store_is_made_for_its_owner_or_group(client, tmp_path):
    for share, expected in ((None, 0o600), ("group-read", 0o640), ("group", 0o660)):
        path = tmp_path / f"{share}.siteline"
        client.sync(make_feed(start="2026-11-19"), siteline.Store(path, share=share))
        assert stat.S_IMODE(path.stat().st_mode) == expected
    with pytest.raises(
        siteline.errors.ConfigError, match=r'share="everybody" is not known'
    ) as caught:
        siteline.Store(tmp_path / "new", share="everybody")
    assert 'share="group-read" or share="group"' in caught.value.hint
    assert not (tmp_path / "new").exists()


def test_a_home_folder_is_expanded_and_names_of_sqlite_make_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert siteline.Store("~/plant.siteline").path == tmp_path / "plant.siteline"
    monkeypatch.chdir(tmp_path)
    assert siteline.Store("~plant.siteline").path == tmp_path / "~plant.siteline"
    for name in (":memory:", "./:memory:", "file:plant?mode=memory"):
        with pytest.raises(siteline.errors.StoreError, match="special meaning in SQLite") as caught:
            siteline.Store(name)
        assert "temporary folder" in caught.value.hint
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def held_run(client, store):
    """A run that has read a page and holds its feed until the test calls `go_on()`."""
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


def test_wait_is_for_a_store(client):
    class Target:
        def state(self, feed):
            return None

        def apply(self, feed, page, state):
            return (0, 0, 0)

    with pytest.raises(siteline.errors.ConfigError, match=r"wait= is for a siteline\.Store"):
        client.sync(make_feed(), Target(), wait="1s")
