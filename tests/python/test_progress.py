"""Progress: reported between pages, correct, and silent without a terminal."""

import asyncio
import io
import sys
import threading
from types import SimpleNamespace

import pytest
import siteline
from kit.ranges import SIX_HOURS
from siteline import progress
from siteline.types import Progress

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


def check_events(reported):
    assert [(now.pages, now.points, now.requests) for now in reported] == [
        (1, 30, 1),
        (2, 60, 3),
        (3, 72, 4),
    ]
    assert [now.allowance_left for now in reported] == [99, 97, 96]
    assert [now.done for now in reported] == [False, False, True]
    assert [now.fraction for now in reported] == [None, None, 1.0]
    assert reported[-1].newest.isoformat() == "2026-11-01T05:00:00+00:00"
    assert all(type(now) is Progress for now in reported)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_read_reports_after_each_page(sandbox, way):
    sandbox.fault(on="data", nth=2, status=503)
    reported = []
    scan = sandbox.client(daily_allowance=100).scan(**SIX_HOURS, progress=reported.append)
    assert not reported
    assert WAYS[way](scan) == 72
    check_events(reported)


@pytest.mark.parametrize("way", ASYNC_WAYS)
def test_every_way_to_read_in_asyncio_reports_after_each_page(sandbox, way):
    sandbox.fault(on="data", nth=2, status=503)
    reported, threads = [], set()

    def on_progress(now):
        reported.append(now)
        threads.add(threading.get_ident())
        asyncio.get_running_loop()

    async def main():
        async with sandbox.async_client(daily_allowance=100) as client:
            return await ASYNC_WAYS[way](client.scan(**SIX_HOURS, progress=on_progress))

    assert asyncio.run(main()) == 72
    check_events(reported)
    assert threads == {threading.get_ident()}, "called in the event loop's thread"


def test_the_callback_may_use_the_client_and_even_the_scan(sandbox):
    client = sandbox.client()
    inner = []

    def on_progress(now):
        if now.pages == 1:
            client.discover()
            inner.append(len(scan.collect()))

    scan = client.scan(**SIX_HOURS, progress=on_progress)
    assert len(scan.collect()) == 72
    assert inner == [72]
    assert sandbox.stats.data_requests == 3, "both read together"


async def unheard(now):
    """Its coroutine would never be awaited."""


@pytest.mark.parametrize("wrong", [1, "yes", [print], unheard])
def test_what_is_not_callable_is_refused_before_any_request(sandbox, wrong):
    with pytest.raises(siteline.errors.QueryError, match="progress="):
        sandbox.client().scan(**SIX_HOURS, progress=wrong)
    with pytest.raises(siteline.errors.ConfigError, match="on_request="):
        sandbox.client(on_request=wrong)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        return True


def terminal(monkeypatch):
    """Create it in the test itself: pytest replaces the stream before the test."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


@pytest.mark.parametrize("way", ["collect", "records"])
def test_true_shows_a_tqdm_bar_in_a_terminal(sandbox, monkeypatch, way):
    shown = terminal(monkeypatch)
    client = sandbox.client(daily_allowance=100)
    WAYS[way](client.scan(**SIX_HOURS, line="L1", progress=True))
    last = shown.getvalue().split("\r")[-1]
    assert last.startswith("S1 L1: 100%|")
    assert "98 requests left today" in last
    assert shown.getvalue().endswith("\n"), "closed at the end"


@pytest.mark.parametrize("way", ["collect", "pages"])
def test_true_shows_a_line_in_a_terminal_without_tqdm(sandbox, monkeypatch, way):
    without_tqdm(monkeypatch)
    shown = terminal(monkeypatch)
    WAYS[way](sandbox.client(daily_allowance=100).scan(**SIX_HOURS, progress=True))
    assert shown.getvalue().split("\r")[1:] == [
        "S1: 30 points, 1 page, 99 requests left today",
        "S1: 60 points, 2 pages, 98 requests left today",
        "S1: 100%, 72 points, 3 pages, 97 requests left today\n",
    ]


def test_true_shows_in_a_notebook(monkeypatch):
    without_tqdm(monkeypatch)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress.reporter(True, "S1") is None, "a file"
    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    assert progress.reporter(True, "S1") is not None
    # IPython in a terminal is not a kernel.
    plain = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: plain))
    assert progress.reporter(True, "S1") is None


@pytest.mark.parametrize("stream", [None, "closed"])
def test_without_stderr_nothing_is_shown(monkeypatch, stream):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if stream else None)
    assert progress.reporter(True, "S1") is None
