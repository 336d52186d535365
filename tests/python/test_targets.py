"""A custom store: with two methods, a sync keeps it correct."""

import threading

import pytest
import siteline
from kit.feeds import make_feed, true_points
from kit.memory_store import MemoryStore


class CustomError(Exception):
    """An exception of the user."""


@pytest.mark.parametrize("raised", [CustomError("the database went away"), KeyboardInterrupt()])
def test_an_exception_of_a_store_is_raised_unchanged_and_the_next_sync_continues(sandbox, raised):
    client, store, feed = sandbox.client(), MemoryStore(), make_feed(page_size=1000)

    def fail(feed, page, state):
        if page is not None and page.sequence == 3:
            del store.apply
            raise raised
        return MemoryStore.apply(store, feed, page, state)

    store.apply = fail
    with pytest.raises(type(raised)) as caught:
        client.sync(feed, store, concurrency=1)
    assert caught.value is raised
    assert store.sequences == [1, 2]
    assert store.threads == {threading.get_ident()}
    assert isinstance(store, siteline.targets.StoreTarget)
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
    store = MemoryStore()
    store.apply = lambda feed, page, state: counts
    with pytest.raises(TypeError, match=r"it must return \(inserted, revised, unchanged\)"):
        sandbox.client().sync(make_feed(), store)


@pytest.mark.parametrize(
    ("state", "error"), [("text", TypeError), (b"something else", siteline.errors.StoreCorrupt)]
)
def test_an_unknown_state_is_an_error(sandbox, state, error):
    store = MemoryStore()
    store.states["line-2"] = state
    with pytest.raises(error, match=r"returned a str|line-2"):
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


class Tee:
    """A target that records the pages and passes them on to a store."""

    def __init__(self, store):
        self.store, self.state, self.pages = store, store.state, []

    def apply(self, feed, page, state):
        self.pages.append(page)
        return self.store.apply(feed, page, state)


def test_a_store_is_a_target_and_can_be_wrapped_by_another(sandbox, store, tmp_path):
    assert isinstance(store, siteline.targets.StoreTarget)
    tee, client, feed = Tee(store), sandbox.client(), make_feed(interval="1h")
    report = client.sync(feed, tee)
    assert report.inserted == len(store.read("line-2")) > 0
    assert report.pages == len(tee.pages)
    with siteline.Store(tmp_path / "plain.siteline") as plain:
        client.sync(feed, plain)
        # Only a sync of the store itself keeps names.
        tables = [one.read("line-2", labels=False).to_pandas() for one in (plain, store)]
        assert tables[0].equals(tables[1])
    # A sync of the store itself continues from the state that the tee passed on.
    assert client.sync(feed, store).requests == 0
    scan = client.scan(site="S1", start="2026-11-01T00:00Z", interval="1h")
    with pytest.raises(siteline.errors.QueryError, match="of a scan"):
        store.apply("line-2", next(scan.pages()), b"")
    for name, state in (("line-2", b"no state"), ("line-9", store.state("line-2"))):
        with pytest.raises(siteline.errors.QueryError, match="not a state of this feed"):
            store.apply(name, None, state)


def test_a_target_shows_its_place(tmp_path):
    path = tmp_path / "plant.duckdb"
    assert repr(siteline.targets.DuckDB(path)) == f"<DuckDB (points) {path}>"
    shown = repr(siteline.targets.DuckDB("md:plant\u202e?motherduck_token=geheim"))
    assert "geheim" not in shown
    assert shown.isprintable()
    assert repr(siteline.targets.DuckDB.__new__(siteline.targets.DuckDB)) == "<DuckDB>"
