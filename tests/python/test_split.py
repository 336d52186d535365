"""Parts of a scan, and several scans at once: the same points, also after failures."""

import asyncio
import contextlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import siteline
from kit.ranges import HOURLY
from kit.waiting import wait_until_async
from siteline.testing import Variant

# Splitting


def test_parts_adjoin_and_cover_the_range(client, sandbox):
    scan = client.scan(**HOURLY)
    for by in (1, 2, 5, 24, "1h", "5h", timedelta(hours=7), "2d"):
        parts = scan.split(by)
        assert parts[0].query.start == scan.query.start
        assert parts[-1].query.end == scan.query.end
        for before, after in itertools.pairwise(parts):
            assert before.query.end == after.query.start
        assert {part.query.interval_seconds for part in parts} == {3600}
    assert [part.query.start.hour for part in scan.split("7h")] == [0, 7, 14, 21]
    assert sandbox.stats.data_requests == 0
    assert sandbox.stats.token_requests == 0


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (0, "by=0 is not a whole number of 1 or more"),
        (-3, "by=-3"),
        (True, "by=True"),
        (2.5, "by=2.5 is neither how many parts"),
        (3600.0, "a timedelta"),
        (25, "25 parts are more than the 24 buckets of 3600 s"),
        ("30m", "cut through buckets"),
        ("90m", "cut through buckets"),
        (timedelta(seconds=3600.5), "cut through buckets"),
        ("day", "by="),
        (None, "by=None is neither how many parts"),
    ],
)
def test_an_invalid_split_is_refused(client, by, message):
    with pytest.raises(siteline.errors.QueryError) as caught:
        client.scan(**HOURLY).split(by)
    assert message in str(caught.value)


# Several scans at once


def read_at_once(scans):
    with ThreadPoolExecutor(len(scans)) as pool:
        return list(pool.map(siteline.Scan.collect, scans))


@pytest.mark.parametrize(("end_inclusive", "order"), [(False, "series"), (True, "time")])
def test_parts_read_at_once_equal_the_complete_scan(end_inclusive, order):
    with siteline.Sandbox(
        now="2026-11-20T00:00:00Z", variant=Variant(end_inclusive=end_inclusive, order=order)
    ) as sandbox:
        client = sandbox.client()
        scan = client.scan(**HOURLY, page_size=50)
        tables = read_at_once(scan.split(8))
        assert [len(table) for table in tables] == [36 + 12 * end_inclusive] * 8
        rows = {record for table in tables for record in table.records(named=True)}
        assert sorted(rows) == list(scan.collect().records(named=True))
        assert sandbox.stats.token_requests == 1
        # A page of a part has 36 points, or 48.
        assert client.allowance.used == sandbox.stats.data_requests == 8 + 6


def test_callers_of_one_scan_share_its_read(client, sandbox):
    scan = client.scan(**HOURLY, page_size=50)
    tables = read_at_once([scan] * 4)
    assert all(table is tables[0] for table in tables)
    assert sandbox.stats.data_requests == 6


def test_a_failed_part_leaves_the_others_alone(client, sandbox):
    parts = client.scan(**HOURLY, page_size=20).split(4)
    parts[0].collect()
    sandbox.fault(on="data", status=503, skip=2, times=99)

    def read(part):
        with contextlib.suppress(siteline.errors.ServiceUnavailable):
            part.collect()
        return part.partial

    with ThreadPoolExecutor(3) as pool:
        kept = list(pool.map(read, parts))
    assert kept[0] is parts[0].collect()
    assert sum(table.report.pages for table in kept if table) == 4 + 2
    sandbox.clear_faults()
    spent = client.allowance.used
    assert sum(len(part.collect()) for part in parts) == len(sandbox.expected(**HOURLY))
    assert client.allowance.used - spent == 3 * 4 - 2


# asyncio


def test_async_scans_are_read_in_tasks(sandbox):
    async def read():
        async with sandbox.async_client() as client:
            scan = client.scan(**HOURLY, page_size=50)
            parts = scan.split("6h")
            assert all(isinstance(part, siteline.types.AsyncScan) for part in parts)
            tables = await asyncio.gather(*[part.collect() for part in parts])
            assert await parts[1].collect() is tables[1]
            rows = [row for table in tables for row in table.records(named=True)]
            return sorted(rows), list((await scan.collect()).records(named=True))

    rows, whole = asyncio.run(read())
    assert rows == whole
    assert sandbox.stats.token_requests == 1


@pytest.mark.parametrize("reported", [None, []])
def test_cancelled_and_failed_tasks_continue(sandbox, reported):
    callback = None if reported is None else reported.append

    async def cancelled(part):
        with pytest.raises(asyncio.CancelledError) as caught:
            await part.collect()
        assert caught.value.scan is part

    async def read():
        async with sandbox.async_client() as client:
            parts = client.scan(**HOURLY, page_size=20, progress=callback).split(4)
            sandbox.fault(on="data", skip=4, times=99, hang=True)
            tasks = [asyncio.ensure_future(cancelled(part)) for part in parts]
            await wait_until_async(lambda: sandbox.stats.data_requests > 4)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks)
            sandbox.clear_faults()
            return await asyncio.gather(*[part.collect() for part in parts])

    assert sum(map(len, asyncio.run(read()))) == len(sandbox.expected(**HOURLY))
    if reported is not None:
        assert sum(now.done for now in reported) == 4


# Planning


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
    shown = hours._repr_html_()
    assert "72 more chains" in shown
    assert "84 pages" in shown
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
    for option in (
        {"until": HOURLY["end"]},
        {"reread": [(HOURLY["start"], HOURLY["end"])]},
    ):
        with pytest.raises(siteline.errors.QueryError, match="of feeds"):
            client.plan(week, **option)
