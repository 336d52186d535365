"""`client.sync(feeds, store, concurrency=8)`: requests side by side, pages stored one at a time."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
import siteline
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


def test_the_report_and_the_points_are_those_of_one_request_at_a_time(sandbox, store, tmp_path):
    reported = []
    report = sandbox.client().sync(feeds(), store, concurrency=8, progress=reported.append)
    check(sandbox, store, report)
    assert [now.pages for now in reported] == list(range(1, report.pages + 1))
    assert [now.done for now in reported] == [False] * (report.pages - 1) + [True]
    other = siteline.Store(tmp_path / "other.siteline")
    alone = sandbox.client().sync(feeds(), other)
    assert {**report.to_dict(), "allowance": None} == {**alone.to_dict(), "allowance": None}
    assert [one.name for one in report.feeds] == NAMES


def test_eight_requests_side_by_side_ask_for_no_more_pages_than_allowed(sandbox, store):
    pages = 13
    # A repeat of a page is not counted; a page has four tries.
    sandbox.fault(on="data", skip=2, times=3, status=503)
    client, spent = sandbox.client(), 0
    while True:
        report = client.sync(feeds(), store, concurrency=8, max_pages=pages)
        assert report.pages <= pages
        spent += report.pages
        if report.complete:
            break
        assert (report.pages, report.ended_by) == (pages, "max_pages")
        assert report.resumes_at is None
    replies = sandbox.stats.requests["data"]
    assert (replies[200], replies[503] > 0) == (spent, True), "each page was paid for once"
    check(sandbox, store, report)


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


@systems.SIGNALS
def test_a_process_that_is_killed_with_eight_under_way_loses_only_those(sandbox, tmp_path):
    path, other = tmp_path / "plant.siteline", siteline.Store(tmp_path / "other.siteline")
    needed = sandbox.client().sync(feeds(), other).requests
    sandbox.fault(on="data", skip=11, times=999, hang=True)
    before = sandbox.stats.data_requests
    script = f"""
        import siteline
        from kit.feeds import make_feed
        feeds = [make_feed(name, page_size=300, start="2026-11-18T00:00Z") for name in {NAMES!r}]
        siteline.Client().sync(feeds, siteline.Store({str(path)!r}), concurrency=8)
    """
    environment = {**os.environ, **sandbox.env(), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment
    ) as process:
        wait_until(lambda: under_way(sandbox, before + 11) or process.poll() is not None)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    sandbox.clear_faults()
    store = siteline.Store(path)
    assert store.check() is None
    report = sandbox.client().sync(feeds(), store, concurrency=8)
    check(sandbox, store, report)
    # A page counts when it is stored; eight at most were asked for and were not.
    paid = sandbox.stats.data_requests - before
    assert needed <= paid <= needed + 8
    assert sum(feed.sequence for feed in report.feeds) == needed
