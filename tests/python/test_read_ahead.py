"""One page is read ahead after the second page was taken: how many requests that costs."""

import asyncio
import gc
import threading

import pytest
import siteline
from kit.ranges import DAY
from kit.reading import SIZE, WAYS, RequestCount, count_points, take


@pytest.fixture
def totals(sandbox):
    """The number of pages and of points."""
    report = sandbox.client().data(**DAY, page_size=SIZE).collect().report
    assert report["pages"] >= 4
    return report["pages"], report["points"]


@pytest.mark.fault("R16", "P9")
@pytest.mark.parametrize("way", WAYS)
def test_the_first_page_costs_one_request_and_every_later_stop_one_more(sandbox, totals, way):
    requests = RequestCount(sandbox)
    items = getattr(requests.client.data(**DAY, page_size=SIZE), way)()
    for taken in range(1, totals[0]):
        take(items, 1, way)
        requests.wait_for(min(taken + (taken > 1), totals[0]))
    assert sum(map(count_points, items)) == totals[1] - (totals[0] - 1) * SIZE
    requests.wait_for(totals[0])


@pytest.mark.fault("R16", "P9")
@pytest.mark.parametrize("way", WAYS)
def test_an_iterator_that_is_dropped_makes_no_further_request(sandbox, totals, way):
    requests = RequestCount(sandbox)
    client = requests.client
    for taken in range(1, 4):
        items = getattr(client.data(**DAY, page_size=SIZE), way)()
        take(items, taken, way)
        del items
        gc.collect()
        requests.dropped += 1
        client.discover()
    assert requests() <= 1 + 3 + 4


@pytest.mark.fault("R16", "P8")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 4])
def test_a_page_is_requested_once_however_fast_it_is_taken(sandbox, way, threads):
    requests = RequestCount(sandbox)
    client = requests.client
    got, failed, pages = [], [], 0

    def read(items):
        try:
            got.extend(count_points(item) for item in items)
        except Exception as error:
            failed.append(error)

    for size in (20, 21, 22, 23):
        scan = client.data(**DAY, page_size=size)
        items = getattr(scan, way)()
        readers = [threading.Thread(target=read, args=(items,)) for _ in range(threads)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(120)
        pages += -(-len(sandbox.truth(**DAY)) // size)
    assert not failed
    assert sum(got) == 4 * len(sandbox.truth(**DAY))
    assert requests() == pages


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_ahead_is_raised_once_when_that_page_is_taken(sandbox, totals, way):
    requests = RequestCount(sandbox)
    client = requests.client
    sandbox.fault(on="data", skip=2, times=1, status=410)
    items = getattr(client.data(**DAY, page_size=SIZE), way)()
    got = take(items, 2, way)
    requests.wait_for(3)
    with pytest.raises(siteline.CursorRejected) as caught:
        next(items)
    assert caught.value.bookmark.pages == 2
    assert requests() == 3
    got.extend(items)
    assert sum(map(count_points, got)) == totals[1]
    assert requests() == totals[0] + 1


@pytest.mark.parametrize("way", WAYS)
def test_an_exhausted_allowance_is_raised_when_the_page_beyond_it_is_taken(sandbox, way):
    client = sandbox.client(daily_allowance=3)
    items = getattr(client.data(**DAY, page_size=SIZE), way)()
    assert sum(map(count_points, take(items, 3, way))) == 3 * SIZE
    assert (client.allowance.used, client.allowance.left) == (3, 0)
    for _ in range(2):
        with pytest.raises(siteline.AllowanceExhausted) as caught:
            next(items)
        assert caught.value.bookmark.pages == 3
    assert client.allowance.used == sandbox.stats["data_requests"] == 3


@pytest.mark.parametrize("way", WAYS)
def test_max_pages_is_raised_when_one_more_page_is_taken(sandbox, way):
    items = getattr(sandbox.client().data(**DAY, page_size=SIZE, max_pages=2), way)()
    take(items, 2, way)
    with pytest.raises(siteline.QueryError, match="max_pages=2") as caught:
        next(items)
    assert caught.value.bookmark.pages == 2
    assert sandbox.stats["data_requests"] == 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [20, SIZE])
def test_progress_is_reported_once_for_each_page_in_order_and_before_the_page(sandbox, way, size):
    reported = []
    scan = sandbox.client().data(**DAY, page_size=size, progress=reported.append)
    given = 0
    for item in getattr(scan, way)():
        given += count_points(item)
        assert given <= reported[-1].points
        assert reported[-1].points - given < size
    assert [one.pages for one in reported] == list(range(1, -(-given // size) + 1))
    assert given == reported[-1].points == len(sandbox.truth(**DAY))


@pytest.mark.parametrize("way", WAYS)
def test_an_exception_in_the_callback_loses_no_page(sandbox, totals, way):
    reported = []

    def on_progress(progress):
        reported.append(progress.pages)
        if len(reported) % 2:
            raise LookupError(progress.pages)

    requests = RequestCount(sandbox)
    items = getattr(requests.client.data(**DAY, page_size=SIZE, progress=on_progress), way)()
    got, raised = [], []
    while True:
        try:
            got.append(next(items))
        except StopIteration:
            break
        except LookupError as error:
            raised.append(error.args[0])
    assert reported == list(range(1, totals[0] + 1))
    assert raised == reported[::2]
    assert sum(map(count_points, got)) == totals[1]
    assert requests() == totals[0]


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_client_returns_the_page_read_ahead_and_no_more(sandbox, totals, way):
    requests = RequestCount(sandbox)
    client = requests.client
    items = getattr(client.data(**DAY, page_size=SIZE), way)()
    got = take(items, 2, way)
    requests.wait_for(3)
    client.close()
    with pytest.raises(siteline.ClosedError) as caught:
        got.extend(items)
    assert caught.value.bookmark.pages in (2, 3)
    assert requests() == 3


@pytest.mark.fault("R16")
@pytest.mark.parametrize("way", WAYS)
def test_asyncio_costs_the_same_requests(sandbox, totals, way):
    requests, reported = RequestCount(sandbox), []
    client = siteline.AsyncClient._over(requests.client)
    scan = client.data(**DAY, page_size=SIZE, progress=reported.append)

    async def read():
        items, got = getattr(scan, way)(), 0
        for taken in range(1, 4):
            for _ in range(1 if way == "pages" else SIZE):
                got += count_points(await anext(items))
            expected = min(taken + (taken > 1), totals[0])
            requests.wait_for(expected)
        async for item in items:
            got += count_points(item)
        return got

    assert asyncio.run(read()) == totals[1]
    assert requests() == totals[0]
    assert [one.pages for one in reported] == list(range(1, totals[0] + 1))


@pytest.mark.parametrize("way", WAYS)
def test_in_asyncio_a_failure_ahead_is_raised_when_that_page_is_taken(sandbox, totals, way):
    requests = RequestCount(sandbox)
    client = siteline.AsyncClient._over(requests.client)
    sandbox.fault(on="data", skip=2, times=1, status=410)

    async def read():
        items, got = getattr(client.data(**DAY, page_size=SIZE), way)(), 0
        for _ in range(2 if way == "pages" else 2 * SIZE):
            got += count_points(await anext(items))
        requests.wait_for(3)
        with pytest.raises(siteline.CursorRejected) as caught:
            await anext(items)
        assert caught.value.bookmark.pages == 2
        async for item in items:
            got += count_points(item)
        return got

    assert asyncio.run(read()) == totals[1]
    assert requests() == totals[0] + 1
