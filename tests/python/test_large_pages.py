"""The next page is requested while a large one is decoded: same points, same requests."""

import re

import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import NOW
from kit.waiting import wait_until
from pandas.testing import assert_frame_equal

pytestmark = pytest.mark.once

# Pages of 200 kB, 9 of them.
RANGE = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z", "interval": "1m"}
QUERY = {**RANGE, "page_size": 2_000}
PAGES = 9


@pytest.fixture(scope="module")
def truth():
    with siteline.Sandbox(now=NOW) as sandbox:
        small = sandbox.client().scan(**RANGE, page_size=300)
        return small.to_pandas()


def served(sandbox):
    return sandbox.stats.data_requests


def cursors(sandbox):
    """The cursors of all requests that were answered with 200, in order."""
    log = [line for line in sandbox.stats.log if line.path.endswith("/data")]
    found = [re.search(r"cursor=([^&]*)", line.query) for line in log if line.status == 200]
    return [match and match[1] for match in found]


def test_each_page_is_requested_once_and_all_are_merged(client, sandbox, truth):
    table = client.scan(**QUERY).collect()
    assert_frame_equal(table.to_pandas(), truth)
    assert table.report.pages == served(sandbox) == client.allowance.used == PAGES
    asked = cursors(sandbox)
    assert len(set(asked)) == len(asked) == PAGES
    assert asked[0] is None


def test_the_next_page_is_requested_before_this_one_is_returned(client, sandbox):
    early = []

    def on_progress(now):
        if not early and not now.done:
            wait_until(lambda: served(sandbox) > now.pages)
            early.append(now.pages)

    client.scan(**QUERY, progress=on_progress).collect()
    assert early, "no page was requested while the page before it was decoded"
    assert served(sandbox) == PAGES


# Sharing, cancelling, raising callbacks


def test_a_progress_callback_may_raise_and_the_read_continues_from_there(client, sandbox, truth):
    class Enough(Exception):
        pass

    def on_progress(now):
        if now.pages in {3, 6} and now.pages not in raised:
            raised.append(now.pages)
            raise Enough

    raised = []
    scan = client.scan(**QUERY, progress=on_progress)
    for pages in (3, 6):
        with pytest.raises(Enough):
            scan.collect()
        assert served(sandbox) <= pages + len(raised)
    assert_frame_equal(scan.collect().to_pandas(), truth)
    assert PAGES <= served(sandbox) <= client.allowance.used <= PAGES + 2


@systems.FORK
def test_a_child_forked_between_two_pages_reads_for_itself(sandbox):
    script = f"""
        import os, sys, siteline
        with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
            children, points = [], len(sandbox.expected(**{RANGE!r}))

            def on_progress(now):
                if now.pages != 3 or children:
                    return
                child = os.fork()
                if child == 0:
                    # A new read, on new connections.
                    again = client.scan(**{QUERY!r}).collect()
                    os._exit(0 if len(again) == points else 1)
                children.append(child)

            client = sandbox.client()
            scan = client.scan(**{QUERY!r}, progress=on_progress)
            table = scan.collect()
            status = os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1])
            print(status, len(table) == points)
    """
    assert run_script(script, *FORK_WITH_THREADS) == "0 True"
