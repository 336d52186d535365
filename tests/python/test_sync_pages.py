"""`client.sync_pages`: a sync in the pull form, whose caller keeps the points and the states."""

import asyncio
import copy
import gc
import random
import threading
import weakref
from datetime import timedelta

import pytest
import siteline
from kit import systems
from kit.feeds import load_series, make_feed, stored_points, true_points, withdraw_point
from kit.flagging_store import FlaggingStore
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import NOW
from kit.waiting import wait_until
from torture.server import Server


class Pulled:
    """What a caller keeps: points and states, both or neither."""

    def __init__(self):
        self.kept, self.sizes = FlaggingStore(), []

    @property
    def states(self):
        return self.kept.states

    def pull(self, client, feeds, *, stop=None, counts=True, **options):
        """Pull to the end, or until so many were stored; returns the iterator."""
        with client.sync_pages(feeds, self.states, **options) as pages:
            for number, (page, state) in enumerate(pages, 1):
                if stop is not None and number > stop:
                    break  # handed over, and not stored
                ((feed, after),) = state.items()
                done = self.kept.apply(feed, page, after)
                self.sizes.append(None if page is None else len(page))
                if counts:
                    pages.applied(*done)
        return pages

    def points(self, feed="line-2", **options):
        return self.kept.points(feed, **options)


def counts_of(report):
    names = ("inserted", "revised", "unchanged", "flagged", "pages", "requests", "complete")
    return {name: getattr(report, name) for name in names}


def test_five_syncs_of_late_and_revised_data_are_those_of_a_store_at_every_step(sandbox, store):
    load_series(sandbox)
    feeds = [make_feed(f"line-{number}", line=f"L{number}", page_size=400) for number in (1, 2)]
    pulled, client, other = Pulled(), sandbox.client(), sandbox.client()
    for step in range(5):
        if step == 2:
            withdraw_point(sandbox)
        expected = client.sync(feeds, store)
        report = pulled.pull(other, feeds).report
        assert counts_of(report) == counts_of(expected)
        assert report.feeds.keys() == expected.feeds.keys()
        for feed in feeds:
            name = feed.name
            assert pulled.points(name) == stored_points(store, name, unread="keep")
            only = stored_points(store, name, unread="keep", flagged="only")
            assert pulled.points(name, flagged=True) == only
            assert pulled.states[name] == store.state(name)
        sandbox.clock.advance("16h")
    assert len(pulled.points("line-2", flagged=True)) > 0, "something was withdrawn"


def test_what_was_handed_over_last_and_not_stored_is_read_again(sandbox):
    pulled, client, feed = Pulled(), sandbox.client(), make_feed(page_size=300)
    chance, requests = random.Random(5), 0
    for _ in range(60):
        pages = pulled.pull(client, feed, stop=chance.randrange(4))
        requests += pages.report.requests
        if pages.report.complete:
            break
    assert pages.report.complete
    assert pulled.points() == true_points(sandbox, pages.report.read_through)
    assert requests == client.allowance.used == sandbox.stats["data_requests"]


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


def test_a_state_without_a_page_is_handed_over_too(sandbox):
    pulled, client, feed = Pulled(), sandbox.client(), make_feed(page_size=300)
    sandbox.fault(on="data", nth=3, forget_cursors=True)
    report = pulled.pull(client, feed).report
    assert report.complete
    assert None in pulled.sizes, "the chain began again"
    assert pulled.points() == true_points(sandbox, report.read_through)


def test_a_feed_without_a_page_has_a_state_at_the_end(sandbox):
    feed = make_feed(since="2026-11-19T23:55Z")
    with sandbox.client().sync_pages(feed) as pages:
        ((page, state),) = pages
        assert page is None
    assert siteline.Coverage.from_state(state["line-2"]).feed == feed
    assert pages.report.complete
    assert sandbox.stats["data_requests"] == 0
    assert list(sandbox.client().sync_pages(feed, state)) == []


def test_the_end_is_the_end(sandbox):
    pages = sandbox.client().sync_pages(make_feed())
    assert iter(pages) is pages
    assert len(list(pages)) > 0
    report = pages.report
    assert list(pages) == []
    pages.close()
    assert pages.report == report


def test_closing_ends_it_where_it_is(sandbox):
    pages = sandbox.client().sync_pages(make_feed(page_size=300))
    next(pages)
    next(pages)
    live = pages.report
    assert (live.pages, live.complete) == (1, False), "the second is not stored yet"
    pages.close()
    assert list(pages) == []
    assert pages.report.pages == 1
    assert pages.report.todo


