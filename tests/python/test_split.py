"""Parts of a scan, and several scans at once: the same points, also after failures."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import siteline
from kit.ranges import HOURLY
from siteline.testing import Variant


@pytest.mark.parametrize(("end_inclusive", "order"), [(False, "series"), (True, "time")])
def test_parts_read_at_once_equal_the_complete_scan(end_inclusive, order):
    with siteline.Sandbox(
        now="2026-11-20T00:00:00Z", variant=Variant(end_inclusive=end_inclusive, order=order)
    ) as sandbox:
        client = sandbox.client()
        scan = client.scan(**HOURLY, page_size=50)
        with ThreadPoolExecutor(8) as pool:
            tables = list(pool.map(siteline.Scan.collect, scan.split(8)))
        assert [len(table) for table in tables] == [36 + 12 * end_inclusive] * 8
        rows = {record for table in tables for record in table.records(named=True)}
        assert sorted(rows) == list(scan.collect().records(named=True))
        assert sandbox.stats.token_requests == 1
        # A page of a part has 36 points, or 48.
        assert client.allowance.used == sandbox.stats.data_requests == 8 + 6


def test_a_client_plans_by_the_pages_it_has_read(sandbox):
    client = sandbox.client(daily_allowance=100)
    week = client.scan(**{**HOURLY, "end": "2026-11-08T00:00Z"}, page_size=100)
    unknown = client.plan(week)
    assert (unknown.pages, unknown.fits, unknown.kind) == (None, None, "scan")
    assert "number of pages unknown" in str(unknown)
    client.scan(**HOURLY, page_size=100).collect()
    plan = client.plan(week)
    assert plan.pages == 21
    assert plan.fits
    assert plan.allowance.left == 97
    days = client.plan(week.split("1d"))
    assert [task.pages for task in days.tasks] == [3] * 7
    hours = client.plan(part for part in week.split(84))
    assert hours.pages == 84
    assert "84 pages expected" in repr(hours)
    lines = str(hours).split("\n")
    assert lines[2] == "  2026-11-01 00:00 to 2026-11-01 02:00: 1 page"
    assert lines[-1] == "  … and 72 more"
    assert len(lines) == 2 + 12 + 1
    assert "72 more chains" in hours._repr_html_()
    # A collected scan costs nothing, an unfinished one costs the rest.
    parts = week.split("1d")
    assert sum(part.collect().report.pages for part in parts[:2]) == 6
    assert [task.pages for task in client.plan(parts).tasks] == [0, 0, 3, 3, 3, 3, 3]
    assert client.plan(parts[:2]).fits
    rest = week.resume(next(week.pages()).bookmark)
    assert client.plan(rest).pages == client.plan(week).pages - 1
    with pytest.raises(siteline.errors.AllowanceExhausted):
        client.plan(week.split(168)).raise_for_allowance()
    assert client.plan([week, client.scan(site="S2", start=None)]).pages is None
    with pytest.raises(siteline.errors.QueryError, match=r"siteline\.Scan"):
        client.plan([week, "S1"])
    for option in ({"until": HOURLY["end"]}, {"reread": [(HOURLY["start"], HOURLY["end"])]}):
        with pytest.raises(siteline.errors.QueryError, match="of feeds"):
            client.plan(week, **option)
