"""One page is read ahead after the second page was taken: how many requests that costs."""

import gc
import threading

import pytest
from kit.ranges import DAY
from kit.reading import SIZE, WAYS, count_points


@pytest.mark.parametrize("way", WAYS)
def test_an_iterator_that_is_dropped_makes_no_further_request(sandbox, way):
    client = sandbox.client()
    for taken in range(1, 4):
        items = getattr(client.scan(**DAY, page_size=SIZE), way)()
        for _ in range(taken if way == "pages" else taken * SIZE):
            next(items)
        del items
        gc.collect()
        client.discover()
    # A dropped iterator may have counted a request that was not served.
    assert 1 + 2 + 3 <= sandbox.stats.data_requests <= client.allowance.used <= 1 + 3 + 4
    assert client.read(**DAY, page_size=SIZE).report.pages >= 4


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 4])
def test_a_page_is_requested_once_however_fast_it_is_taken(sandbox, way, threads):
    client, points = sandbox.client(), len(sandbox.expected(**DAY))
    got, failed, pages = [], [], 0

    def read(items):
        try:
            got.extend(count_points(item) for item in items)
        except Exception as error:
            failed.append(error)

    for size in (20, 21, 22, 23):
        items = getattr(client.scan(**DAY, page_size=size), way)()
        readers = [threading.Thread(target=read, args=(items,)) for _ in range(threads)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(120)
        pages += -(-points // size)
    assert not failed
    assert sum(got) == 4 * points
    assert sandbox.stats.data_requests == client.allowance.used == pages
