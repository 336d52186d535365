"""Another SQLite that opens the file of an open store, in the same or another process."""

import math
import sqlite3
from contextlib import closing

import pytest
import siteline
from foreign_sqlite.run import run
from kit import systems
from kit.feeds import make_feed, stored_points, true_points
from kit.interpreter import FORK_WITH_THREADS, run_script

pytestmark = systems.LINUX


def look(path, *, read_only):
    """Opens the file with Python's SQLite, reads it and closes it."""
    name = f"file:{path}?mode=ro" if read_only else path
    with closing(sqlite3.connect(name, uri=read_only)) as connection:
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()


@pytest.mark.parametrize("read_only", [False, True])
def test_another_sqlite_between_syncs_loses_nothing(client, sandbox, tmp_path, read_only):
    path, feed = tmp_path / "plant.siteline", make_feed()
    with siteline.Store(path) as store:
        for _ in range(5):
            assert client.sync(feed, store).complete
            points = stored_points(store)
            for _ in range(3):
                look(path, read_only=read_only)
            path.read_bytes()
            assert stored_points(store) == points
            sandbox.clock.advance("1h")
    with siteline.Store(path) as store:
        store.check()
        assert stored_points(store) == points
        assert sorted(file.name for file in tmp_path.iterdir())[:2] == [
            "plant.siteline",
            "plant.siteline-lock",
        ]


def test_another_sqlite_during_a_sync_loses_nothing(client, sandbox, tmp_path):
    path, seen = tmp_path / "plant.siteline", []

    def progress(_):
        for read_only in (True, False) * 3:
            look(path, read_only=read_only)
        seen.append(path.with_name("plant.siteline-wal").exists())

    with siteline.Store(path) as store:
        feed = make_feed(page_size=500)
        assert client.sync(feed, store, progress=progress).complete
        points = stored_points(store)
        assert points == true_points(sandbox, store.coverage(feed).newest)
    assert len(seen) > 3
    assert all(seen)
    siteline.Store(path).check()


def test_two_writers_and_another_sqlite_lose_nothing(tmp_path):
    done = run(tmp_path, 30, math.inf, looks=3)
    assert done.syncs == 60
    assert done.looks > 3


@systems.ROOT
@systems.FORK
def test_a_reader_makes_no_file_of_its_user():
    printed = run_script(
        """
        import atexit, contextlib, importlib, os, pathlib, pkgutil, shutil, tempfile, siteline
        from siteline import StoreBusy

        # The other user may not be able to read the modules.
        for module in pkgutil.iter_modules(siteline.__path__, "siteline."):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)

        folder = pathlib.Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder)
        folder.chmod(0o777)
        path = folder / "plant.siteline"

        def write(number):
            if (child := os.fork()) == 0:
                with siteline.Store(path) as store:
                    store.apply("line-2", None, b"%d" % number)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0

        write(0)
        path.chmod(0o644)
        if (reader := os.fork()) == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            done = 0
            try:
                while not (folder / "stop").exists():
                    with contextlib.suppress(StoreBusy):
                        siteline.Store(path, read_only=True).state("line-2")
                        done += 1
            finally:
                os._exit(0 if done else 1)
        for number in range(100):
            write(number)
        (folder / "stop").touch()
        print(os.waitpid(reader, 0)[1], {file.stat().st_uid for file in folder.iterdir()})
        """,
        *FORK_WITH_THREADS,
    )
    assert printed == "0 {0}"
