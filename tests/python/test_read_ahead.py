"""One page is read ahead, from the second that was taken on: what it costs."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections import deque

import pytest
import siteline
from torture.server import Server

NOW = "2026-11-20T00:00:00Z"
DAY = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z", "interval": "5m"}
SIZE = 1_000
WAYS = ["pages", "records"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX systems")


@pytest.fixture
def sandbox():
    with siteline.Sandbox(now=NOW) as sandbox:
        yield sandbox


@pytest.fixture
def whole(sandbox):
    """How many pages, and how many points."""
    report = sandbox.client().data(**DAY, page_size=SIZE).collect().report
    assert report["pages"] >= 4
    return report["pages"], report["points"]


def until(true):
    """Another thread brings it about; it is only waited for."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def points(item):
    return len(item) if isinstance(item, siteline.Page) else 1


def take(items, pages, way):
    """So many pages, all their points where they are taken one by one."""
    return [next(items) for _ in range(pages if way == "pages" else pages * SIZE)]


class Asked:
    """A client, and the data requests of its sandbox from here on, as both count them."""

    given_up = 0
    """Iterators that were dropped on the way: each may have counted one that was never served."""

    def __init__(self, sandbox, **options):
        self.sandbox, self.client = sandbox, sandbox.client(**options)
        self.before = self._counts()

    def _counts(self):
        return self.sandbox.stats["data_requests"], self.client.allowance.used

    def __call__(self):
        seen, counted = map(int.__sub__, self._counts(), self.before)
        assert seen <= counted <= seen + max(1, self.given_up)
        return counted

    def until(self, expected):
        until(lambda: self() >= expected and self._is_settled())
        assert self() == expected

    def _is_settled(self):
        seen, counted = map(int.__sub__, self._counts(), self.before)
        return seen == counted


@pytest.mark.fault("R16", "P9")
@pytest.mark.parametrize("way", WAYS)
def test_a_look_at_the_first_page_costs_one_request_and_any_other_stop_one_more(
    sandbox, whole, way
):
    asked = Asked(sandbox)
    items = getattr(asked.client.data(**DAY, page_size=SIZE), way)()
    for taken in range(1, whole[0]):
        take(items, 1, way)
        asked.until(min(taken + (taken > 1), whole[0]))
    assert sum(map(points, items)) == whole[1] - (whole[0] - 1) * SIZE
    asked.until(whole[0])


@pytest.mark.fault("R16", "P9")
@pytest.mark.parametrize("way", WAYS)
def test_an_iterator_that_is_dropped_asks_for_nothing_more(sandbox, whole, way):
    asked = Asked(sandbox)
    client = asked.client
    for taken in range(1, 4):
        items = getattr(client.data(**DAY, page_size=SIZE), way)()
        take(items, taken, way)
        del items
        gc.collect()
        asked.given_up += 1
        client.discover()
    assert asked() <= 1 + 3 + 4