def test_without_a_word_all_points_of_a_page_count_as_inserted(sandbox):
    pulled, client = Pulled(), sandbox.client()
    first = pulled.pull(client, make_feed(), counts=False).report
    sandbox.clock.advance("1h")
    second = pulled.pull(client, make_feed(), counts=False).report
    sizes = sum(size or 0 for size in pulled.sizes)
    assert first.inserted + second.inserted == sizes > len(pulled.points())
    assert (second.revised, second.unchanged, second.flagged) == (0, 0, 0)


def test_it_stops_at_the_allowance_and_at_max_pages(sandbox):
    pulled, feed = Pulled(), make_feed(page_size=100)
    report = pulled.pull(sandbox.client(), feed, max_pages=2).report
    assert (report.pages, report.ended_by, report.complete) == (2, "max_pages", False)
    client = sandbox.client(daily_allowance=3)
    report = pulled.pull(client, feed).report
    assert (report.pages, report.ended_by) == (3, "allowance")
    assert report.resumes_at is not None
    assert sandbox.stats["data_requests"] == 5


def test_an_error_of_a_read_loses_nothing(sandbox):
    client, feed, kept = sandbox.client(tries=1), make_feed(page_size=300), FlaggingStore()
    sandbox.fault(on="data", nth=3, status=503)
    pages, errors = client.sync_pages(feed), 0
    while True:
        try:
            page, state = next(pages)
        except siteline.ServiceUnavailable:
            errors += 1
            continue
        except StopIteration:
            break
        kept.apply("line-2", page, state["line-2"])
    assert errors == 1
    assert kept.points() == true_points(sandbox, pages.report.read_through)


def test_progress_and_requests_are_told(sandbox):
    told, notes = [], []
    client = sandbox.client(on_request=notes.append)
    report = Pulled().pull(client, make_feed(page_size=300), progress=told.append).report
    assert [one.pages for one in told] == list(range(1, report.pages + 1))
    assert told[-1].done
    data = [note for note in notes if note.kind == "data"]
    assert {note.feed for note in data} == {"line-2"}
    assert len(data) == report.requests


def test_two_that_ask_at_a_time_are_told(sandbox):
    asked = []

    def progress(_):
        try:
            next(pages)
        except RuntimeError as error:
            asked.append(str(error))

    pages = sandbox.client().sync_pages(make_feed(page_size=300), progress=progress)
    count = sum(page is not None for page, _ in pages)
    assert len(asked) == count > 1
    assert "one thread" in asked[0]


def test_a_clock_that_jumps_at_the_end_takes_no_state_back(sandbox):
    feeds = [make_feed(name, line=line, since="2026-11-19T23:55Z") for name, line in
             (("a", "L1"), ("b", "L2"))]  # fmt: skip
    states = {}
    for number, (page, state) in enumerate(sandbox.client().sync_pages(feeds)):
        assert page is None
        states.update(state)
        if number == 0:
            sandbox.clock.step(timedelta(hours=2))
    assert list(states) == ["a", "b"]
    assert sandbox.stats["data_requests"] == 0, "the next sync reads what has become due"
    pulled = Pulled()
    pulled.kept.states.update(states)
    report = pulled.pull(sandbox.client(), feeds).report
    assert report.requests == report.pages == sandbox.stats["data_requests"] > 0


@pytest.mark.fault("R17")
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


def closing_soon(server, pages):
    server.await_request("/data", count=3)
    pages.close()


def test_closing_from_another_thread_ends_the_wait_and_its_request():
    credential = siteline.Credential("C1", siteline.PrivateKey.generate(2048))
    with Server() as server, siteline.Client(server.url("two"), credential=credential) as client:
        feed = make_feed(since="2026-11-15T00:00Z")
        pages = client.sync_pages(feed, now="2026-11-20T00:00Z")
        next(pages), next(pages)
        closing = threading.Thread(target=closing_soon, args=(server, pages))
        closing.start()
        assert list(pages) == []
        closing.join()
        server.await_close()
        assert pages.report.pages == 2
        assert client.allowance.used == 3


def test_closing_in_progress_ends_it_before_another_request(sandbox):
    pages = sandbox.client().sync_pages(
        make_feed(page_size=300), progress=lambda _: pages.close()
    )  # fmt: skip
    assert len(list(pages)) == 1
    assert sandbox.stats["data_requests"] == pages.report.requests == 1


def test_a_report_is_there_although_the_end_has_failed(sandbox):
    class Instrument:
        def request(self, note):
            pass

        def revised(self, feeds):
            raise ValueError("of the instrument")

    client = sandbox.client()
    client._instrument(Instrument())
    pages = client.sync_pages(make_feed())
    with pytest.raises(ValueError, match="of the instrument"):
        list(pages)
    assert pages.report.complete
    assert list(pages) == []


