"""Progress: told between pages, truthful, and silent where nobody looks."""

import asyncio
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
from types import SimpleNamespace

import pytest
import siteline
from siteline import Progress, progress

SIX_HOURS = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z",
             "interval": "1h", "page_size": 30}  # fmt: skip


class Stop(Exception):
    """Raised by a callable that has heard enough."""


@pytest.fixture
def sandbox():
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        yield sandbox


WAYS = {
    "collect": lambda scan: len(scan.collect()),
    "pandas": lambda scan: len(scan.to_pandas()),
    "polars": lambda scan: len(scan.to_polars()),
    "pages": lambda scan: sum(map(len, scan.pages())),
    "records": lambda scan: sum(1 for _ in scan.records()),
}


async def _async_pages(scan):
    return sum([len(page) async for page in scan.pages()])


async def _async_records(scan):
    return sum([1 async for _ in scan.records()])


async def _async_collect(scan):
    return len(await scan.collect())


ASYNC_WAYS = {"collect": _async_collect, "pages": _async_pages, "records": _async_records}


def check_events(told):
    assert [(now.pages, now.points, now.requests) for now in told] == [
        (1, 30, 1),
        (2, 60, 3),
        (3, 72, 4),
    ]
    assert [now.allowance_left for now in told] == [99, 97, 96]
    assert [now.done for now in told] == [False, False, True]
    assert [now.fraction for now in told] == [None, None, 1.0]
    assert told[-1].newest.isoformat() == "2026-11-01T05:00:00+00:00"
    assert all(type(now) is Progress for now in told)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_read_tells_after_each_page(sandbox, way):
    sandbox.fault(on="data", nth=2, status=503)
    told = []
    scan = sandbox.client(daily_allowance=100).data(**SIX_HOURS, progress=told.append)
    assert not told
    assert WAYS[way](scan) == 72
    check_events(told)


@pytest.mark.parametrize("way", ASYNC_WAYS)
def test_every_way_to_read_in_asyncio_tells_after_each_page(sandbox, way):
    sandbox.fault(on="data", nth=2, status=503)
    told, threads = [], set()

    def hear(now):
        told.append(now)
        threads.add(threading.get_ident())
        asyncio.get_running_loop()

    async def main():
        async with sandbox.async_client(daily_allowance=100) as client:
            return await ASYNC_WAYS[way](client.data(**SIX_HOURS, progress=hear))

    assert asyncio.run(main()) == 72
    check_events(told)
    assert threads == {threading.get_ident()}, "told in the loop's own thread"


def test_what_was_read_before_is_remembered_and_told_of_no_more(sandbox):
    told = []
    scan = sandbox.client().data(**SIX_HOURS, progress=told.append)
    scan.to_pandas()
    scan.to_polars()
    assert len(told) == 3
    list(scan.pages())
    assert len(told) == 6, "a new chain is a read of its own"


def test_pages_in_order_of_time_show_how_much_of_the_range_lies_behind():
    with siteline.Sandbox(now="2026-11-20T00:00:00Z", order="time") as sandbox:
        told = []
        sandbox.client().data(**{**SIX_HOURS, "page_size": 24}, progress=told.append).collect()
    assert [now.fraction for now in told] == [None, 0.5, 1.0]


@pytest.mark.parametrize("stop", [Stop, KeyboardInterrupt, SystemExit])
def test_what_the_callable_raises_ends_the_read_which_goes_on_where_it_was(sandbox, stop):
    heard = []

    def hear(now):
        heard.append(now)
        if now.pages == 2 and len(heard) == 2:
            raise stop

    scan = sandbox.client().data(**SIX_HOURS, progress=hear)
    with pytest.raises(stop):
        scan.collect()
    assert sandbox.stats["data_requests"] == 2
    assert len(scan.collect()) == 72
    assert sandbox.stats["data_requests"] == 3, "no page was asked for twice"
    assert [now.pages for now in heard] == [1, 2, 3]


@pytest.mark.parametrize("way", ["pages", "records"])
def test_what_the_callable_raises_loses_no_page_of_an_iterator(sandbox, way):
    def hear(now):
        if now.pages == 2:
            raise Stop

    scan = sandbox.client().data(**SIX_HOURS, progress=hear)
    rows = getattr(scan, way)()
    read = []
    with pytest.raises(Stop):
        read.extend(iter(rows.__next__, None))
    # What extend() had taken before is in the list; the page that was held comes next.
    assert sandbox.stats["data_requests"] == 2
    read.extend(rows)
    assert (sum(map(len, read)) if way == "pages" else len(read)) == 72
    assert sandbox.stats["data_requests"] == 3


