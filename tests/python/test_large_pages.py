"""The next page is requested while a large one is decoded: same points, same requests."""

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor

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
        small = sandbox.client().data(**RANGE, page_size=300)
        return small.to_pandas()


def served(sandbox):
    return sandbox.stats["data_requests"]


def cursors(sandbox):
    """The cursors of all requests that were answered with 200, in order."""
    log = [line for line in sandbox.stats["log"] if line["path"].endswith("/data")]
    found = [re.search(r"cursor=([^&]*)", line["query"]) for line in log if line["status"] == 200]
    return [match and match[1] for match in found]


def test_each_page_is_requested_once_and_all_are_merged(client, sandbox, truth):
    table = client.data(**QUERY).collect()
    assert_frame_equal(table.to_pandas(), truth)
    assert table.report["pages"] == served(sandbox) == client.allowance.used == PAGES
    asked = cursors(sandbox)
    assert len(set(asked)) == len(asked) == PAGES
    assert asked[0] is None


def test_the_next_page_is_requested_before_this_one_is_returned(client, sandbox):
    early = []

    def on_progress(now):
        if not early and not now.done:
            wait_until(lambda: served(sandbox) > now.pages)
            early.append(now.pages)

    client.data(**QUERY, progress=on_progress).collect()
    assert early, "no page was requested while the page before it was decoded"
    assert served(sandbox) == PAGES


# Sharing, cancelling, raising callbacks


def test_threads_that_share_a_read_request_each_page_once(client, sandbox, truth):
    reported = []
    scan = client.data(**QUERY, progress=lambda now: reported.append(now.pages))
    barrier = threading.Barrier(4)

    def collect(_):
        barrier.wait()
        return scan.collect()

    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(collect, range(4)))
    assert all(table is tables[0] for table in tables)
    assert_frame_equal(tables[0].to_pandas(), truth)
    assert served(sandbox) == PAGES
    assert sorted(reported) == list(range(1, PAGES + 1))


def test_a_progress_callback_may_raise_and_the_read_continues_from_there(client, sandbox, truth):
    class Enough(Exception):
        pass

    def on_progress(now):
        if now.pages in {3, 6} and now.pages not in raised:
            raised.append(now.pages)
            raise Enough

    raised = []
    scan = client.data(**QUERY, progress=on_progress)
    for pages in (3, 6):
        with pytest.raises(Enough):
            scan.collect()
        assert served(sandbox) <= pages + len(raised)
    assert_frame_equal(scan.collect().to_pandas(), truth)
    assert PAGES <= served(sandbox) <= client.allowance.used <= PAGES + 2


def test_a_read_in_asyncio_requests_each_page_once(sandbox, truth):
    async def main(progress):
        before = served(sandbox)
        async with sandbox.async_client() as client:
            table = await client.data(**QUERY, progress=progress).collect()
        assert served(sandbox) - before == PAGES
        return table

    for progress in (None, lambda _: None):
        assert_frame_equal(asyncio.run(main(progress)).to_pandas(), truth)


@pytest.mark.fault("R5")
def test_an_awaited_read_that_was_cancelled_continues(sandbox, truth):
    async def main():
        async with sandbox.async_client() as client:
            scan = client.data(**QUERY)
            cancelled = 0
            for _ in range(3):
                task = asyncio.ensure_future(scan.collect())
                before = served(sandbox)
                while served(sandbox) < before + 2 and not task.done():
                    await asyncio.sleep(0.001)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    cancelled += 1
            assert cancelled
            table = await scan.collect()
            # Each time one page was being decoded and one was being requested.
            assert PAGES <= served(sandbox) <= PAGES + 2 * cancelled
            return table

    assert_frame_equal(asyncio.run(main()).to_pandas(), truth)


@pytest.mark.fault("R3")
@systems.FORK
def test_a_child_forked_between_two_pages_reads_for_itself(sandbox):
    script = f"""
        import os, sys, siteline
        with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
            children, points = [], len(sandbox.truth(**{RANGE!r}))

            def on_progress(now):
                if now.pages != 3 or children:
                    return
                child = os.fork()
                if child == 0:
                    # A new read, on new connections.
                    again = client.data(**{QUERY!r}).collect()
                    os._exit(0 if len(again) == points else 1)
                children.append(child)

            client = sandbox.client()
            scan = client.data(**{QUERY!r}, progress=on_progress)
            table = scan.collect()
            status = os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1])
            print(status, len(table) == points)
    """
    assert run_script(script, *FORK_WITH_THREADS) == "0 True"


def test_gathered_scans_request_each_page_once(client, sandbox, truth):
    for progress in (None, lambda _: None):
        before = served(sandbox)
        parts = client.data(**QUERY, progress=progress).split(3)
        gathered = client.gather(parts)
        assert_frame_equal(gathered.to_pandas(), truth)
        asked = cursors(sandbox)[before:]
        assert len([cursor for cursor in asked if cursor]) == len(set(filter(None, asked)))


@pytest.mark.parametrize("limit", [4, 7])
def test_pages_that_a_gather_requested_early_are_read_when_the_allowance_ends(sandbox, limit):
    client = sandbox.client(daily_allowance=limit)

    with pytest.raises(siteline.AllowanceExhausted) as caught:
        client.gather(client.data(**QUERY).split(3), concurrency=3)
    assert served(sandbox) == limit
    paid = [0 if table is None else table.report["pages"] for table in caught.value.partials]
    assert sum(paid) == limit