@systems.FORK
def test_a_forked_child_raises_what_its_block_raises():
    script = f"""
        import os, siteline
        with siteline.Sandbox(now="{NOW}") as sandbox:
            feed = siteline.Feed("line-2", line="L2", interval="5m", since="2026-11-19T00:00Z")
            with sandbox.client().sync_pages(feed) as pages:
                next(pages)
                pid = os.fork()
                if pid == 0:
                    try:
                        with pages:
                            try:
                                next(pages)
                            except siteline.ForkError:
                                raise KeyError("of the block")
                    except KeyError as error:
                        print(error, flush=True)
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
                rest = sum(page is not None for page, _ in pages)
            print(pages.report.complete)
    """
    lines = run_script(script, *FORK_WITH_THREADS).splitlines()
    assert lines == ["'of the block'", "True"]


def test_counts_of_any_size_are_taken(sandbox):
    pages = sandbox.client().sync_pages(make_feed(page_size=300))
    for _ in pages:
        pages.applied(2**64 - 1, 1, 0)
    assert pages.report.inserted >= 2**64 - 1


@pytest.mark.parametrize("concurrency", [1, 4])
def test_in_asyncio_it_is_the_same(sandbox, concurrency):
    feeds = [make_feed(f"line-{number}", line=f"L{number}", page_size=300) for number in (1, 2)]
    kept = FlaggingStore()

    async def main():
        async with sandbox.async_client() as client:
            async with client.sync_pages(feeds, kept.states, concurrency=concurrency) as pages:
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


def test_in_asyncio_a_cancelled_wait_loses_no_page():
    credential = siteline.Credential("C1", siteline.PrivateKey.generate(2048))

    async def main(server):
        async with siteline.AsyncClient(server.url("two"), credential=credential) as client:
            feed = make_feed(since="2026-11-15T00:00Z")
            pages = client.sync_pages(feed, now="2026-11-20T00:00Z")
            numbers = [(await anext(pages))[0].sequence for _ in range(2)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(pages), 0.2)
            pages.close()
            return numbers

    with Server() as server:
        assert asyncio.run(main(server)) == [1, 2]
        wait_until(lambda: server.await_close() or True)


def test_an_iterator_that_is_dropped_drops_its_request():
    credential = siteline.Credential("C1", siteline.PrivateKey.generate(2048))
    with Server() as server, siteline.Client(server.url("two"), credential=credential) as client:
        feed = make_feed(since="2026-11-15T00:00Z")
        pages = client.sync_pages(feed, now="2026-11-20T00:00Z")
        next(pages), next(pages)
        del pages
        gc.collect()
        assert len([one for one in server.requests if "/data" in str(one)]) == 2


@pytest.mark.parametrize("states", [3, "text", [b"bytes"], {"line-2": "text"}, {"line-2": 3}])
def test_states_that_are_none_are_refused_before_any_request(sandbox, states):
    with pytest.raises(TypeError, match="states="):
        sandbox.client().sync_pages(make_feed(), states)
    assert sandbox.stats["data_requests"] == 0


def test_other_arguments_are_refused_before_any_request(sandbox):
    client = sandbox.client()
    with pytest.raises(siteline.StoreCorrupt):
        client.sync_pages(make_feed(), {"line-2": b"something else"})
    with pytest.raises(siteline.QueryError, match="feeds="):
        client.sync_pages([])
    with pytest.raises(siteline.ConfigError, match="wait="):
        client.sync_pages(make_feed(), {}, wait="5m")
    with pytest.raises(TypeError, match="sync_pages"):
        client.sync_pages(make_feed(), {}, store=3)
    states = dict(next(client.sync_pages(make_feed()))[1])
    with pytest.raises(siteline.FeedChanged):
        client.sync_pages(make_feed(interval="1h"), states)
    client.close()
    with pytest.raises(siteline.ClosedError):
        client.sync_pages(make_feed(), {})


def test_its_iterator_cannot_be_pickled_and_says_what_can(sandbox):
    import pickle

    with pytest.raises(TypeError, match="pickle the states"):
        pickle.dumps(sandbox.client().sync_pages(make_feed()))


def test_the_coverage_of_a_state_is_that_of_the_store_but_for_what_has_points(sandbox, store):
    client, feed = sandbox.client(), make_feed(page_size=300)
    client.sync(feed, store)
    now = sandbox.clock.now()
    of_state = siteline.Coverage.from_state(store.state("line-2"), now)
    of_store = store.coverage("line-2", now)
    assert [window.empty for window in of_state] == [None] * len(of_store)
    assert [window._replace(empty=None) for window in of_store] == list(of_state)
    assert of_state.settled_through == of_store.settled_through is not None
    assert of_state.feed == feed
    assert "line-2" in repr(of_state)
    assert len(of_state.to_pandas()) == len(of_store)
    with pytest.raises(siteline.StoreCorrupt):
        siteline.Coverage.from_state(b"something else")
