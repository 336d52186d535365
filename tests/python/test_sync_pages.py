"""`client.sync_pages`: a sync in the pull form, whose caller keeps the points and the states."""

import asyncio
import copy
import dataclasses
import gc
import pickle
import threading
import weakref

import pytest
import siteline
from kit.feeds import (
    load_series,
    make_feed,
    stored_points,
    true_points,
    withdraw_point,
    without_skew,
)
from kit.memory_store import MemoryStore
from torture.server import Server

CLOCK = siteline.testing.Clock("2026-11-20T00:00:00Z")


def counts_of(report):
    names = ("inserted", "revised", "unchanged", "withdrawn", "pages", "requests", "complete")
    return {name: getattr(report, name) for name in names}


def test_five_syncs_of_late_and_revised_data_are_those_of_a_store_at_every_step(sandbox, store):
    load_series(sandbox)
    feeds = [make_feed(f"line-{number}", line=f"L{number}", page_size=400) for number in (1, 2)]
    kept, client, other = MemoryStore(), sandbox.client(), sandbox.client()
    for step in range(3):
        if step == 1:
            withdraw_point(sandbox)
        expected = client.sync(feeds, store)
        with other.sync_pages(feeds, kept.states) as pages:
            for page, state in pages:
                ((feed, after),) = state.items()
                pages.applied(*kept.apply(feed, page, after))
        report = pages.report
        assert counts_of(report) == counts_of(expected)
        assert [one.name for one in report.feeds] == [one.name for one in expected.feeds]
        for feed in feeds:
            name = feed.name
            assert kept.points(name) == stored_points(store, name, unread="keep")
            only = stored_points(store, name, unread="keep", withdrawn="only")
            assert kept.points(name, withdrawn=True) == only
            assert without_skew(kept.states[name]) == without_skew(store.state(name))
        sandbox.clock.advance("16h")
    assert len(kept.points("line-2", withdrawn=True)) > 0, "something was withdrawn"


def test_the_states_that_are_given_are_not_changed(sandbox):
    states = {}
    feed, client = make_feed(page_size=300), sandbox.client()
    ((page, state),) = [next(client.sync_pages(feed, states))]
    assert states == {}
    assert page.feed == "line-2"
    assert list(state) == ["line-2"]
    assert type(state["line-2"]) is bytes
    before = copy.copy(state)
    second, _ = next(client.sync_pages(feed, state))
    assert state == before
    assert (page.sequence, second.sequence) == (1, 2)
    assert (page.first_sequence, second.first_sequence) == (1, 1)


@pytest.mark.parametrize("way", ["on_request", "progress"])
def test_who_owns_the_iterator_and_is_told_is_collected(sandbox, way):
    class Job:
        def __init__(self):
            client = sandbox.client(on_request=self.told if way == "on_request" else None)
            progress = self.told if way == "progress" else None
            self.pages = client.sync_pages(make_feed(), progress=progress)
            next(self.pages)

        def told(self, _):
            pass

    job = Job()
    gone = weakref.ref(job)
    del job
    gc.collect()
    assert gone() is None


def test_a_page_that_an_interrupt_takes_from_the_caller_comes_again(sandbox, monkeypatch):
    pages, wait = sandbox.client().sync_pages(make_feed(page_size=300)), siteline.sync.wait_for

    def interrupted(steps):
        wait(steps)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("siteline.sync.wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(pages)
    assert [next(pages)[0].sequence, next(pages)[0].sequence] == [1, 2]


def closing_soon(server, pages):
    server.await_request("/data", count=3)
    pages.close()


def test_closing_from_another_thread_ends_the_wait_and_its_request(key):
    credential = siteline.Credential("C1", key)
    with (
        Server() as server,
        siteline.Client(server.url("two"), credential=credential, clock=CLOCK) as client,
    ):
        feed = make_feed(start="2026-11-15T00:00Z")
        pages = client.sync_pages(feed, concurrency=1)
        next(pages), next(pages)
        closing = threading.Thread(target=closing_soon, args=(server, pages))
        closing.start()
        assert list(pages) == []
        closing.join()
        server.await_close()
        assert pages.report.pages == 2
        assert client.allowance.used == 3


def test_in_asyncio_it_is_the_same(sandbox):
    feeds = [make_feed(f"line-{number}", line=f"L{number}", page_size=300) for number in (1, 2)]
    kept = MemoryStore()

    async def main():
        async with sandbox.async_client() as client:
            async with client.sync_pages(feeds, kept.states, concurrency=4) as pages:
                async for page, state in pages:
                    ((feed, after),) = state.items()
                    await asyncio.sleep(0)
                    pages.applied(*kept.apply(feed, page, after))
            assert [one async for one in pages] == []
            return pages.report

    report = asyncio.run(main())
    assert report.complete
    assert report.inserted == len(kept.rows) > 0
    for number in (1, 2):
        truth = true_points(sandbox, report.read_through, line=f"L{number}")
        assert kept.points(f"line-{number}") == truth


@pytest.mark.parametrize("states", [3, "text", [b"bytes"], {"line-2": "text"}, {"line-2": 3}])
def test_states_that_are_none_are_refused_before_any_request(sandbox, states):
    with pytest.raises(TypeError, match="states="):
        sandbox.client().sync_pages(make_feed(), states)
    assert sandbox.stats.data_requests == 0


def test_other_arguments_are_refused_before_any_request(sandbox):
    client = sandbox.client()
    with pytest.raises(siteline.errors.StoreCorrupt):
        client.sync_pages(make_feed(), {"line-2": b"something else"})
    with pytest.raises(siteline.errors.QueryError, match="feeds="):
        client.sync_pages([])
    with pytest.raises(TypeError, match="belongs to the target"):
        client.sync_pages(make_feed(), {}, batch=3)
    with pytest.raises(TypeError, match=r"only sync\(\) waits"):
        client.sync_pages(make_feed(), {}, wait="5m")
    with pytest.raises(TypeError, match="sync_pages"):
        client.sync_pages(make_feed(), {}, store=3)
    pages = client.sync_pages(make_feed())
    with pytest.raises(TypeError, match="pickle the states"):
        pickle.dumps(pages)
    states = dict(next(pages)[1])
    with pytest.raises(siteline.errors.FeedChanged):
        client.sync_pages(make_feed(interval="1h"), states)
    client.close()
    with pytest.raises(siteline.errors.ClosedError):
        client.sync_pages(make_feed(), {})


def test_the_coverage_of_a_state_is_that_of_the_store_but_for_what_has_points(sandbox, store):
    client, feed = sandbox.client(), make_feed(page_size=300)
    client.sync(feed, store)
    now = sandbox.clock.now()
    of_state = siteline.types.Coverage.from_state(store.state("line-2"), now)
    of_store = store.coverage("line-2", now=now)
    assert [window.empty for window in of_state] == [None] * len(of_store)
    assert [dataclasses.replace(window, empty=None) for window in of_store] == list(of_state)
    assert of_state.settled_through == of_store.settled_through is not None
    assert of_state.feed == feed
    assert "line-2" in repr(of_state)
    assert len(of_state.to_pandas()) == len(of_store)
    with pytest.raises(siteline.errors.StoreCorrupt):
        siteline.types.Coverage.from_state(b"something else")
