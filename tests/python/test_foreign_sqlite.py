"""Another SQLite that opens the file of an open store, in the same or another process."""

import math
import sqlite3
from contextlib import closing

import pytest
import siteline
from foreign_sqlite.run import run
from kit import systems
from kit.feeds import make_feed, stored_points, true_points

pytestmark = systems.LINUX


def look(path, *, read_only):
    """Opens the file with Python's SQLite, reads it and closes it."""
    name = f"file:{path}?mode=ro" if read_only else path
    with closing(sqlite3.connect(name, uri=read_only)) as connection:
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()


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


@pytest.mark.parametrize("syncs", [3, pytest.param(30, marks=pytest.mark.campaign)])
def test_two_writers_and_another_sqlite_lose_nothing(tmp_path, syncs):
    done = run(tmp_path, syncs, math.inf, looks=3)
    assert done.syncs == 2 * syncs
    assert done.looks > 0