@pytest.mark.fault("R16", "P8")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 4])
def test_a_page_is_asked_for_once_however_fast_it_is_taken(sandbox, way, threads):
    asked = Asked(sandbox)
    client = asked.client
    got, failed, pages = [], [], 0

    def read(items):
        try:
            got.extend(points(item) for item in items)
        except Exception as error:
            failed.append(error)

    for size in (20, 21, 22, 23):
        scan = client.data(**DAY, page_size=size)
        items = getattr(scan, way)()
        readers = [threading.Thread(target=read, args=(items,)) for _ in range(threads)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(120)
        pages += -(-len(sandbox.truth(**DAY)) // size)
    assert not failed
    assert sum(got) == 4 * len(sandbox.truth(**DAY))
    assert asked() == pages


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_ahead_is_told_once_to_whoever_asks_for_that_page(sandbox, whole, way):
    asked = Asked(sandbox)
    client = asked.client
    sandbox.fault(on="data", skip=2, times=1, status=410)
    items = getattr(client.data(**DAY, page_size=SIZE), way)()
    got = take(items, 2, way)
    asked.until(3)
    with pytest.raises(siteline.CursorRejected) as caught:
        next(items)
    assert caught.value.bookmark.pages == 2
    assert asked() == 3
    got.extend(items)
    assert sum(map(points, got)) == whole[1]
    assert asked() == whole[0] + 1


@pytest.mark.parametrize("way", WAYS)
def test_the_end_of_the_allowance_is_told_when_the_page_beyond_it_is_asked_for(sandbox, way):
    client = sandbox.client(daily_allowance=3)
    items = getattr(client.data(**DAY, page_size=SIZE), way)()
    assert sum(map(points, take(items, 3, way))) == 3 * SIZE
    assert (client.allowance.used, client.allowance.left) == (3, 0)
    for _ in range(2):
        with pytest.raises(siteline.AllowanceExhausted) as caught:
            next(items)
        assert caught.value.bookmark.pages == 3
    assert client.allowance.used == sandbox.stats["data_requests"] == 3


@pytest.mark.parametrize("way", WAYS)
def test_max_pages_is_told_when_one_more_is_asked_for(sandbox, way):
    items = getattr(sandbox.client().data(**DAY, page_size=SIZE, max_pages=2), way)()
    take(items, 2, way)
    with pytest.raises(siteline.QueryError, match="max_pages=2") as caught:
        next(items)
    assert caught.value.bookmark.pages == 2
    assert sandbox.stats["data_requests"] == 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [20, SIZE])
def test_progress_is_told_once_for_each_page_in_order_and_before_it_is_given(sandbox, way, size):
    told = []
    scan = sandbox.client().data(**DAY, page_size=size, progress=told.append)
    given = 0
    for item in getattr(scan, way)():
        given += points(item)
        assert given <= told[-1].points
        assert told[-1].points - given < size
    assert [one.pages for one in told] == list(range(1, -(-given // size) + 1))
    assert given == told[-1].points == len(sandbox.truth(**DAY))


@pytest.mark.parametrize("way", WAYS)
def test_what_progress_raises_loses_no_page(sandbox, whole, way):
    told = []

    def hear(progress):
        told.append(progress.pages)
        if len(told) % 2:
            raise LookupError(progress.pages)

    asked = Asked(sandbox)
    items = getattr(asked.client.data(**DAY, page_size=SIZE, progress=hear), way)()
    got, raised = [], []
    while True:
        try:
            got.append(next(items))
        except StopIteration:
            break
        except LookupError as error:
            raised.append(error.args[0])
    assert told == list(range(1, whole[0] + 1))
    assert raised == told[::2]
    assert sum(map(points, got)) == whole[1]
    assert asked() == whole[0]


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_client_gives_what_was_read_and_no_more(sandbox, whole, way):
    asked = Asked(sandbox)
    client = asked.client
    items = getattr(client.data(**DAY, page_size=SIZE), way)()
    got = take(items, 2, way)
    asked.until(3)
    client.close()
    with pytest.raises(siteline.ClosedError) as caught:
        got.extend(items)
    assert caught.value.bookmark.pages in (2, 3)
    assert asked() == 3


def asked_for(server):
    return sum("/data" in path for path in server.requests)


@pytest.fixture
def silent():
    """A client and its service, which is silent from the third page on."""
    with Server() as server:
        credential = siteline.Credential("C1", siteline.PrivateKey.generate(2048))
        with siteline.Client(server.url("two"), credential=credential) as client:
            yield server, client


@pytest.mark.fault("P9")
@pytest.mark.parametrize("way", WAYS)
def test_with_the_iterator_the_open_request_ends(silent, way):
    server, client = silent
    items = getattr(client.data(site="S1"), way)()
    next(items), next(items)
    server.await_request("/data", count=3)
    assert not server.closed_at
    del items
    gc.collect()
    server.await_close()
    client.discover()
    assert asked_for(server) == 3
    assert client.allowance.used == 3


def test_closing_the_client_ends_the_open_request(silent):
    server, client = silent
    pages = client.data(site="S1").pages()
    next(pages), next(pages)
    server.await_request("/data", count=3)
    client.close()
    server.await_close()
    with pytest.raises(siteline.ClosedError) as caught:
        next(pages)
    assert caught.value.bookmark.pages == 2


@pytest.mark.fault("R17")
@pytest.mark.parametrize("way", WAYS)
def test_whoever_hears_of_the_progress_of_what_it_keeps_is_collected_on_the_way(silent, way):
    server, client = silent

    class Job:
        def __init__(self):
            self.items = getattr(client.data(site="S1", progress=self.hear), way)()

        def hear(self, now):
            self.now = now

    job = Job()
    next(job.items), next(job.items)
    server.await_request("/data", count=3)
    gone = weakref.ref(job)
    del job
    gc.collect()
    assert gone() is None
    server.await_close()


@pytest.mark.fault("P9", "R5")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("steps", [1, 2, 100])
def test_in_asyncio_the_open_request_ends_with_who_waits_for_it(silent, way, steps):
    server, client = silent
    client = siteline.AsyncClient._over(client)

    async def read():
        items = getattr(client.data(site="S1"), way)()
        for _ in range(2):
            await anext(items)
        await asyncio.to_thread(server.await_request, "/data", count=3)
        assert not server.closed_at
        task = asyncio.ensure_future(anext(items))
        # From the first step of the task on: it waits, though nothing may have been begun for it.
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.await_close)
        assert asked_for(server) == client.allowance.used == 3
        # The second time it is asked for, and given up, as if there were no reading ahead.
        task = asyncio.ensure_future(anext(items))
        await asyncio.to_thread(server.await_request, "/data", count=4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.await_close, count=2)
        assert asked_for(server) == client.allowance.used == 4

    asyncio.run(read())


@pytest.mark.fault("R5")
@pytest.mark.parametrize("way", WAYS)
def test_the_last_one_who_waits_gives_it_up(silent, way):
    server, client = silent
    client = siteline.AsyncClient._over(client)

    async def read():
        items = getattr(client.data(site="S1"), way)()
        for _ in range(2):
            await anext(items)
        await asyncio.to_thread(server.await_request, "/data", count=3)
        first, last = (asyncio.ensure_future(anext(items)) for _ in range(2))
        for task in (first, last):
            await client.discover()
            assert not server.closed_at
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.to_thread(server.await_close)
        assert asked_for(server) == 3

    asyncio.run(read())


@pytest.mark.fault("R5", "P9")
@pytest.mark.parametrize("way", WAYS)
def test_whenever_a_wait_is_cancelled_no_page_is_lost_and_each_cost_one_request(sandbox, way):
    async def read(client, size):
        items, got, cancelled = getattr(client.data(**DAY, page_size=size), way)(), [], 0
        while True:
            task = asyncio.ensure_future(anext(items, None))
            for _ in range((len(got) + cancelled) % 7):
                await asyncio.sleep(0)
            if cancelled < 100:
                task.cancel()
            try:
                item = await task
            except asyncio.CancelledError:
                cancelled += 1
                continue
            if item is None:
                return got, cancelled
            got.append(item)

    client = sandbox.async_client()
    got, cancelled = asyncio.run(read(client, 50))
    assert sum(map(points, got)) == len(sandbox.truth(**DAY))
    if way == "pages":
        assert [page.sequence for page in got] == list(range(1, len(got) + 1))
    pages = -(-len(sandbox.truth(**DAY)) // 50)
    used, served = client.allowance.used, sandbox.stats["data_requests"]
    assert 0 <= used - served <= cancelled
    assert pages <= used <= pages + cancelled


@pytest.mark.fault("R16")
@pytest.mark.parametrize("way", WAYS)
def test_asyncio_costs_the_same(sandbox, whole, way):
    asked, told = Asked(sandbox), []
    client = siteline.AsyncClient._over(asked.client)
    scan = client.data(**DAY, page_size=SIZE, progress=told.append)

    async def read():
        items, got = getattr(scan, way)(), 0
        for taken in range(1, 4):
            for _ in range(1 if way == "pages" else SIZE):
                got += points(await anext(items))
            expected = min(taken + (taken > 1), whole[0])
            asked.until(expected)
        async for item in items:
            got += points(item)
        return got

    assert asyncio.run(read()) == whole[1]
    assert asked() == whole[0]
    assert [one.pages for one in told] == list(range(1, whole[0] + 1))


@pytest.mark.parametrize("way", WAYS)
def test_in_asyncio_a_failure_ahead_waits_for_who_asks(sandbox, whole, way):
    asked = Asked(sandbox)
    client = siteline.AsyncClient._over(asked.client)
    sandbox.fault(on="data", skip=2, times=1, status=410)

    async def read():
        items, got = getattr(client.data(**DAY, page_size=SIZE), way)(), 0
        for _ in range(2 if way == "pages" else 2 * SIZE):
            got += points(await anext(items))
        asked.until(3)
        with pytest.raises(siteline.CursorRejected) as caught:
            await anext(items)
        assert caught.value.bookmark.pages == 2
        async for item in items:
            got += points(item)
        return got

    assert asyncio.run(read()) == whole[1]
    assert asked() == whole[0] + 1


def run(script, status=0):
    """Run it in a fresh interpreter; what it printed, which must be all that it said."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BEGUN) + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.returncode == status
    return done.stdout.split()


BEGUN = f"""
    import asyncio, os, sys, threading, siteline
    from contextlib import suppress
    sandbox = siteline.Sandbox(now="{NOW}")
    client = sandbox.client()
    def begun(way, hang):
        if hang:
            sandbox.fault(on="data", nth=3, hang=True)
        items = getattr(client.data(**{DAY!r}, page_size={SIZE}), way)()
        for _ in range(2 if way == "pages" else 2 * {SIZE}):
            next(items)
        while not hang and sandbox.stats["data_requests"] < 3:
            pass
        return items
"""


@POSIX
@pytest.mark.fault("R3")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hang", [False, True])
def test_a_fork_on_the_way_leaves_the_chain_to_the_parent(way, hang):
    said = run(f"""
        items = begun({way!r}, {hang})
        child = os.fork()
        if not child:
            for _ in range(2):
                try:
                    next(items)
                except siteline.ForkError:
                    print("ForkError", flush=True)
            del items
            print(len(client.discover()), flush=True)
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        if {hang}:
            del items
            print("left", sandbox.stats["data_requests"])
        else:
            rest = sum(len(item) if {way!r} == "pages" else 1 for item in items)
            print(rest + {2 * SIZE} == len(sandbox.truth(**{DAY!r})))
    """)
    assert said[:3] == ["ForkError", "ForkError", "2"]
    assert said[3:] in (["left", "2"], ["left", "3"]) if hang else said[3:] == ["True"]


@pytest.mark.fault("R4")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hang", [False, True])
@pytest.mark.parametrize(
    "end",
    [
        "",
        "sys.exit()",
        "import atexit; atexit.register(lambda: print(next(items) is not None))",
        "threading.Thread(target=lambda: [None for _ in items], daemon=True).start()",
        "sys.keep = items; del items",
        "client.close()",
        "sandbox.close()",
    ],
)
def test_the_process_ends_with_a_page_on_its_way(way, hang, end):
    if hang and "atexit" in end:
        pytest.skip("it waits for the silent service, as it was told to")
    assert run(f"items = begun({way!r}, {hang})\n{end}") in ([], ["True"])


@pytest.mark.fault("R4")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hang", [False, True])
@pytest.mark.parametrize(
    "end",
    [
        "return",
        "sys.exit(3)",
        "sys.keep = items",
        "sys.keep = items, asyncio.ensure_future(anext(items)); await asyncio.sleep(0)",
        "client.close()",
    ],
)
def test_asyncio_ends_with_a_page_on_its_way(way, hang, end):
    script = f"""
        async def main():
            client = sandbox.async_client()
            if {hang}:
                sandbox.fault(on="data", nth=3, hang=True)
            items = getattr(client.data(**{DAY!r}, page_size={SIZE}), {way!r})()
            for _ in range({2 if way == "pages" else 2 * SIZE}):
                await anext(items)
            {end}
        asyncio.run(main())
    """
    assert run(script, status=3 if "exit" in end else 0) == []


@POSIX
@pytest.mark.fault("R1")
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_the_wait_for_a_page_that_is_read_ahead(silent, way):
    server, client = silent
    items = getattr(client.data(site="S1"), way)()
    next(items), next(items)
    server.await_request("/data", count=3)
    began = threading.Event()

    def press():
        began.wait()
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    began.set()
    with pytest.raises(KeyboardInterrupt):
        next(items)
    presser.join()
    server.await_close()
    assert client.discover() is not None
    assert asked_for(server) == client.allowance.used == 3
    assert items is not None


@POSIX
@pytest.mark.fault("R1")
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_read_whose_pages_are_always_there(sandbox, way):
    total = -(-len(sandbox.truth(**DAY)) // 5)
    items = getattr(sandbox.client().data(**DAY, page_size=5), way)()

    def press():
        until(lambda: sandbox.stats["data_requests"] >= 5)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        # No line of Python runs meanwhile.
        deque(items, maxlen=0)
    asked = sandbox.stats["data_requests"]
    presser.join()
    assert asked < total
    assert sum(map(points, items)) > 0
