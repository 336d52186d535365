"""The next page is requested while a large one is decoded: same points, same requests."""

import asyncio
import itertools
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import NOW
from pandas.testing import assert_frame_equal

pytestmark = pytest.mark.once

# Pages of 200 kB, 21 of them.
RANGE = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-03T12:00Z", "interval": "1m"}
QUERY = {**RANGE, "page_size": 2_000}
PAGES = 21


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
            end = time.monotonic() + 0.5
            while time.monotonic() < end and served(sandbox) == now.pages:
                time.sleep(0.001)
            early.extend([now.pages] * (served(sandbox) > now.pages))

    client.data(**QUERY, progress=on_progress).collect()
    assert early, "no page was requested while the page before it was decoded"
    assert served(sandbox) == PAGES


@pytest.mark.parametrize("wanted", [{}, {"progress": lambda _: None}])
def test_small_pages_are_requested_one_after_the_other(client, sandbox, wanted):
    scan = client.data(**{**RANGE, "end": "2026-11-01T06:00Z"}, page_size=500, **wanted)
    sandbox.fault(on="data", nth=3, status=200, body='{"series": [1], "nextCursor": "x"}')
    with pytest.raises(siteline.ProtocolError):
        scan.collect()
    assert served(sandbox) == client.allowance.used == 3


@pytest.mark.fault("P2")
@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_page_beyond_max_pages_is_requested(client, sandbox, truth, most):
    scan = client.data(**QUERY, max_pages=most)
    with pytest.raises(siteline.QueryError, match="max_pages") as caught:
        scan.collect()
    assert served(sandbox) == client.allowance.used == most
    rest = client.data(**QUERY).resume(caught.value.bookmark, onto=caught.value.partial)
    assert_frame_equal(rest.to_pandas(), truth)
    assert served(sandbox) == PAGES


@pytest.mark.fault("B5")
@pytest.mark.parametrize("limit", [1, 4])
def test_the_allowance_is_used_completely_and_not_exceeded(sandbox, truth, limit):
    client = sandbox.client(daily_allowance=limit)
    with pytest.raises(siteline.AllowanceExhausted) as caught:
        client.data(**QUERY).collect()
    assert served(sandbox) == client.allowance.used == limit
    assert caught.value.bookmark.pages == limit
    again = sandbox.client().data(**QUERY)
    whole = again.resume(caught.value.bookmark, onto=caught.value.partial)
    assert_frame_equal(whole.to_pandas(), truth)
    assert served(sandbox) == PAGES


@pytest.mark.fault("P1")
def test_a_repeated_cursor_is_not_requested(client, sandbox):
    sandbox.fault(on="data", nth=4, repeat_cursor=True)
    with pytest.raises(siteline.CursorLoop):
        client.data(**QUERY).collect()
    assert served(sandbox) == 4


@pytest.mark.fault("B6", "H8")
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 503},
        {"cut": 15_000},
        {"reset": True},
        {"forget_tokens": True},
        {"status": 429, "retry_after": 3},
    ],
    ids=lambda fault: next(iter(fault)),
)
def test_a_failed_request_is_repeated(client, sandbox, truth, fault):
    sandbox.fault(on="data", every=3, **fault)
    table = client.data(**QUERY).collect()
    assert_frame_equal(table.to_pandas(), truth)
    assert table.report["pages"] == PAGES
    assert client.allowance.used == served(sandbox) > PAGES
    asked = cursors(sandbox)
    assert [cursor for cursor, _ in itertools.groupby(asked)] == list(dict.fromkeys(asked))


@pytest.mark.fault("B6")
def test_pages_that_succeed_at_once_refill_the_retry_quota(client, sandbox, truth):
    # The retry quota is used up at the eleventh repeat, unless successes refill it.
    sandbox.fault(on="data", every=12, status=503)
    for _ in range(9):
        assert len(client.data(**QUERY).collect()) == len(truth)
    repeats = served(sandbox) - 9 * PAGES
    assert repeats > 12


def test_an_error_has_the_bookmark_of_its_own_page(client, sandbox, truth):
    scan = client.data(**QUERY)
    sandbox.fault(on="data", skip=5, times=99, status=404)
    with pytest.raises(siteline.SitelineError) as caught:
        scan.collect()
    assert caught.value.bookmark.pages == 5
    assert len(caught.value.partial) == 5 * 2_000
    sandbox.clear_faults()
    rest = client.data(**QUERY).resume(caught.value.bookmark, onto=caught.value.partial)
    assert_frame_equal(rest.to_pandas(), truth)


