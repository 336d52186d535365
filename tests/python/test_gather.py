"""Split and gathered scans: the same points for the same allowance, also after failures."""

import asyncio
import copy
import itertools
import os
import pickle
import threading
from datetime import timedelta

import pyarrow as pa
import pytest
import siteline
from kit import systems
from kit.ranges import HOURLY
from kit.waiting import wait_until, wait_until_async
from pandas.testing import assert_frame_equal
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


# Gathering


@pytest.mark.parametrize(("end_inclusive", "order"), [(False, "series"), (True, "time")])
def test_gathered_parts_equal_the_complete_scan(end_inclusive, order):
    with siteline.Sandbox(
        now="2026-11-20T00:00:00Z", variant=Variant(end_inclusive=end_inclusive, order=order)
    ) as sandbox:
        client = sandbox.client()
        scan = client.scan(**HOURLY, page_size=50)
        parts = scan.split(8)
        gathered = client.gather(parts, concurrency=3)
        assert [len(table) for table in gathered] == [36 + 12 * end_inclusive] * 8
        assert_frame_equal(gathered.table.to_pandas(), scan.to_pandas())
        report = gathered.table.report
        assert report.repeated == 12 * 7 * end_inclusive
        assert report.revised == 0
        attrs = gathered.table.to_pandas().attrs["siteline"]
        assert attrs["query"] == scan.to_pandas().attrs["siteline"]["query"]
        assert attrs["pages"] == 8
        spent = sandbox.stats.data_requests
        # Each part keeps its table, so a second gather makes no request.
        again = client.gather(parts)
        assert all(table is part.collect() for table, part in zip(again, parts, strict=True))
        assert sandbox.stats.data_requests == spent


def test_gathered_tables_are_merged(client):
    scan = client.scan(**HOURLY)
    gathered = client.gather(scan.split(3))
    whole = scan.collect()
    assert len(gathered) == 3
    assert gathered[-1] is list(gathered)[2]
    assert gathered[:2] == tuple(gathered)[:2]
    with pytest.raises(IndexError):
        gathered[3]
    assert repr(gathered) == "<Gathered 3 tables, 288 points, 3 pages>"
    assert gathered.table is gathered.table
    assert gathered.table.to_polars().equals(whole.to_polars())
    assert gathered.table.to_arrow().equals(whole.to_arrow())
    assert pa.schema(gathered.table) == pa.schema(whole)
    assert list(gathered.table.records()) == list(whole.records())
    assert next(gathered.table.records(named=True)) == next(whole.records(named=True))
    assert "Gathered" in gathered._repr_html_()
    assert "3 tables" in gathered._repr_html_()
    assert copy.copy(gathered)[0] is gathered[0]
    again = pickle.loads(pickle.dumps(gathered))
    assert again.table.to_polars().equals(gathered.table.to_polars())
    assert repr(again) == repr(gathered)


def test_at_most_concurrency_scans_are_read_at_a_time(client, sandbox):
    client.discover()
    sandbox.fault(on="data", times=99, hang=True)
    parts = client.scan(**HOURLY).split(10)

    def close():
        try:
            wait_until(lambda: sandbox.stats.data_requests >= 4)
        finally:
            client.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(siteline.errors.ClosedError) as caught:
        client.gather(parts, concurrency=4)
    closing.join()
    assert sandbox.stats.data_requests == 4
    assert caught.value.scan_index in range(4)


def test_invalid_arguments_are_refused_before_any_request(client, sandbox):
    scan = client.scan(**HOURLY)
    other = sandbox.client().scan(**HOURLY)
    for scans, message in [
        ([], "nothing to gather"),
        (scan, "is a list of this client's scans"),
        ("scans", "is a list of this client's scans"),
        ([scan, "S1"], "is a list of this client's scans"),
        ([scan, other], "scans[1] is of another client"),
        ([scan, scan], "scans[1] is the same scan as scans[0]"),
    ]:
        with pytest.raises(siteline.errors.QueryError) as caught:
            client.gather(scans)
        assert message in str(caught.value)
    for concurrency in (0, -1, True, "2"):
        with pytest.raises(siteline.errors.QueryError, match="concurrency="):
            client.gather([scan], concurrency=concurrency)
    assert sandbox.stats.data_requests == 0
    assert len(client.gather(iter([scan]))) == 1


# Failures


