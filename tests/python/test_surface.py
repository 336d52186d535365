"""The public names, and what each public object supports."""

import contextlib
import copy
import importlib
import pickle
import re
import traceback
import weakref
from unittest import mock

import pytest
import siteline
from kit import keys
from kit.ranges import HOURLY
from siteline import testing, types

NAMES = {
    "siteline": """
        Client AsyncClient Credential MutualTls PrivateKey Table Scan Page Feed Store Sandbox Agent
        doctor SitelineError SitelineWarning errors __version__""",
    "siteline.types": """
        Allowance AgentState Attempt Bookmark Check Coverage CoverageWindow Delays Diagnosis
        Discovery DiscoveryDiff FeedReport Freed Http Lateness PageDiff Plan Progress Query
        ReadReport Record RequestEvent SeriesIds SeriesReport SkippedRange StoreProgress StoreReport
        StoreShare SyncReport Task
        AsyncScan PageIterator RecordIterator AsyncPages AsyncRecords SyncPages AsyncSyncPages""",
    "siteline.shapes": "Shape DiscoveryShape",
    "siteline.targets": "DuckDB Postgres Delta StoreTarget AsyncStoreTarget",
    "siteline.plots": "coverage lateness allowance",
    "siteline.testing": """
        siteline_sandbox siteline_client NOW SandboxStats SandboxRequest Clock Variant""",
    "siteline.spark": "register plan sync upsert SitelineDataSource",
    "siteline.dlt": "points Points",
    "siteline.otel": "instrument uninstrument",
    "siteline.mcp": "serve",
    "siteline.signers": "AwsKms AzureKeyVault GoogleKms Pkcs11",
}


@pytest.mark.parametrize("module", NAMES)
def test_modules_have_these_names(module):
    found = importlib.import_module(module)
    expected = set(NAMES[module].split())
    assert set(found.__all__) == expected
    assert expected <= set(dir(found))
    for name in expected:
        assert getattr(found, name) is not None


@pytest.fixture(scope="module")
def objects(shared_sandbox, tmp_path_factory):
    """An object of each class. All requests that they need were sent."""
    sandbox, folder = shared_sandbox, tmp_path_factory.mktemp("objects")
    key = folder / "key.pem"
    keys.private_key().save(key)
    client, waiting = sandbox.client(), sandbox.async_client()
    scan, read = client.scan(**HOURLY), client.scan(**HOURLY)
    feed = siteline.Feed("plant", site="S1", interval="1h", start="2026-11-15")
    store = siteline.Store(folder / "plant.siteline")
    report = client.sync(feed, store)
    table = read.collect()
    pages = client.scan(**HOURLY, page_size=50).pages()
    page = next(pages)
    with siteline.Agent(sandbox.client(), listen=f"unix:{folder}/own/agent.sock") as agent:
        yield {
            "Client": client,
            "AsyncClient": waiting,
            "Credential": siteline.Credential("s", key),
            "MutualTls": siteline.MutualTls(keys.KEYS / "certificate.pem", key=key),
            "PrivateKey": keys.private_key(),
            "Table": table,
            "Table of a store": store.read(feed),
            "Table of series": client.series(),
            "pivoted Table": table.pivot(),
            "Scan": scan,
            "collected Scan": read,
            "AsyncScan": waiting.scan(**HOURLY),
            "Page": page,
            "PageIterator": pages,
            "RecordIterator": table.records(named=True),
            "Feed": feed,
            "Store": store,
            "Sandbox": sandbox,
            "Agent": agent,
            "AsyncPages": waiting.scan(**HOURLY).pages(),
            "AsyncRecords": waiting.scan(**HOURLY).records(),
            "SyncPages": client.sync_pages(feed),
            "AsyncSyncPages": waiting.sync_pages(feed),
            "Clock": sandbox.clock,
            "Variant": testing.Variant(page_size=50),
            "SandboxStats": sandbox.stats,
            "SandboxRequest": sandbox.stats.log[-1],
            "Http": types.Http(tries=2),
            "Allowance": client.allowance,
            "AgentState": agent.state,
            "Bookmark": page.bookmark,
            "Query": scan.query,
            "ReadReport": table.report,
            "Discovery": client.discover(),
            "Coverage": store.coverage(feed),
            "Lateness": store.lateness(feed),
            "Diagnosis": siteline.doctor(client, offline=True),
            "Plan": client.plan(feed, store),
            "SyncReport": report,
        }