def large(end):
    """A large page with a correct cursor at its end and an error in its middle."""
    points = ",".join(
        f'{{"timestamp":"2026-11-01T00:{n // 60 % 60:02}:{n % 60:02}Z","value":1}}'
        for n in range(5_000)
    )
    ids = ",".join(
        f'"{name}":"x"' for name in ("siteId", "lineId", "machineId", "deviceId", "tagGuid")
    )
    return f'{{"series":[{{{ids},"points":[{points},{{"value":2}}]}}],{end}}}'


def test_an_invalid_page_costs_at_most_one_more_request(client, sandbox):
    sandbox.fault(on="data", nth=3, status=200, body=large('"nextCursor":"never-given"'))
    with pytest.raises(siteline.ProtocolError) as caught:
        client.data(**QUERY).collect()
    assert caught.value.bookmark.pages == 2
    assert "never-given" not in f"{caught.value!r}{caught.value.__dict__}"
    assert served(sandbox) <= 4
    assert 0 <= client.allowance.used - served(sandbox) <= 1


def test_a_page_without_a_cursor_at_its_edges_is_read_too(client, sandbox):
    sandbox.fault(on="data", nth=1, members={"nextCursor": None, "zz": {"nextCursor": "no"}})
    table = client.data(**QUERY).collect()
    assert (len(table), served(sandbox)) == (2_000, 1)


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


def test_threads_that_share_a_read_may_have_different_deadlines(client, sandbox, truth):
    scan = client.data(**QUERY, deadline="1h", progress=lambda _: sandbox.clock.advance("1s"))
    barrier = threading.Barrier(3)

    def collect(_):
        barrier.wait()
        return scan.collect()

    with ThreadPoolExecutor(3) as pool:
        tables = list(pool.map(collect, range(3)))
    assert_frame_equal(tables[0].to_pandas(), truth)
    assert served(sandbox) == PAGES


def test_a_progress_callback_may_raise_and_the_read_continues_from_there(client, sandbox, truth):
    class Enough(Exception):
        pass

    def on_progress(now):
        if now.pages in {3, 7} and now.pages not in raised:
            raised.append(now.pages)
            raise Enough

    raised = []
    scan = client.data(**QUERY, progress=on_progress)
    for pages in (3, 7):
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
            for _ in range(5):
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


def test_an_awaited_read_whose_callback_raised_continues(sandbox, truth):
    async def main():
        raised = []

        def on_progress(now):
            if now.pages == 4 and not raised:
                raised.append(now)
                raise ZeroDivisionError

        async with sandbox.async_client() as client:
            scan = client.data(**QUERY, progress=on_progress)
            with pytest.raises(ZeroDivisionError):
                await scan.collect()
            table = await scan.collect()
        assert PAGES <= served(sandbox) <= PAGES + 1
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


def test_the_scans_of_a_failed_gather_can_be_continued(client, sandbox, truth):
    parts = client.data(**QUERY).split(3)
    sandbox.fault(on="data", nth=9, status=403)
    with pytest.raises(siteline.SitelineError) as caught:
        client.gather(parts)
    gathered = client.gather(caught.value.scans)
    assert_frame_equal(gathered.to_pandas(), truth)
    assert 0 <= client.allowance.used - served(sandbox) <= 6
    assert served(sandbox) <= PAGES + 3 + 1 + 6


@pytest.mark.parametrize("limit", range(4, 12))
@pytest.mark.parametrize("door", ["sync", "async"])
def test_pages_that_a_gather_requested_early_are_read_when_the_allowance_ends(sandbox, limit, door):
    client = sandbox.client(daily_allowance=limit)

    async def read():
        over = client if door == "sync" else siteline.AsyncClient._over(client)
        gathered = over.gather(over.data(**QUERY).split(3), concurrency=3)
        return await gathered

    with pytest.raises(siteline.AllowanceExhausted) as caught:
        asyncio.run(read())
    assert served(sandbox) == limit
    paid = [0 if table is None else table.report["pages"] for table in caught.value.partials]
    assert sum(paid) == limit