def test_in_asyncio_what_the_callable_raises_ends_the_read_which_goes_on(sandbox):
    def hear(now):
        if now.pages == 2 and sandbox.stats["data_requests"] == 2:
            raise Stop

    async def main():
        async with sandbox.async_client() as client:
            scan = client.data(**SIX_HOURS, progress=hear)
            with pytest.raises(Stop):
                await scan.collect()
            sandbox.fault(on="data", nth=3, status=503)
            return len(await scan.collect())

    assert asyncio.run(main()) == 72


@pytest.mark.fault("R5")
def test_a_cancelled_collect_goes_on_where_it_was(sandbox):
    async def main():
        async with sandbox.async_client() as client:
            heard = asyncio.Event()
            scan = client.data(**SIX_HOURS, progress=lambda _: heard.set())
            sandbox.fault(on="data", nth=2, hang=True)
            task = asyncio.create_task(scan.collect())
            await heard.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            sandbox.clear_faults()
            return len(await scan.collect())

    assert asyncio.run(main()) == 72
    assert sandbox.stats["data_requests"] <= 4, "the first page was asked for once"


def test_a_failure_still_carries_its_bookmark_and_what_was_read(sandbox):
    told = []
    sandbox.fault(on="data", status=503, skip=2, times=4)
    scan = sandbox.client().data(**SIX_HOURS, progress=told.append)
    with pytest.raises(siteline.ServiceUnavailable) as failure:
        scan.collect()
    rest = scan.resume(failure.value.bookmark, onto=failure.value.partial)
    assert len(rest.collect()) == 72
    assert [now.pages for now in told] == [1, 2, 1], "the rest is a read of its own"


@pytest.mark.fault("R9")
def test_the_callable_may_use_the_client_and_even_the_scan(sandbox):
    client = sandbox.client()
    inner = []

    def hear(now):
        if now.pages == 1:
            client.discover()
            inner.append(len(scan.collect()))

    scan = client.data(**SIX_HOURS, progress=hear)
    assert len(scan.collect()) == 72
    assert inner == [72]
    assert sandbox.stats["data_requests"] == 3, "both read together"


def test_threads_that_collect_together_are_told_of_each_page_once(sandbox):
    told = []
    scan = sandbox.client().data(**{**SIX_HOURS, "page_size": 4}, progress=told.append)
    tables = []
    threads = [threading.Thread(target=lambda: tables.append(scan.collect())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(table) for table in tables}) == 1
    assert sorted(now.pages for now in told) == list(range(1, 19))
    assert sandbox.stats["data_requests"] == 18


async def unheard(now):
    """Nobody would await it."""


@pytest.mark.parametrize("wrong", [1, "yes", [print], unheard])
def test_what_cannot_be_called_is_refused_before_any_request(sandbox, wrong):
    with pytest.raises(siteline.QueryError, match="progress="):
        sandbox.client().data(**SIX_HOURS, progress=wrong)


@pytest.mark.parametrize("silent", [None, False])
def test_silence_may_be_asked_for(sandbox, silent):
    assert len(sandbox.client().data(**SIX_HOURS, progress=silent).collect()) == 72


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def terminal(monkeypatch):
    """Made in the test itself: pytest puts its own stream there before it."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


@pytest.mark.parametrize("way", WAYS)
def test_true_is_a_bar_of_tqdm_in_a_terminal(sandbox, monkeypatch, way):
    shown = terminal(monkeypatch)
    client = sandbox.client(daily_allowance=100)
    WAYS[way](client.data(**SIX_HOURS, line="L1", progress=True))
    last = shown.getvalue().split("\r")[-1]
    assert last.startswith("S1 L1: 100%|")
    assert "98 requests left today" in last
    assert shown.getvalue().endswith("\n"), "closed at the end"


@pytest.mark.parametrize("way", WAYS)
def test_true_is_a_line_in_a_terminal_without_tqdm(sandbox, monkeypatch, way):
    without_tqdm(monkeypatch)
    shown = terminal(monkeypatch)
    WAYS[way](sandbox.client(daily_allowance=100).data(**SIX_HOURS, progress=True))
    assert shown.getvalue().split("\r")[1:] == [
        "S1: 30 points, 1 page, 99 requests left today",
        "S1: 60 points, 2 pages, 98 requests left today",
        "S1: 100%, 72 points, 3 pages, 97 requests left today\n",
    ]


def test_a_line_ends_where_the_read_fails(sandbox, monkeypatch):
    without_tqdm(monkeypatch)
    shown = terminal(monkeypatch)
    sandbox.fault(on="data", status=503, skip=1, times=4)
    with pytest.raises(siteline.ServiceUnavailable):
        sandbox.client().data(**SIX_HOURS, progress=True).collect()
    assert shown.getvalue() == "\rS1: 30 points, 1 page\n"


def test_the_bar_is_closed_where_asyncio_reads(sandbox, monkeypatch):
    without_tqdm(monkeypatch)
    shown = terminal(monkeypatch)

    async def main(way):
        async with sandbox.async_client() as client:
            await ASYNC_WAYS[way](client.data(**SIX_HOURS, progress=True))

    for way in ASYNC_WAYS:
        asyncio.run(main(way))
    assert shown.getvalue().count("\n") == 3


def test_true_shows_in_a_notebook(monkeypatch):
    without_tqdm(monkeypatch)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress.reporter(True, "S1") is None, "a file"
    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    assert progress.reporter(True, "S1") is not None
    # IPython in a terminal has no kernel.
    plain = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: plain))
    assert progress.reporter(True, "S1") is None


@pytest.mark.parametrize("stream", [None, "closed"])
def test_where_there_is_no_stderr_there_is_silence(monkeypatch, stream):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if stream else None)
    assert progress.reporter(True, "S1") is None


SCRIPT = """
    import siteline
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        client = sandbox.client(daily_allowance=100)
        scan = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
                           interval="1h", page_size=30, progress=True)
        print(len(scan.to_pandas()))
