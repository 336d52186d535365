"""Another SQLite that opens the file of an open store, in the same or another process."""

from foreign_sqlite.run import run
from kit import systems
from kit.examples import examples

pytestmark = systems.LINUX


def test_two_writers_and_another_sqlite_lose_nothing(tmp_path):
    syncs = examples(3, 1_000)
    done = run(tmp_path, syncs, looks=3)
    assert done.syncs == 2 * syncs
    assert done.looks > 0
