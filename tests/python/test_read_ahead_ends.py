"""A page that is being read ahead when its iterator, its client or the process ends."""

import asyncio
import textwrap
from collections import deque

import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.interrupts import interrupted
from kit.keys import private_key
from kit.ranges import DAY, NOW
from kit.reading import SIZE, WAYS
from kit.waiting import wait_until
from torture.server import Server


def count_data_requests(server):
    return sum("/data" in path for path in server.requests)


@pytest.fixture
def silent():
    """A client and its service, which is silent from the third page on."""
    with Server() as server:
        credential = siteline.Credential("C1", private_key())
        with siteline.Client(server.url("two"), credential=credential, labels=False) as client:
            yield server, client


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("steps", [1, 100])
def test_in_asyncio_the_open_request_ends_with_the_task_that_waits_for_it(silent, way, steps):
    server, client = silent
    client = siteline.AsyncClient._over(client._handle)

    async def read():
        items = getattr(client.scan(site="S1", start=None), way)()
        for _ in range(2):
            await anext(items)
        await asyncio.to_thread(server.await_request, "/data", count=3)
        assert not server.closed_at
        task = asyncio.ensure_future(anext(items))
        # The task waits from its first step on, even if no request was started for it.
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.await_close)
        assert count_data_requests(server) == client.allowance.used == 3
        # The second call requests the page and cancels the request, as without reading ahead.
        task = asyncio.ensure_future(anext(items))
        await asyncio.to_thread(server.await_request, "/data", count=4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.await_close, count=2)
        assert count_data_requests(server) == client.allowance.used == 4

    asyncio.run(read())


def run(script, status=0):
    """Run a script in a new interpreter after `PREAMBLE`; returns the words that it printed."""
    script = textwrap.dedent(PREAMBLE) + textwrap.dedent(script)
    return run_script(script, *FORK_WITH_THREADS, status=status).split()


PREAMBLE = f"""
    import asyncio, os, sys, threading, siteline
    from contextlib import suppress
    DAY, SIZE = {DAY!r}, {SIZE}
    sandbox = siteline.Sandbox(now="{NOW}")
    client = sandbox.client()
    def start_reading(way, hang):
        sandbox.clear_faults()
        before = sandbox.stats.data_requests
        if hang:
            sandbox.fault(on="data", skip=2, hang=True)
        items = getattr(client.scan(**DAY, page_size=SIZE), way)()
        for _ in range(2 if way == "pages" else 2 * SIZE):
            next(items)
        while sandbox.stats.data_requests < before + 3:
            pass
        return items
"""


@pytest.mark.parametrize(
    ("hang", "end"),
    [
        (True, "sys.exit()"),
        (False, "import atexit; atexit.register(lambda: print(next(items) is not None))"),
        (True, "threading.Thread(target=lambda: [None for _ in items], daemon=True).start()"),
        (True, "sys.keep = items; client.close()"),
    ],
)
def test_the_process_ends_while_a_page_is_requested(hang, end):
    assert run(f"items = start_reading('pages', {hang})\n{end}") in ([], ["True"])


@systems.SIGNALS
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_the_wait_for_a_page_that_is_read_ahead(silent, way):
    server, client = silent
    items = getattr(client.scan(site="S1", start=None), way)()
    next(items), next(items)
    server.await_request("/data", count=3)
    assert interrupted(lambda: next(items), otherwise=client.close)
    server.await_close()
    assert client.discover() is not None
    assert count_data_requests(server) == client.allowance.used == 3


@systems.SIGNALS
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_read_whose_pages_are_always_ready(sandbox, way):
    # No line of Python runs in this loop, which has no end.
    sandbox.fault(on="data", every=1, empty_page=True)
    items = getattr(sandbox.client().scan(**DAY, page_size=5, max_pages=100_000), way)()
    assert interrupted(
        lambda: deque(items, maxlen=0),
        when=lambda: wait_until(lambda: sandbox.stats.data_requests >= 5),
        otherwise=sandbox.close,
    )
