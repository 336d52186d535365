"""`records()` after `collect()` costs no request. `pages()` starts a new chain."""

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
