"""A custom store: with two methods, a sync keeps it correct."""

import asyncio
import threading

import pytest
import siteline
from kit.feeds import (
    FEED,
    make_feed,
    true_points,
)
from kit.memory_store import LockedStore, MemoryStore


def test_a_small_class_can_be_a_store_and_converges_to_the_truth(sandbox):
    client, store, feed = sandbox.client(), MemoryStore(), make_feed()
    assert isinstance(store, siteline.targets.StoreTarget)
    first = client.sync(feed, store)
    assert first.complete
    assert first.inserted == len(store.points()) > 1000
    assert first["line-2"].sequence == max(number for number, _, _ in store.pages)
    # Late points and revisions arrive; the windows of these days become final.
    for _ in range(3):
        sandbox.clock.advance("1d")
        report = client.sync(feed, store)
        assert report.complete
    end = report.settled_through
    assert end is not None
    known = {key: one for key, one in store.points().items() if key[5] < end}
    assert known == true_points(sandbox, end)


class CustomError(Exception):
    """An exception of the user."""


class Failing(MemoryStore):
    def __init__(self, at, raised):
        super().__init__()
        self.at, self.raised = at, raised

    def apply(self, feed, page, state):
        if page is not None and page.sequence == self.at:
            self.at = None
            raise self.raised
        return super().apply(feed, page, state)


@pytest.mark.parametrize("raised", [CustomError("the database went away"), KeyboardInterrupt()])
def test_an_exception_of_a_store_is_raised_unchanged_and_the_next_sync_continues(sandbox, raised):
    client, store, feed = sandbox.client(), Failing(3, raised), make_feed(page_size=1000)
    with pytest.raises(type(raised)) as caught:
        client.sync(feed, store, concurrency=1)
    assert caught.value is raised
    assert [number for number, _, _ in store.pages] == [1, 2]
    spent = client.allowance.used
    report = client.sync(feed, store)
    assert report.complete
    assert client.allowance.used == spent + report.requests
    end = report.read_through
    assert store.points() == true_points(sandbox, end)


@pytest.mark.parametrize(
    "counts", [None, 3, (1, 2), (1, 2, "x"), (1, -2, 3), [1, 2, 3], (1, 2, 3, 4, 5), (1, 2, 3, -4)]
)
def test_invalid_counts_are_an_error(sandbox, counts):
    class Wrong(MemoryStore):
        def apply(self, feed, page, state):
            return counts

    with pytest.raises(TypeError, match=r"it must return \(inserted, revised, unchanged\)"):
        sandbox.client().sync(make_feed(), Wrong())


def test_a_state_that_is_not_bytes_is_an_error(sandbox):
    class Wrong(MemoryStore):
        def state(self, feed):
            return "text"

    with pytest.raises(TypeError, match="returned a str"):
        sandbox.client().sync(make_feed(), Wrong())
    store = MemoryStore()
    store.states["line-2"] = b"something else"
    with pytest.raises(siteline.errors.StoreCorrupt):
        sandbox.client().sync(make_feed(), store)


def test_an_object_that_is_not_a_store_is_refused_before_any_request(sandbox):
    class Async(MemoryStore):
        async def apply(self, feed, page, state):
            return 0, 0, 0

    for store in (None, "plant.siteline", object(), {}):
        with pytest.raises(siteline.errors.QueryError, match=r"siteline\.Store, or"):
            sandbox.client().sync(make_feed(), store)
    with pytest.raises(siteline.errors.ConfigError, match="async"):
        sandbox.client().sync(make_feed(), Async())
    assert sandbox.stats.token_requests == 0


def test_a_lock_is_held_during_the_sync_and_always_released(sandbox):
    client, store = sandbox.client(), LockedStore()
    two = [make_feed(), make_feed("line-1", line="L1")]
    seen = []
    client.sync(two, store, progress=lambda _: seen.append(list(store.locks)))
    assert seen[0] == ["+line-1", "+line-2"], "in the order of names"
    assert sorted(store.locks) == ["+line-1", "+line-2", "-line-1", "-line-2"]
    sandbox.clock.advance("1h")
    sandbox.fault(on="data", status=400, error="invalid_request", times=9)
    with pytest.raises(siteline.errors.RequestRejected):
        client.sync(two, store)
    assert len(store.locks) == 8
    assert not set(store.locks[-2:]) & {"+line-1", "+line-2"}


def test_a_lock_attribute_is_ignored_and_a_wrong_lock_method_is_an_error(sandbox):
    client, store = sandbox.client(), MemoryStore()
    store.lock = threading.Lock()  # an attribute of the user
    assert client.sync(make_feed(), store).complete

    class Generator(MemoryStore):
        def lock(self, feed):
            yield

    class Async(MemoryStore):
        async def lock(self, feed):
            raise AssertionError("must not be awaited")

    with pytest.raises(TypeError, match=r"generator.*context manager"):
        client.sync(make_feed(), Generator())
    with pytest.raises(siteline.errors.ConfigError, match="async"):
        client.sync(make_feed(), Async())


def test_a_store_is_called_on_the_calling_thread(sandbox):
    store = MemoryStore()
    sandbox.client().sync(make_feed(), store)
    assert store.threads == {threading.get_ident()}

    async def main():
        async with sandbox.async_client() as client:
            return await client.sync(make_feed(), store)

    sandbox.clock.advance("1h")
    assert asyncio.run(main()).complete
    assert store.threads == {threading.get_ident()}, "the thread of the loop"


class Tee:
    """A target that records the pages and passes them on to a store."""

    def __init__(self, store):
        self.store, self.pages = store, []

    def state(self, feed):
        return self.store.state(feed)

    def apply(self, feed, page, state):
        self.pages.append(page)
        return self.store.apply(feed, page, state)


def test_a_store_is_a_target_and_can_be_wrapped_by_another(tmp_path):
    assert isinstance(siteline.Store(tmp_path / "plant.siteline"), siteline.targets.StoreTarget)
    feed = siteline.Feed("line-1", **{**FEED, "line": "L1"})
    with (
        siteline.Sandbox(now="2026-11-20T00:00Z") as sandbox,
        siteline.Store(tmp_path / "one.siteline") as store,
    ):
        tee = Tee(store)
        report = sandbox.client().sync(feed, tee)
        assert report.inserted == len(store.read(feed)) > 0
        assert report.pages == len(tee.pages)
        with siteline.Store(tmp_path / "two.siteline") as plain:
            sandbox.client().sync(feed, plain)
            # Only a sync of the store itself keeps names.
            tables = [one.read(feed, labels=False).to_pandas() for one in (plain, store)]
            assert tables[0].equals(tables[1])
        # A sync of the store itself continues from the state that the tee passed on.
        assert sandbox.client().sync(feed, store).requests == 0
        scan = sandbox.client().scan(site="S1", start="2026-11-01T00:00Z", interval="1h")
        with pytest.raises(siteline.errors.QueryError, match="of a scan"):
            store.apply(feed, next(scan.pages()), b"")
        for name, state in ((feed, b"no state"), ("line-9", store.state(feed))):
            with pytest.raises(siteline.errors.QueryError, match="not a state of this feed"):
                store.apply(name, None, state)
