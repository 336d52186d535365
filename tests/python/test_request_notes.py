"""`on_request=` is called once for each request, on the caller's thread."""

import asyncio
import contextvars
import gc
import threading
from collections import Counter

import pytest
import siteline
from kit.feeds import make_feed
from kit.keys import private_key
from kit.ranges import SIX_HOURS
from kit.waiting import wait_until
from test_progress import ASYNC_WAYS, WAYS
from torture.server import Server

PATHS = {"token": "/oauth/token", "discovery": "/discovery", "data": "/data"}


class Stop(Exception):
    """Raised by a callable."""


def counted(notes):
    """The notes as `sandbox.stats.requests` counts: of each kind, how many had which status."""
    told = {kind: Counter() for kind in PATHS}
    for note in notes:
        assert note.url.endswith(PATHS[note.kind]), "without its query"
        told[note.kind][note.status] += 1
    return {kind: dict(statuses) for kind, statuses in told.items() if statuses}


def served(sandbox):
    return {kind: counts for kind, counts in sandbox.stats.requests.items() if counts}


def brief(notes):
    return [(note.kind, note.status, note.error) for note in notes]


@pytest.mark.parametrize("way", WAYS)
def test_each_request_is_told_with_its_page_and_in_the_order_in_which_they_ended(sandbox, way):
    notes, thread = [], threading.get_ident()

    def on_request(note):
        assert threading.get_ident() == thread
        notes.append(note)

    client = sandbox.client(labels=False, on_request=on_request, daily_allowance=100)
    sandbox.fault(on="data", nth=2, status=503)
    WAYS[way](client.scan(**SIX_HOURS))
    assert brief(notes) == [
        ("token", 200, None),
        ("data", 200, None),
        ("data", 503, "ServiceUnavailable"),
        ("data", 200, None),
        ("data", 200, None),
    ]
    assert [note.points for note in notes] == [None, 30, None, 30, 12]
    assert [note.allowance_left for note in notes] == [None, 99, 98, 97, 96]
    assert [note.attempt for note in notes] == [1, 1, 1, 2, 1]
    assert [note.reason for note in notes] == [None, None, None, "503", None]
    assert notes[3].waited == pytest.approx(
        (notes[3].started - notes[2].started).total_seconds(), abs=1e-3
    )
    assert [note.waited > 0 for note in notes] == [False, False, False, True, False]
    assert all(note.sent for note in notes)
    assert counted(notes) == served(sandbox)


def test_a_note_has_the_length_of_the_body_and_the_times_of_the_attempt(sandbox):
    notes = []
    client = sandbox.client(labels=False, on_request=notes.append)
    page = next(client.scan(**SIX_HOURS, keep_raw=True).pages())
    assert 0 < notes[1].bytes < len(page.raw), "it came compressed"
    assert [note.method for note in notes] == ["POST", "GET"]
    assert notes[1].url == f"{sandbox.base_url}/api/customer/v1/data"
    assert [note.started.isoformat() for note in notes] == ["2026-11-20T00:00:00+00:00"] * 2
    with Server() as server:
        client = client_of(server, "page", notes.append)
        page = next(client.scan(site="S1", start=None, keep_raw=True).pages())
    assert notes[-1].bytes == len(page.raw)
    assert notes[-2].started < notes[-1].started
    assert 0 < notes[-1].duration < 60


def client_of(server, mode, on_request, **options):
    credential = siteline.Credential("C1", private_key())
    return siteline.Client(
        server.url(mode), credential=credential, labels=False, on_request=on_request, **options
    )


def test_requests_are_told_while_the_read_goes_on():
    """The third page never arrives. Only the callable, at the second page, ends the read."""
    notes = []

    def on_request(note):
        notes.append(note)
        if len(notes) == 3:
            raise Stop

    with Server() as server:
        client = client_of(server, "two", on_request)
        with pytest.raises(Stop):
            client.scan(site="S1", start=None).collect()
        assert brief(notes[:3]) == [("token", 200, None), *[("data", 200, None)] * 2]


def test_closing_the_client_tells_what_is_left():
    notes = []
    with Server() as server, client_of(server, "two", notes.append) as client:
        pages = client.scan(site="S1", start=None).pages()
        next(pages), next(pages)
        server.await_request("/data", count=3)
        assert len(notes) == 3
        del pages
        gc.collect()
        server.await_close()
        wait_until(lambda: client.close() or len(notes) == 4)
    assert brief(notes)[3:] == [("data", None, "abandoned")]


@pytest.mark.parametrize("way", ASYNC_WAYS)
def test_in_asyncio_requests_are_told_on_the_loop_in_the_context_of_their_call(sandbox, way):
    notes, caller = [], contextvars.ContextVar("caller")

    def on_request(note):
        asyncio.get_running_loop()
        notes.append((caller.get(), note))

    async def one(name, scan):
        caller.set(name)
        await ASYNC_WAYS[way](scan)

    async def main():
        async with sandbox.async_client(labels=False, on_request=on_request) as client:
            await asyncio.gather(
                *(one(line, client.scan(**SIX_HOURS, line=line)) for line in ("L1", "L2"))
            )

    asyncio.run(main())
    told = Counter(name for name, note in notes if note.kind == "data")
    assert told == {"L1": 2, "L2": 2}
    assert counted(note for _, note in notes) == served(sandbox)


@pytest.mark.parametrize("stop", [Stop, KeyboardInterrupt])
def test_what_the_callable_raises_ends_the_read_which_then_goes_on(sandbox, stop):
    notes = []

    def on_request(note):
        notes.append(note)
        if len(notes) == 3:
            raise stop

    scan = sandbox.client(labels=False, on_request=on_request).scan(**SIX_HOURS)
    with pytest.raises(stop):
        scan.collect()
    assert len(scan.collect()) == 72
    assert sandbox.stats.data_requests == 3, "no page was requested twice"
    assert counted(notes) == served(sandbox), "none was told twice"


def test_requests_of_a_sync_have_the_names_of_their_feeds(sandbox, store):
    notes = []
    feeds = [make_feed(f"line-{n}", line=f"L{n}", page_size=200) for n in (1, 2)]
    client = sandbox.client(labels=False, on_request=notes.append)
    for number in (3, 7):
        sandbox.fault(on="data", nth=number, status=503)
    report = client.sync(feeds, store, concurrency=8)
    told = Counter(note.feed for note in notes if note.points is not None)
    assert told == {feed.name: report[feed.name].pages for feed in feeds}
    assert counted(notes) == served(sandbox)
    assert report.requests == client.allowance.used == counted(notes)["data"][200] + 2

    def stop(note):
        raise Stop

    with pytest.raises(Stop):
        sandbox.client(labels=False, on_request=stop).sync(make_feed("other"), store)


def test_a_callable_may_use_the_client_whose_requests_are_then_not_told(sandbox):
    notes, inner = [], []

    def on_request(note):
        notes.append(note)
        inner.append(client.discover())
        inner.append(len(client.scan(**{**SIX_HOURS, "line": "L1"}).to_pandas()))

    client = sandbox.client(labels=False, on_request=on_request)
    assert len(client.scan(**{**SIX_HOURS, "page_size": 100}).collect()) == 72
    assert brief(notes) == [("token", 200, None), ("data", 200, None)]
    assert len(inner) == 4
    assert sandbox.stats.discovery_requests == 2
