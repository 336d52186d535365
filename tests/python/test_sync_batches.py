"""The attribute `batch` of a target: several pages of a chain are stored as one."""

import asyncio
import threading

import pytest
import siteline
from kit.feeds import (
    counts,
    load_series,
    make_feed,
    stored_points,
    true_points,
    withdraw_point,
    without_skew,
)
from kit.memory_store import MemoryStore


def short_feed():
    """A feed that reads one chain first."""
    return make_feed(page_size=100, start="2026-11-19T00:00Z")


class CustomError(Exception):
    """An exception of the user."""


@pytest.mark.parametrize(("batch", "concurrency"), [(3, 1), ("chain", 4)])
def test_batches_bring_what_pages_bring(sandbox, store, batch, concurrency):
    load_series(sandbox)
    target, client = MemoryStore(batch), sandbox.client()
    feeds = [make_feed(page_size=150), make_feed("line-1", line="L1", page_size=200)]
    for step in range(3):
        if step == 1:
            withdraw_point(sandbox)
        plain = client.sync(feeds, store)
        batched = client.sync(feeds, target, concurrency=concurrency)
        assert counts(plain) == counts(batched)
        assert (plain.pages, plain.requests) == (batched.pages, batched.requests)
        assert plain.complete
        assert batched.complete
        sandbox.clock.advance("16h")
    assert target.points() == stored_points(store, unread="keep")
    assert (
        target.points(withdrawn=True) == stored_points(store, withdrawn="only", unread="keep") != {}
    )
    for feed in ("line-1", "line-2"):
        assert without_skew(target.state(feed)) == without_skew(store.state(feed))


def test_a_batch_is_a_page_of_one_chain(sandbox):
    target = MemoryStore(4)
    report = sandbox.client().sync(short_feed(), target)
    sizes = [page._handle.provenance()["pages"] for page in target.pages]
    assert sum(sizes) == report.pages
    assert set(sizes[:-1]) == {4}
    assert target.sequences[:3] == [4, 8, 12]
    assert [page.first_sequence for page in target.pages] == [1] * len(sizes)
    assert [page.is_last for page in target.pages] == [False] * (len(sizes) - 1) + [True]
    assert not any(page.is_whole for page in target.pages)
    assert [len(page) for page in target.pages[:2]] == [400, 400]
    assert target.pages[0].report.points == 400
    assert target.pages[1].to_pandas().attrs["siteline"]["resumed_after_pages"] == 4
    assert {page.feed for page in target.pages} == {"line-2"}


def test_a_whole_chain_is_one_page(sandbox):
    target = MemoryStore("chain")
    report = sandbox.client().sync(short_feed(), target)
    [page] = target.pages
    assert report.pages == page.sequence > 5
    assert page.is_whole
    assert page.is_last
    # The first page of a chain that has others is not.
    pages = sandbox.client().sync_pages(make_feed("other", page_size=100), {})
    assert not next(pages)[0].is_whole
    pages.close()
    large = make_feed("large", start="2026-11-19T00:00Z", page_size=5_000)
    [(alone, _)] = sandbox.client().sync_pages(large, {})
    assert alone.is_whole


def test_no_page_is_whole_while_an_older_chain_is_unfinished(sandbox, store):
    """The older one may end without a point that the newer one brought, which is not missing."""
    load_series(sandbox)
    client, feed = sandbox.client(), short_feed()
    target = MemoryStore("chain", renews_all=False)
    targets, day = (store, target), ("2026-11-19T00:00Z", "2026-11-20T00:00Z")
    # The third run leaves the rest of the second run's chain, which continues past `until`.
    part, shorter = {"max_pages": 1}, {"until": "2026-11-19T22:00Z"}
    for options in {}, {"reread": day, **part}, {"reread": day, **shorter}:
        for one in targets:
            client.sync(feed, one, **options)
        sandbox.clock.advance("5s")
    page = target.pages[-1]
    assert (page.is_last, page.sequence - page.first_sequence + 1) == (True, len(page) // 100 + 1)
    assert not page.is_whole
    withdraw_point(sandbox)
    reports = [client.sync(feed, one) for one in targets]
    assert counts(reports[0]) == counts(reports[1])
    assert (
        target.points(withdrawn=True) == stored_points(store, withdrawn="only", unread="keep") == {}
    )
    assert target.pages[-1].is_last
    # Now no chain is unfinished, and the next one finds that the point is no longer there.
    for one in targets:
        assert client.sync(feed, one, reread=day).withdrawn == 1
    assert target.pages[-1].is_whole
    assert target.points(withdrawn=True) == stored_points(store, withdrawn="only", unread="keep")


def test_what_has_arrived_is_stored_where_a_run_ends(sandbox):
    target, client, feed = MemoryStore("chain"), sandbox.client(), short_feed()
    report = client.sync(feed, target, max_pages=7)
    assert report.ended_by == "max_pages"
    assert target.sequences == [7]
    assert report.inserted == len(target.points()) == 700
    sandbox.fault(on="data", status=500, skip=2, times=50)
    with pytest.raises(siteline.errors.ServiceUnavailable):
        client.sync(feed, target)
    assert target.pages[-1].sequence == 9
    assert not target.pages[-1].is_whole
    sandbox.clear_faults()
    report = client.sync(feed, target)
    assert report.complete
    assert target.pages[-1].is_last
    assert not target.pages[-1].is_whole, "an earlier run stored the first pages"
    assert target.points() == true_points(sandbox, report.read_through, start="2026-11-19T00:00Z")


def test_the_error_of_a_run_notes_what_was_not_stored(sandbox):
    class Gone(MemoryStore):
        def apply(self, feed, page, state):
            raise CustomError("the database went away")

    def stop(progress):
        if progress.pages == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        sandbox.client().sync(short_feed(), Gone(9), progress=stop)
    assert "not stored: the database went away" in caught.value.__notes__[0]


def test_batches_in_asyncio(sandbox):
    class Async(MemoryStore):
        async def apply(self, feed, page, state):
            await asyncio.sleep(0)
            return super().apply(feed, page, state)

    async def main(target):
        async with sandbox.async_client() as client:
            feed = short_feed()
            first = await client.sync(feed, target, max_pages=7)
            with pytest.raises(CustomError):
                await client.sync(feed, target, progress=stop)
            return first, await client.sync(feed, target)

    def stop(progress):
        if progress.pages == 3:
            raise CustomError

    for target in (Async("chain"), MemoryStore("chain")):
        first, last = asyncio.run(main(target))
        assert first.inserted == 700
        assert target.threads == {threading.get_ident()}, "the thread of the loop"
        assert target.sequences[:2] == [7, 10]
        assert target.points() == true_points(sandbox, last.read_through, start="2026-11-19T00:00Z")


@pytest.mark.parametrize("wrong", [0, -1, "page", 1.5, True])
def test_a_wrong_batch_is_refused(sandbox, wrong):
    with pytest.raises(siteline.errors.QueryError, match="batch="):
        sandbox.client().sync(make_feed(), MemoryStore(wrong))
    with pytest.raises(TypeError, match="belongs to the target"):
        sandbox.client().sync(make_feed(), MemoryStore(), batch=3)
    assert sandbox.stats.data_requests == 0