def test_looking_at_objects_sends_nothing(objects, shared_sandbox, tmp_path):
    before, used = len(shared_sandbox.stats.log), objects["Client"].allowance.used
    for name, one in objects.items():
        for attribute in dir(one):
            if not attribute.startswith("_"):
                with contextlib.suppress(siteline.SitelineError):
                    getattr(one, attribute)
        shown = repr(one)
        assert " object at 0x" not in shown, name
        assert len(shown) < 5_000, name
        html = getattr(one, "_repr_html_", str)()
        for secret in ("PRIVATE KEY", "eyJ", *(keys.PEM.splitlines()[1],)):
            assert secret not in shown + html, name
    assert len(shared_sandbox.stats.log) == before
    assert objects["Client"].allowance.used == used


def test_each_object_is_copied(objects):
    for name, one in objects.items():
        try:
            copied, deep = copy.copy(one), copy.deepcopy(one)
        except TypeError as error:
            says_why(error, one)
        else:
            assert copied is one or copied == one, name
            assert deep is one or deep == one, name


def test_each_object_is_pickled_or_says_why(objects):
    refused = set()
    for name, one in objects.items():
        try:
            data = pickle.dumps(one)
        except TypeError as error:
            says_why(error, one)
            refused.add(name)
            continue
        assert keys.PEM.splitlines()[1].encode() not in data
        assert type(pickle.loads(data)) is type(one), name
    # The clients of a sandbox have their key as an object.
    assert refused == {
        *("Client", "AsyncClient", "PrivateKey", "Sandbox", "Agent", "Clock"),
        *("Scan", "collected Scan", "AsyncScan", "PageIterator", "RecordIterator"),
        *("AsyncPages", "AsyncRecords", "SyncPages", "AsyncSyncPages"),
    }


def says_why(error, one):
    """Checks that the error rejects a pickle or a copy and names an alternative."""
    assert re.search(r"(not|cannot be) (pickled|copied).*[:.] ", str(error)), (one, str(error))


REPLACED = {
    "Client": ("scan", "sync", "discover", "close"),
    "Scan": ("collect", "to_pandas", "pages"),
    "Table": ("to_pandas",),
    "Page": ("to_arrow",),
    "Store": ("read", "check"),
    "Sandbox": ("fault",),
    "Agent": ("env",),
    "PrivateKey": ("save",),
    "AsyncClient": ("scan", "discover"),
    "AsyncScan": ("collect", "to_arrow"),
}
"""Methods that tests of users replace."""


def test_objects_support_weak_references_and_mocks(objects):
    for name, one in objects.items():
        if type(one).__module__ not in ("siteline.types", "siteline.testing"):
            assert weakref.ref(one)() is one, name
    for name, methods in REPLACED.items():
        for method in methods:
            before = getattr(objects[name], method)
            with mock.patch.object(objects[name], method, new=len):
                assert getattr(objects[name], method) is len, (name, method)
            assert getattr(objects[name], method) == before, (name, method)


def test_nothing_but_methods_can_be_set(objects):
    for name in REPLACED:
        for attribute in ("no_such_option", "__class__", "__enter__"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(objects[name], attribute, None)
    read_only = {"Client": "base_url", "AsyncClient": "tz", "Scan": "query", "Credential": "kid",
                 "PrivateKey": "bits"}  # fmt: skip
    for name, attribute in read_only.items():
        with pytest.raises(AttributeError):
            setattr(objects[name], attribute, "changed")
    with pytest.raises(AttributeError):
        del objects["Client"].scan


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