def test_the_first_error_has_all_scans_and_gathering_them_continues(client, sandbox):
    scan = client.scan(**HOURLY, page_size=20)
    parts = scan.split(4)
    collected = parts[0].collect()
    sandbox.fault(on="data", status=503, skip=2, times=99)
    with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
        client.gather(parts, concurrency=3)
    error = caught.value
    failed = error.scan_index
    assert len(error.bookmarks) == len(error.partials) == len(error.scans) == 4
    assert error.bookmark is error.bookmarks[failed]
    assert error.partial is error.partials[failed]
    assert error.partials[0] is collected
    assert error.bookmarks[0] is None
    for bookmark, partial in list(zip(error.bookmarks, error.partials, strict=True))[1:]:
        assert (bookmark is None) == (partial is None)
        assert bookmark is None or bookmark.pages == partial.report.pages
    sandbox.clear_faults()
    gathered = client.gather(error.scans)
    assert_frame_equal(gathered.table.to_pandas(), scan.to_pandas())
    assert gathered.table.report.resumed_after_pages == 0


def test_the_bookmarks_of_an_error_can_be_resumed_and_it_can_be_pickled(client, sandbox):
    parts = client.scan(**HOURLY, page_size=20).split(2)
    sandbox.fault(on="data", status=400, skip=3, times=99)
    with pytest.raises(siteline.SitelineError) as caught:
        client.gather(parts, concurrency=2)
    sandbox.clear_faults()
    error = caught.value
    again = [
        part if bookmark is None else part.resume(bookmark, onto=partial)
        for part, bookmark, partial in zip(parts, error.bookmarks, error.partials, strict=True)
    ]
    assert len(client.gather(again).table) == len(sandbox.expected(**HOURLY))
    back = pickle.loads(pickle.dumps(error))
    assert (back.bookmark, back.bookmarks, back.partials) == (None, (), ())
    assert (back.scan_index, list(back.scans), list(back.partials)) == (error.scan_index, [], [])


# Progress


def test_an_exception_of_a_callback_ends_the_gather_and_loses_nothing(client, sandbox):
    class Stop(Exception):
        pass

    def stop(now):
        raise Stop

    scan = client.scan(**HOURLY, page_size=20, progress=stop)
    parts = scan.split(3)
    with pytest.raises(Stop):
        client.gather(parts, concurrency=2)
    for _ in range(40):
        try:
            gathered = client.gather(parts, concurrency=1)
        except Stop:
            continue
        break
    assert_frame_equal(gathered.table.to_pandas(), client.scan(**HOURLY).to_pandas())


@systems.FORK
def test_a_gather_whose_callback_forks_belongs_to_the_parent(client):
    children = []

    def fork(now):
        if not children:
            children.append(os.fork())

    parts = client.scan(**HOURLY, page_size=20, progress=fork).split(3)
    try:
        gathered = client.gather(parts)
    except siteline.errors.ForkError:
        os._exit(3 if children == [0] else 4)
    if children == [0]:
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 3
    assert len(gathered.table) == 288


# asyncio


def test_async_scans_are_split_and_gathered(sandbox):
    async def read():
        async with sandbox.async_client() as client:
            scan = client.scan(**HOURLY, page_size=50)
            parts = scan.split("6h")
            assert all(isinstance(part, siteline.types.AsyncScan) for part in parts)
            gathered = await client.gather(parts, concurrency=2)
            assert await parts[1].collect() is gathered[1]
            for refused in (scan, [scan, scan], []):
                with pytest.raises(siteline.errors.QueryError):
                    await client.gather(refused)
            return gathered.table.to_pandas(), await scan.to_pandas()

    assert_frame_equal(*asyncio.run(read()))


@pytest.mark.parametrize("reported", [None, []])
def test_an_async_gather_that_was_cancelled_or_failed_continues(sandbox, reported):
    callback = None if reported is None else reported.append

    async def read():
        async with sandbox.async_client() as client:
            parts = client.scan(**HOURLY, page_size=20, progress=callback).split(4)
            sandbox.fault(on="data", skip=6, times=99, hang=True)
            gathering = asyncio.ensure_future(client.gather(parts))
            await wait_until_async(lambda: sandbox.stats.data_requests > 6)
            gathering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gathering
            sandbox.clear_faults()
            sandbox.fault(on="data", status=503, skip=2, times=99)
            with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
                await client.gather(parts)
            error = caught.value
            sandbox.clear_faults()
            # Each keeps its pages, the one that failed too.
            assert all(one is part for one, part in zip(error.scans, parts, strict=True))
            return len((await client.gather(error.scans)).table)

    assert asyncio.run(read()) == len(sandbox.expected(**HOURLY))
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
    gathered = client.gather(parts[:2])
    assert sum(table.report.pages for table in gathered) == 6
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
