"""`client.sync(feeds, store, concurrency=8)`: requests side by side, pages stored one at a time."""

import os
import signal
import threading

import pytest
from kit import systems
from kit.feeds import make_feed, stored_points, true_points
from kit.memory_store import LockedStore
from kit.waiting import wait_until

pytestmark = pytest.mark.once

NAMES = [f"feed-{number}" for number in range(8)]


def feeds(**options):
    return [
        make_feed(name, **{"page_size": 300, "start": "2026-11-18T00:00Z", **options})
        for name in NAMES
    ]


def under_way(sandbox, replied):
    """Whether eight requests wait for a reply."""
    return sandbox.stats.data_requests == replied + 8


def check(sandbox, store, report):
    """The store has the points of the service, of all feeds."""
    assert report.complete
    truth = true_points(sandbox, report[NAMES[0]].read_through, start="2026-11-18T00:00Z")
    assert truth
    assert all(stored_points(store, name) == truth for name in NAMES)


def test_a_target_of_ones_own_applies_one_page_at_a_time(sandbox):
    class OneAtATime(LockedStore):
        def __init__(self):
            super().__init__()
            self.inside = threading.Lock()

        def apply(self, feed, page, state):
            assert self.inside.acquire(blocking=False)
            try:
                return super().apply(feed, page, state)
            finally:
                self.inside.release()

    target = OneAtATime()
    report = sandbox.client().sync(feeds(), target, concurrency=8)
    truth = true_points(sandbox, report[NAMES[0]].read_through, start="2026-11-18T00:00Z")
    assert all(target.points(name) == truth for name in NAMES)
    assert target.threads == {threading.get_ident()}
    taken, given = [f"+{name}" for name in NAMES], [f"-{name}" for name in reversed(NAMES)]
    assert target.locks == taken + given


@systems.SIGNALS
def test_ctrl_c_drops_all_that_is_under_way_and_keeps_what_is_stored(sandbox, store):
    client = sandbox.client()
    sandbox.fault(on="data", skip=3, times=99, hang=True)

    def interrupt():
        wait_until(lambda: under_way(sandbox, 3))
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        client.sync(feeds(), store, concurrency=8)
    other.join()
    sandbox.clear_faults()
    check(sandbox, store, client.sync(feeds(), store, concurrency=8))
