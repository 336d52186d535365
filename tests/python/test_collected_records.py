"""What `collect()` has read is given from memory; a new chain is started where it is asked for."""

import asyncio

import pytest
import siteline
from kit.ranges import HOURLY, SIX_HOURS
from siteline.testing import Variant

PAGES = {**HOURLY, "page_size": 50}
"""288 points on six pages."""


@pytest.fixture
def asked(sandbox):
    """Gives the data requests since the last call."""
    before = 0

    def asked():
        nonlocal before
        before, since = (now := sandbox.stats.data_requests), now - before
        return since

    return asked


def values(records):
    return [tuple(record.values()) for record in records]


def test_records_after_collect_cost_no_request(client, asked):
    scan = client.scan(**PAGES)
    table = scan.collect()
    assert asked() == 6
    assert values(scan.records()) == values(table.records())
    assert list(scan.records(named=True)) == list(table.records(named=True))
    assert asked() == 0
    assert client.allowance.used == 6


def test_asyncio_gives_collected_records_from_memory(sandbox, asked):
    async def read():
        async with sandbox.async_client() as client:
            scan = client.scan(**PAGES)
            table = await scan.collect()
            asked()
            given = [record async for record in scan.records()]
            named = [record async for record in scan.records(named=True)]
            counts = [asked()]
            fresh = [record async for record in client.scan(**PAGES).records(named=True)]
            assert sorted(fresh) == named
            counts.append(asked())
            return table, given, named, counts

    table, given, named, counts = asyncio.run(read())
    assert values(given) == values(table.records())
    assert named == list(table.records(named=True))
    assert counts == [0, 6]


@pytest.mark.sandbox(variant=Variant(order="time", page_counts="envelopes", envelope_points=1))
def test_a_chain_gives_the_order_of_its_pages_and_memory_that_of_the_table(client):
    scan = client.scan(**SIX_HOURS)
    read = values(scan.records())
    times = [row[5] for row in read]
    assert times == sorted(times)
    collected = values(scan.collect().records())
    assert collected == sorted(read)
    assert collected != read
    assert values(scan.records()) == collected


def test_an_interrupted_collect_is_not_complete_so_records_start_a_new_chain(client, asked):
    class Enough(Exception):
        pass

    def stop(progress):
        if progress.pages == 2:
            raise Enough

    scan = client.scan(**PAGES, progress=stop)
    with pytest.raises(Enough):
        scan.collect()
    read = asked()
    records = scan.records()
    first = next(records)
    assert (asked(), first["timestamp"].hour) == (1, 0)
    assert 2 <= read <= 3


def test_points_from_memory_are_not_reported_as_progress(client):
    reports = []
    scan = client.scan(**SIX_HOURS, progress=reports.append)
    scan.collect()
    assert [report.pages for report in reports] == [1, 2, 3]
    list(scan.records())
    assert len(reports) == 3
    list(scan.pages())
    assert len(reports) == 6


def test_a_closed_client_still_gives_what_was_collected(client):
    scan = client.scan(**SIX_HOURS)
    scan.collect()
    client.close()
    assert len(list(scan.records())) == 72
    with pytest.raises(siteline.errors.ClosedError):
        next(scan.pages())
