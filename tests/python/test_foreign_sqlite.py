"""Another SQLite that opens the file of an open store, in the same or another process."""

import siteline
from foreign_sqlite.run import run
from foreign_sqlite.worker import look
from kit import systems
from kit.examples import examples
from kit.feeds import make_feed, stored_points, true_points

pytestmark = systems.LINUX


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
    syncs = examples(3, 1_000)
    done, looks = run(tmp_path, syncs, looks=3)
    assert done == 2 * syncs
    assert looks > 0
