"""A scan: its pages so far, its first points, its Arrow stream, its names, and its records."""

import asyncio
import warnings

import pyarrow as pa
import pytest
import siteline
from kit.ranges import HOURLY, SIX_HOURS
from kit.threads import run_in_threads
from kit.waiting import wait_until
from siteline.testing import Variant

PAGES = {**HOURLY, "page_size": 50}
"""288 points on six pages."""


def test_a_scan_shows_the_pages_that_it_keeps(client, sandbox):
    scan = client.scan(**PAGES)
    assert (scan.bookmark, scan.partial, scan.report.pages) == (None, None, 0)
    assert scan.report.page_size == 50
    assert sandbox.stats.data_requests == 0
    sandbox.fault(on="data", status=503, skip=2, times=99)
    with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
        scan.collect()
    assert scan.bookmark == caught.value.bookmark
    assert scan.bookmark.pages == scan.report.pages == 2
    assert len(scan.partial) == len(caught.value.partial) == 100
    assert "read in part" in scan._repr_html_()
    sandbox.clear_faults()
    table = scan.collect()
    assert (scan.bookmark, scan.report.pages) == (None, 6)
    assert scan.partial is table
    rest = client.scan(**PAGES).resume(caught.value.bookmark, onto=caught.value.partial)
    assert rest.bookmark == caught.value.bookmark
    assert len(rest.partial) == 100


@pytest.mark.sandbox(variant=Variant(order="time", page_counts="envelopes", envelope_points=1))
def test_head_returns_points_as_sent(client, sandbox):
    scan = client.scan(**SIX_HOURS)
    sent = list(next(client.scan(**SIX_HOURS).pages()).records())
    before = sandbox.stats.data_requests
    assert list(scan.head(7).records()) == sent[:7]
    assert list(scan.head().records()) == sent[:5]
    assert scan.bookmark.pages == 1
    assert sandbox.stats.data_requests - before == 1
    table = scan.collect()
    assert sandbox.stats.data_requests - before == table.report.pages
    assert list(table.records()) != sent
    assert list(scan.head(7).records()) == list(table.records())[:7]


def test_head_reads_as_many_pages_as_it_needs(client, sandbox):
    reports = []
    scan = client.scan(**PAGES, progress=reports.append)
    head = scan.head(120)
    assert (len(head), head.report.pages, sandbox.stats.data_requests) == (120, 3, 3)
    assert [report.pages for report in reports] == [1, 2, 3]
    assert len(scan.head(1_000)) == 288
    assert len(scan.collect()) == 288
    assert sandbox.stats.data_requests == 6


def test_async_head_is_kept_too(sandbox):
    async def read():
        async with sandbox.async_client() as client:
            scan = client.scan(**PAGES)
            head = await scan.head(3)
            assert sandbox.stats.data_requests == 1
            return len(head), len(await scan.collect()), sandbox.stats.data_requests

    assert asyncio.run(read()) == (3, 288, 6)


@pytest.mark.parametrize("labels", [False, "machine"])
def test_the_schema_before_a_read_is_that_of_its_stream(client, labels):
    scan = client.scan(**SIX_HOURS, labels=labels, tz="Europe/Berlin", extra_columns=["quality"])
    before = pa.schema(scan)
    assert pa.table(scan).schema == before
    assert before.names == scan.collect().columns
    assert ("label" in before.names) == bool(labels)


def test_every_failure_of_a_scan_has_the_scan(client, sandbox):
    sandbox.fault(on="data", status=503, times=99)
    with pytest.raises(siteline.SitelineError) as first:
        client.read(**SIX_HOURS)
    scan = first.value.scan
    for use in (scan.collect, scan.head, scan.to_arrow, lambda: pa.table(scan)):
        with pytest.raises(siteline.SitelineError) as caught:
            use()
        assert caught.value.scan is scan
    sandbox.clear_faults()
    assert len(scan.collect()) == 72


def test_names_are_requested_once(sandbox):
    async def read():
        async with sandbox.async_client() as client:
            scans = [client.scan(**SIX_HOURS, labels="machine") for _ in range(8)]
            return await asyncio.gather(*[scan.collect() for scan in scans])

    tables = asyncio.run(read())
    assert {table.report.labels for table in tables} == {"machine"}
    assert sandbox.stats.discovery_requests == 1
    client = sandbox.client()
    run_in_threads(4, lambda: list(client.scan(**SIX_HOURS, labels="device").pages()))
    assert sandbox.stats.discovery_requests == 2