"""


@pytest.mark.fault("R18")
def test_true_is_silent_in_a_pipe():
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", textwrap.dedent(SCRIPT)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert (ran.stdout, ran.stderr) == ("72\n", "")


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_true_is_a_bar_in_a_real_terminal():
    import pty
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # all that held the other end are gone
                break
            if not piece:
                break
            shown += piece
        assert process.communicate(timeout=60)[0] == "72\n"
    os.close(ours)
    assert process.returncode == 0
    assert b"S1: 100%" in shown
    assert b"97 requests left today" in shown


@pytest.mark.skipif(os.name != "posix", reason="signals are sent to a process of its own")
@pytest.mark.fault("R1")
def test_ctrl_c_between_pages_leaves_the_read_where_it_was():
    script = """
        import signal, siteline
        with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
            def hear(now):
                if now.pages == 2:
                    signal.raise_signal(signal.SIGINT)
            scan = sandbox.client().data(
                site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z", interval="1h",
                page_size=30, progress=hear,
            )
            try:
                scan.collect()
            except KeyboardInterrupt:
                print("interrupted", len(scan.collect()), sandbox.stats["data_requests"])
    """
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True,
                         text=True, timeout=120, check=True)  # fmt: skip
    assert ran.stdout == "interrupted 72 3\n"


GATHERING = """
    import asyncio, threading, siteline
    RANGE = dict(site="S1", start="2026-11-01T00:00Z", end="2026-11-03T00:00Z", interval="5m")

    def collect():
        got.append(sum(len(part.collect()) for part in parts))

    def in_a_thread():
        reader = threading.Thread(target=collect)
        reader.start()
        reader.join()

    def in_asyncio():
        async def read(part):
            return len(await part.collect())
        async def read_all():
            return sum(await asyncio.gather(*map(read, parts)))
        def run():
            got.append(asyncio.run(read_all()))
        reader = threading.Thread(target=run)
        reader.start()
        reader.join()

    def hear(now):
        if not got:
            got.append(None)
            HOW()

    got = []
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        points = len(sandbox.truth(**RANGE))
        if "HOW" != "in_asyncio":
            client = sandbox.client()
            parts = client.data(**RANGE, page_size=500, progress=hear).split(4)
            gathered = client.gather(parts)
        else:
            async def main():
                global parts
                async with sandbox.async_client() as client:
                    parts = client.data(**RANGE, page_size=500, progress=hear).split(4)
                    return await client.gather(parts)
            gathered = asyncio.run(main())
        print(got[1] == points == len(gathered.table), sandbox.stats["data_requests"])
"""


@pytest.mark.parametrize("how", ["collect", "in_a_thread", "in_asyncio"])
def test_who_is_told_of_a_gather_may_read_the_same_scans(how):
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(GATHERING).replace("HOW", how)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        day = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-03T00:00Z"}
        client = sandbox.client()
        for part in client.data(**day, interval="5m", page_size=500).split(4):
            part.collect()
        assert ran.stdout.split() == ["True", str(sandbox.stats["data_requests"])], ran.stderr
    assert ran.returncode == 0
