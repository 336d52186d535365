"""One page is read ahead after the second page was taken: how many requests that costs."""

import gc
import threading

import pytest
from kit.ranges import DAY
from kit.reading import SIZE, WAYS, RequestCount, count_points, take


@pytest.fixture
def totals(sandbox):
    """The number of pages and of points."""
    report = sandbox.client().scan(**DAY, page_size=SIZE).collect().report
    assert report.pages >= 4
    return report.pages, report.points


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
