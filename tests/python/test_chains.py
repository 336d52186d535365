"""Reads of several sites, lines or parts of a range give one table. Each is a chain of requests."""

import pickle

import pytest
import siteline
from kit.ranges import SIX_HOURS
from pandas.testing import assert_frame_equal

LINES = {**SIX_HOURS, "line": ["L1", "L2"]}
"""Two chains. Each has a page of 30 points and a page of 6."""

PAGES = 4


def spent(client, read):
    before = client.allowance.used
    return read(), client.allowance.used - before


def reads(client, lines, **change):
    """Reads each line. Returns all points in the order of a table."""
    tables = [client.read(**{**SIX_HOURS, "line": line, **change}) for line in lines]
    return sorted(row for table in tables for row in table.records(named=True))


def test_lists_give_the_union_of_single_reads(client):
    single, requests = spent(client, lambda: reads(client, ["L1", "L2"]))
    table, wide = spent(client, lambda: client.read(**LINES))
    assert sorted(table.records(named=True)) == single
    assert (wide, table.report.pages) == (requests, PAGES)
    assert (table.query.site, table.query.line) == (("S1",), ("L1", "L2"))
    assert table.query.start == client.scan(**LINES).query.start
    # Gaps are known, as for one chain.
    assert len(table.with_gaps()) == len(client.read(**SIX_HOURS).with_gaps())


@pytest.mark.parametrize("given", [("L1", "L2", "L1"), {"L2", "L1"}, iter(["L1", "L2"])])
def test_ids_are_any_iterable_and_count_once(client, given):
    scan = client.scan(**{**SIX_HOURS, "line": given})
    assert sorted(scan.query.line) == ["L1", "L2"]
    assert spent(client, scan.collect)[1] == PAGES


def test_a_store_has_a_feed_for_each_line(client, tmp_path):
    wide = {**LINES, "concurrency": 9}
    with siteline.Store(tmp_path / "plant.siteline") as store:
        table, requests = spent(client, lambda: client.read(**wide, store=store))
        assert (requests, table.report.pages) == (PAGES, PAGES)
        assert_frame_equal(table.to_pandas(), client.read(**SIX_HOURS).to_pandas())
        assert len(store.feeds) == len(table.report.through) == 2
        again, requests = spent(client, lambda: client.read(**wide, store=store))
        assert (requests, len(again)) == (0, 72)
        assert client.plan(client.scan(**wide, store=store)).pages == 0
        with pytest.raises(
            siteline.errors.QueryError, match="split= cannot be combined with store="
        ):
            client.scan(**SIX_HOURS, split=2, store=store)


def test_a_store_keeps_the_lines_of_a_limit(client, tmp_path):
    with siteline.Store(tmp_path / "plant.siteline") as store:
        scan = client.scan(**LINES, max_pages=3, store=store)
        with pytest.raises(siteline.errors.PageLimitReached, match="max_pages=3") as caught:
            scan.collect()
        assert client.allowance.used == 3
        assert caught.value.bookmark is None
        table, requests = spent(client, scan.collect)
        assert (requests, len(table)) == (1, 72)


def test_scans_pickle_with_their_chains(sandbox, set_variables):
    set_variables(sandbox.env())
    scan = siteline.Client().scan(**LINES, split=2, concurrency=1)
    again = pickle.loads(pickle.dumps(scan))
    assert again.query == scan.query
    table = again.collect()
    assert (table.report.pages, sandbox.stats.data_requests) == (4, 4)
    assert_frame_equal(table.to_pandas(), siteline.Client().read(**SIX_HOURS).to_pandas())


def failed(sandbox, client, read=2, **change):
    """Returns the error of a read that the service rejects after `read` pages."""
    sandbox.fault(on="data", status=403, skip=read, times=99)
    with pytest.raises(siteline.errors.SitelineError) as caught:
        client.read(**{**LINES, "concurrency": 1, **change})
    sandbox.clear_faults()
    return caught.value


@pytest.mark.parametrize("line", [["L1", "L2"], {"L2", "L1"}, ("L2", "L1")])
@pytest.mark.parametrize("read", [1, 2, 3])
def test_another_process_continues_all_chains(sandbox, line, read):
    client = sandbox.client()
    error = failed(sandbox, client, read)
    bookmark, partial = pickle.loads(pickle.dumps((error.bookmark, error.partial)))
    assert bookmark == error.bookmark
    assert siteline.types.Bookmark.from_bytes(bookmark.to_bytes()) == bookmark
    rest = client.scan(**{**LINES, "line": line}).resume(bookmark, onto=partial)
    table, requests = spent(client, rest.collect)
    assert (requests, table.report.pages, table.report.resumed_after_pages) == (4 - read, 4, 0)
    assert_frame_equal(table.to_pandas(), client.read(**SIX_HOURS).to_pandas())
    bare = client.scan(**{**LINES, "line": line}).resume(bookmark).collect()
    assert (bare.report.pages, bare.report.resumed_after_pages) == (4 - read, read)
