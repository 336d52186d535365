"""The automatic page size, and the pages that an error names as kept."""

import asyncio
import pickle
import traceback

import pytest
import siteline
from kit.feeds import make_feed
from kit.ranges import DAY, NOW, SIX_HOURS
from siteline.testing import Variant

QUERY = SIX_HOURS
AUTOMATIC = {**SIX_HOURS, "page_size": None}
KEPT = "2 pages (60 points) are kept: error.scan.collect() continues after them."


def interrupt(progress):
    if progress.pages == 2 and not progress.done:
        raise KeyboardInterrupt


@pytest.fixture
def client(sandbox):
    return sandbox.client(labels=False)


def test_the_automatic_size_costs_one_request(client):
    report = client.read(**DAY).report
    assert (report.page_size, report.page_size_reason, report.pages) == (10_000, "automatic", 1)
    assert client.allowance.used == 1
    given = pickle.loads(pickle.dumps(client.read(**QUERY))).report
    assert (given.page_size, given.page_size_reason) == (30, "given")


def test_a_service_may_refuse_the_automatic_size(tmp_path):
    variant = Variant(max_page_size=500, page_size=100)
    with siteline.Sandbox(seed=5, now=NOW, variant=variant) as sandbox:
        client = sandbox.client(labels=False)
        table = client.read(**AUTOMATIC)
        assert len(table) == 72
        report = pickle.loads(pickle.dumps(table)).report
        assert (report.page_size, report.page_size_reason) == (None, "refused")
        assert client.allowance.used == report.pages + 1
        store = siteline.Store(tmp_path / "plant.siteline")
        synced = client.sync(make_feed(), store)
        assert synced.complete
        assert synced.requests == synced.pages


def test_a_failed_read_says_what_it_kept(sandbox, client):
    sandbox.fault(on="data", status=503, skip=2, times=4)
    with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
        client.read(**QUERY)
    error = caught.value
    assert error.kept == KEPT
    assert str(error).splitlines()[:2] == [error.message, KEPT]
    assert pickle.loads(pickle.dumps(error)).kept == "2 pages (60 points) are kept."
    assert error.scan.collect().report.pages == 3


@pytest.mark.parametrize(
    ("status", "step"), [(503, ": error.scan.collect() begins again"), (403, ""), (400, "")]
)
def test_a_read_without_pages_says_so(sandbox, client, status, step):
    sandbox.fault(on="data", status=status, times=4)
    with pytest.raises(siteline.SitelineError) as caught:
        client.scan(**QUERY).to_pandas()
    assert caught.value.kept == f"No page is kept{step}."
    assert ("aggregationIntervalSeconds is interval=" in str(caught.value)) == (status == 400)


@pytest.mark.parametrize("fault", [{"repeat_cursor": True}, {"status": 410}])
def test_a_read_that_starts_again_says_so(sandbox, client, fault):
    sandbox.fault(on="data", skip=1, times=1, **fault)
    with pytest.raises(siteline.SitelineError) as caught:
        client.read(**QUERY)
    pages = caught.value.partial.report.pages
    assert caught.value.kept == (
        f"{pages} page ({30 * pages} points) was read (error.partial), but error.scan.collect() "
        "starts again and pays for it again."
    )
    pickled = pickle.loads(pickle.dumps(caught.value)).kept
    assert pickled == f"{pages} page ({30 * pages} points) was read."
    used = client.allowance.used
    assert caught.value.scan.collect().report.pages == 3
    assert client.allowance.used == used + 3


def test_a_failed_chain_of_several_is_paid_again(sandbox, client):
    query = {**QUERY, "line": ["L1", "L2"], "concurrency": 1}
    sandbox.fault(on="data", skip=3, times=1, status=410)
    with pytest.raises(siteline.errors.CursorRejected) as caught:
        client.read(**query)
    partial, used = caught.value.partial.report, client.allowance.used
    assert "pays again for 1 page of the failed chain" in caught.value.kept
    whole = caught.value.scan.collect().report
    assert client.allowance.used - used == whole.pages - (partial.pages - 1)


def test_an_interrupted_read_has_a_note(client):
    with pytest.raises(KeyboardInterrupt) as caught:
        client.read(**QUERY, progress=interrupt)
    assert "".join(traceback.format_exception(caught.value)).endswith(f"\n{KEPT}\n")
    assert len(caught.value.scan.collect()) == 72
    assert client.allowance.used == 3, "no page was requested twice"


def test_a_cancelled_task_has_a_note(sandbox):
    async def main():
        async with sandbox.async_client(labels=False) as client:
            pages = asyncio.Event()
            sandbox.fault(on="data", hang=True, skip=1)
            scan = client.scan(**QUERY, progress=lambda _: pages.set())
            task = asyncio.create_task(scan.collect())
            await pages.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            sandbox.clear_faults()
            return caught.value.__notes__, len(await scan.collect())

    [note], points = asyncio.run(main())
    assert note.endswith("is kept: await error.scan.collect() continues after it.")
    assert points == 72


def test_pages_and_records_say_what_they_returned(sandbox, client):
    scan = client.scan(**QUERY)
    for name, expected in (("pages", "1 page (30 points) was"), ("records", "30 points were")):
        sandbox.fault(on="data", status=503, skip=1, times=4)
        items = getattr(scan, name)()
        with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
            list(items)
        text = f"{expected} returned before the error: the same iterator continues after that."
        assert caught.value.kept == text
        assert caught.value.scan is scan
        assert len(list(items)) == (2 if name == "pages" else 42)


@pytest.mark.parametrize("name", ["pages", "records"])
def test_an_interrupted_iterator_has_a_note(client, name):
    scan = client.scan(**QUERY, progress=interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        list(getattr(scan, name)())
    [note] = caught.value.__notes__
    assert note.endswith(" returned before the error: the same iterator continues after that.")
    assert caught.value.scan is scan


def test_an_interrupted_sync_has_a_note(client, store):
    with pytest.raises(KeyboardInterrupt) as caught:
        client.sync(make_feed(page_size=30), store, progress=interrupt)
    assert caught.value.__notes__ == [
        "2 pages (60 points) are stored: the next sync continues after them."
    ]


def test_reports_of_stores_and_syncs_have_the_size(client, store):
    through = client.read(**AUTOMATIC, store=store).report
    assert (through.page_size, through.page_size_reason) == (10_000, "automatic")
    again = client.read(**AUTOMATIC, store=store).report
    assert (again.pages, again.page_size) == (0, None)
    pages = [page for page, _ in client.sync_pages(make_feed()) if page is not None]
    assert {page.report.page_size for page in pages} == {10_000}
    assert pickle.loads(pickle.dumps(pages[0])).report.page_size == 10_000


@pytest.mark.parametrize(
    ("call", "kept", "pages"),
    [
        (
            lambda client, store: client.read(**QUERY, store=store),
            KEPT.replace("kept", "stored"),
            None,
        ),
        (
            lambda client, store: client.sync(make_feed(page_size=30), store),
            "2 pages (60 points) are stored: the next sync continues after them.",
            2,
        ),
        (
            lambda client, store: list(client.sync_pages(make_feed(page_size=30))),
            "2 pages (60 points) were returned before the error: a sync that begins with the "
            "states continues after them.",
            None,
        ),
    ],
    ids=["read", "sync", "sync_pages"],
)
def test_a_failed_call_says_what_is_stored(sandbox, client, store, call, kept, pages):
    sandbox.fault(on="data", status=503, skip=2, times=4)
    with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
        call(client, store)
    assert caught.value.kept == kept
    assert getattr(caught.value.report, "pages", None) == pages
