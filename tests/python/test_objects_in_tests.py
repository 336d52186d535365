"""siteline's objects support weak references and replaced methods in users' tests."""

import gc
import traceback
import weakref
from unittest import mock

import pytest
import siteline
from kit import keys
from kit.ranges import HOURLY


@pytest.fixture(scope="module")
def objects(shared_sandbox, tmp_path_factory):
    """The objects that users work with."""
    sandbox, tmp_path = shared_sandbox, tmp_path_factory.mktemp("objects")
    client = sandbox.client()
    scan = client.scan(**HOURLY)
    table = scan.collect()
    store = siteline.Store(tmp_path / "plant.siteline")
    feed = siteline.Feed("plant", site="S1", interval="1h", start="2026-11-01")
    client.sync(feed, store)
    waiting = sandbox.async_client()
    with siteline.Agent(sandbox.client(), listen=f"unix:{tmp_path}/own/agent.sock") as agent:
        yield {
            "client": client,
            "scan": scan,
            "query": scan.query,
            "table": table,
            "page": next(scan.pages()),
            "pages": scan.pages(),
            "records": scan.records(),
            "store": store,
            "feed": feed,
            "points": store.read(feed),
            "sandbox": sandbox,
            "clock": sandbox.clock,
            "agent": agent,
            "key": keys.private_key(),
            "credential": siteline.Credential("s", keys.private_key()),
            "certificate": siteline.MutualTls(keys.KEYS / "certificate.pem", key=keys.PEM),
            "async client": waiting,
            "async scan": waiting.scan(**HOURLY),
            "async pages": waiting.scan(**HOURLY).pages(),
            "discovery": client.discover(),
            "series": client.series(),
            "coverage": store.coverage(feed),
            "lateness": store.lateness(feed),
        }
        client.close()


def test_every_object_can_be_referenced_weakly(objects):
    for name, found in objects.items():
        assert weakref.ref(found)() is found, name


def test_a_weak_reference_keeps_no_client(sandbox):
    client = sandbox.client()
    reference = weakref.ref(client)
    with_values = weakref.WeakKeyDictionary({client: "plant"})
    del client
    gc.collect()
    assert reference() is None
    assert not list(with_values)


REPLACED = {
    "client": ("scan", "sync", "discover", "close"),
    "scan": ("collect", "to_pandas", "pages"),
    "table": ("to_pandas",),
    "page": ("to_arrow",),
    "store": ("read", "check"),
    "points": ("to_pandas",),
    "sandbox": ("fault",),
    "agent": ("env",),
    "key": ("save",),
    "async client": ("scan", "discover"),
    "async scan": ("collect", "to_arrow"),
}


def replaced():
    """Replaces a method in these tests."""
    return "replaced"


def test_mock_replaces_methods_and_puts_them_back(objects):
    for name, methods in REPLACED.items():
        target = objects[name]
        for method in methods:
            before = getattr(target, method)
            with mock.patch.object(target, method, new=replaced):
                assert getattr(target, method)() == "replaced", (name, method)
            assert getattr(target, method) == before, (name, method)


def test_a_replaced_method_belongs_to_one_object(shared_sandbox):
    first, second = shared_sandbox.client(), shared_sandbox.client()
    with mock.patch.object(first, "scan", side_effect=siteline.errors.TransportError("lost")):
        with pytest.raises(siteline.errors.TransportError, match="lost"):
            first.scan(**HOURLY)
        assert len(second.scan(**HOURLY).collect())
    assert len(first.scan(**HOURLY).collect())


def test_a_collection_while_objects_are_made_is_harmless(sandbox):
    scan = sandbox.client().scan(site="S1", start="2026-11-01", end="2026-11-19", interval="1h")
    before = gc.get_threshold()
    try:
        # So that a collection begins at each of the allocations that one object needs.
        for allocations in range(1, 8):
            gc.set_threshold(allocations)
            assert len(scan.split("1h")) == 432
            sandbox.client()
    finally:
        gc.set_threshold(*before)


def test_nothing_but_methods_can_be_set(objects):
    for name in REPLACED:
        for attribute in ("no_such_option", "__class__", "__enter__"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(objects[name], attribute, None)
    for name, attribute in (
        ("client", "base_url"),
        ("async client", "base_url"),
        ("scan", "query"),
    ):
        before = getattr(objects[name], attribute)
        with pytest.raises(AttributeError):
            setattr(objects[name], attribute, "changed")
        assert getattr(objects[name], attribute) == before
    with pytest.raises(AttributeError):
        del objects["client"].scan


def test_an_object_whose_constructor_failed_has_a_repr():
    for make in (
        lambda: siteline.Client("bad url"),
        lambda: siteline.AsyncClient("bad url"),
        lambda: siteline.Sandbox(daily_allowance=-1),
    ):
        with pytest.raises(siteline.errors.ConfigError) as caught:
            make()
        shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        assert "object at" in "".join(shown.format())
