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
    report = sandbox.client().scan(**DAY, page_size=SIZE).collect().report
    assert report.pages >= 4
    return report.pages, report.points


@pytest.mark.parametrize("way", WAYS)
def test_the_first_page_costs_one_request_and_every_later_stop_one_more(sandbox, totals, way):
    requests = RequestCount(sandbox)
    items = getattr(requests.client.scan(**DAY, page_size=SIZE), way)()
    for taken in range(1, totals[0]):
        take(items, 1, way)
        requests.wait_for(min(taken + (taken > 1), totals[0]))
    assert sum(map(count_points, items)) == totals[1] - (totals[0] - 1) * SIZE
    requests.wait_for(totals[0])


@pytest.mark.parametrize("way", WAYS)
def test_an_iterator_that_is_dropped_makes_no_further_request(sandbox, totals, way):
    requests = RequestCount(sandbox)
    client = requests.client
    for taken in range(1, 4):
        items = getattr(client.scan(**DAY, page_size=SIZE), way)()
        take(items, taken, way)
        del items
        gc.collect()
        requests.dropped += 1
        client.discover()
    assert requests() <= 1 + 3 + 4


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
        scan = client.scan(**DAY, page_size=size)
        items = getattr(scan, way)()
        readers = [threading.Thread(target=read, args=(items,)) for _ in range(threads)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(120)
        pages += -(-len(sandbox.expected(**DAY)) // size)
    assert not failed
    assert sum(got) == 4 * len(sandbox.expected(**DAY))
    assert requests() == pages


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_ahead_is_raised_once_when_that_page_is_taken(sandbox, totals, way):
    requests = RequestCount(sandbox)
    client = requests.client
    sandbox.fault(on="data", skip=2, times=1, status=410)
    items = getattr(client.scan(**DAY, page_size=SIZE), way)()
    got = take(items, 2, way)
    requests.wait_for(3)
    with pytest.raises(siteline.errors.CursorRejected) as caught:
        next(items)
    assert caught.value.bookmark.pages == 2
    assert requests() == 3
    got.extend(items)
    assert sum(map(count_points, got)) == totals[1]
    assert requests() == totals[0] + 1


@pytest.mark.parametrize("way", WAYS)
def test_asyncio_costs_the_same_requests(sandbox, totals, way):
    requests, reported = RequestCount(sandbox), []
    client = siteline.AsyncClient._over(requests.client._handle)
    scan = client.scan(**DAY, page_size=SIZE, progress=reported.append)

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