def test_the_labels_of_a_client_are_those_of_its_reads(sandbox):
    client = sandbox.client(labels="device")
    assert client.read(**SIX_HOURS).report.labels == "device"
    assert client.read(**SIX_HOURS, labels="name").report.labels in ("name", "device", "machine")
    assert "label" not in client.read(**SIX_HOURS, labels=False).columns
    assert "label" in next(client.scan(**SIX_HOURS).pages()).columns
    assert sandbox.stats.discovery_requests == 1
    waiting = sandbox.async_client(labels={"T1": "speed"})
    assert "label" in pa.schema(waiting.scan(**SIX_HOURS)).names
    with pytest.raises(siteline.SitelineError, match="labels="):
        sandbox.client(labels="plant")


def test_refused_names_are_one_warning(client, sandbox):
    sandbox.fault(on="discovery", status=403, times=99)
    with pytest.warns(siteline.SitelineWarning, match="ids, because discovery failed") as caught:
        table = client.read(**SIX_HOURS)
    assert caught[0].filename == __file__
    assert table.report.labels == "ids"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.read(**SIX_HOURS)
        next(client.scan(**SIX_HOURS).pages())
    assert sandbox.stats.discovery_requests == 1
    sandbox.clear_faults()
    sandbox.clock.advance("1h")
    assert client.read(**SIX_HOURS).report.labels == "machine"


def test_an_unrecognised_body_is_one_warning(client, sandbox):
    sandbox.fault(on="discovery", nth=1, body=b'{"plants": []}')
    with pytest.warns(siteline.SitelineWarning, match="lists no series") as caught:
        table = client.read(**SIX_HOURS)
    assert len(caught) == 1
    assert table.columns == client.read(**SIX_HOURS, labels={}).columns
    assert "discovery lists no series" in table.report.names
    assert sandbox.stats.discovery_requests == 1


def test_names_are_requested_with_the_first_page(sandbox):
    """A page arrives while discovery does not answer. A stopped read drops the request."""
    sandbox.fault(on="discovery", nth=1, hang=True)

    def stop(progress):
        wait_until(lambda: sandbox.stats.discovery_requests == 1)
        raise KeyboardInterrupt

    client = sandbox.client()
    with pytest.raises(KeyboardInterrupt) as caught:
        client.read(**SIX_HOURS, progress=stop)
    scan = caught.value.scan
    assert scan.partial.report.labels == "ids"
    again = client.scan(**SIX_HOURS).resume(scan.bookmark, onto=scan.partial)
    assert again.collect().report.labels == "machine"
    assert sandbox.stats.discovery_requests == 2


def test_new_series_are_looked_up_once_an_hour(sandbox):
    sandbox.fault(on="discovery", nth=1, body=b'{"sites": ["S1"], "tags": [{"tagGuid": "t"}]}')
    client = sandbox.client()
    tables = [client.read(**SIX_HOURS)]
    sandbox.clock.advance("59m")
    tables.append(client.read(**{**SIX_HOURS, "line": "L2"}))
    assert sandbox.stats.discovery_requests == 1
    sandbox.clock.advance("1m")
    tables.append(client.read(**{**SIX_HOURS, "line": "L2"}))
    sandbox.clock.advance("2h")
    client.read(**{**SIX_HOURS, "line": "L2"})
    assert sandbox.stats.discovery_requests == 2
    assert {table.report.labels for table in tables} == {"machine"}


def test_a_refused_credential_is_no_refusal_of_names(client, sandbox):
    sandbox.revoke(client.subject)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(siteline.errors.AuthenticationError) as caught:
            client.read(**SIX_HOURS, labels="machine")
    assert caught.value.scan.partial is None
    assert sandbox.stats.token_requests == 1


def values(records):
    return [tuple(record.values()) for record in records]


def test_records_after_collect_cost_no_request(client, sandbox):
    scan = client.scan(**PAGES)
    table = scan.collect()
    assert values(scan.records()) == values(table.records())
    assert list(scan.records(named=True)) == list(table.records(named=True))
    assert sandbox.stats.data_requests == client.allowance.used == 6


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
