"""What `collect()` has read is given from memory; a new chain is started where it is asked for."""

import asyncio

import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import HOURLY, NOW, SIX_HOURS

PAGES = {**HOURLY, "page_size": 50}
"""288 points on six pages."""


@pytest.fixture
def asked(sandbox):
    """Gives the data requests since the last call."""
    before = 0

    def asked():
        nonlocal before
        before, since = (now := sandbox.stats["data_requests"]), now - before
        return since

    return asked


def values(records):
    return [tuple(record.values()) for record in records]


def test_records_after_collect_cost_no_request(client, asked):
    scan = client.data(**PAGES)
    table = scan.collect()
    assert asked() == 6
    assert values(scan.records()) == values(table.records())
    assert list(scan.records(named=True)) == list(table.records(named=True))
    assert asked() == 0
    assert client.allowance.used == 6


def test_fresh_records_and_pages_are_a_new_chain_also_after_collect(client, asked):
    scan = client.data(**PAGES)
    scan.collect()
    asked()
    assert len(list(scan.records(fresh=True))) == 288
    assert asked() == 6
    assert sum(map(len, scan.pages())) == 288
    assert asked() == 6


def test_every_way_to_the_whole_makes_records_free(sandbox, client, asked):
    for read in (siteline.Scan.to_pandas, siteline.Scan.to_polars, siteline.Scan.to_arrow):
        scan = client.data(**PAGES)
        read(scan)
        asked()
        assert len(list(scan.records())) == 288
        assert asked() == 0
    parts = client.data(**PAGES).split(2)
    client.gather(parts)
    asked()
    assert sum(len(list(part.records())) for part in parts) == 288
    assert asked() == 0


def test_asyncio_gives_collected_records_from_memory(sandbox, asked):
    async def read():
        async with sandbox.async_client() as client:
            scan = client.data(**PAGES)
            table = await scan.collect()
            asked()
            given = [record async for record in scan.records()]
            named = [record async for record in scan.records(named=True)]
            counts = [asked()]
            fresh = [record async for record in scan.records(fresh=True)]
            counts.append(asked())
            again = [record async for record in scan.records(named=True, fresh=True)]
            assert sorted(again) == named
            counts.append(asked())
            return table, given, named, fresh, counts

    table, given, named, fresh, counts = asyncio.run(read())
    assert values(given) == values(table.records())
    assert named == list(table.records(named=True))
    assert (len(fresh), counts) == (288, [0, 6, 6])


def test_other_tasks_get_turns_while_points_come_from_memory(sandbox):
    turns = 0

    async def work():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read():
        async with sandbox.async_client() as client:
            scan = client.data(**{**PAGES, "interval": "1m", "page_size": 10_000})
            await scan.collect()
            task = asyncio.create_task(work())
            points = 0
            async for _ in scan.records():
                points += 1
            task.cancel()
            return points

    points = asyncio.run(read())
    assert points > 10_000
    assert turns >= points // 1_000


@pytest.mark.sandbox(order="time", page_counts="envelopes", envelope_points=1)
def test_a_chain_gives_the_order_of_its_pages_and_memory_that_of_the_table(client):
    scan = client.data(**SIX_HOURS)
    read = values(scan.records())
    times = [row[5] for row in read]
    assert times == sorted(times)
    collected = values(scan.collect().records())
    assert collected == sorted(read)
    assert collected != read
    assert values(scan.records()) == collected
    assert values(scan.records(fresh=True)) == read


def test_a_point_that_came_twice_is_given_once_from_memory(sandbox, client):
    scan = client.data(**SIX_HOURS)
    sandbox.fault(on="data", repeat_cursor=False, status=503, times=1)
    table = scan.collect()
    assert len(table) == len({row[:6] for row in values(scan.records())})


def test_an_interrupted_collect_is_not_complete_so_records_start_a_new_chain(client, asked):
    class Enough(Exception):
        pass

    def stop(progress):
        if progress.pages == 2:
            raise Enough

    scan = client.data(**PAGES, progress=stop)
    with pytest.raises(Enough):
        scan.collect()
    read = asked()
    records = scan.records()
    first = next(records)
    assert (asked(), first["timestamp"].hour) == (1, 0)
    assert 2 <= read <= 3


def test_a_failed_collect_is_not_complete_either(sandbox, client, asked):
    scan = client.data(**PAGES)
    sandbox.fault(on="data", status=400, skip=2, times=1)
    with pytest.raises(siteline.RequestRejected):
        scan.collect()
    asked()
    assert len(list(scan.records())) == 288
    assert asked() == 6


def test_a_resumed_scan_gives_from_memory_what_its_table_has(sandbox, client, asked):
    scan = client.data(**PAGES)
    sandbox.fault(on="data", status=400, skip=2, times=1)
    with pytest.raises(siteline.RequestRejected) as caught:
        scan.collect()
    bookmark, partial = caught.value.bookmark, caught.value.partial
    whole, rest = scan.resume(bookmark, onto=partial), scan.resume(bookmark)
    assert len(list(whole.records())) == len(list(rest.records())) == 188  # the chain goes on here
    whole.collect()
    rest.collect()
    asked()
    assert values(whole.records()) == values(whole.collect().records())
    assert (len(list(whole.records())), len(list(rest.records()))) == (288, 188)
    assert asked() == 0
    assert len(list(whole.records(fresh=True))) == 188
    assert asked() == 4


def test_points_from_memory_are_not_reported_as_progress(client):
    reports = []
    scan = client.data(**SIX_HOURS, progress=reports.append)
    scan.collect()
    assert [report.pages for report in reports] == [1, 2, 3]
    list(scan.records())
    assert len(reports) == 3
    list(scan.records(fresh=True))
    assert len(reports) == 6


@pytest.mark.sandbox(extra_members=True)
def test_extra_columns_are_in_the_dicts_from_memory(client):
    unknown = client.data(**SIX_HOURS).collect().report["unknown_members"]
    name = next(name.rsplit(".", 1)[-1] for name in unknown if "points" in name)
    scan = client.data(**SIX_HOURS, extra_columns=[name])
    read = next(scan.records())
    scan.collect()
    assert list(next(scan.records())) == list(read)
    assert name in read
    assert len(next(scan.records(named=True))) == 10


def test_a_closed_client_still_gives_what_was_collected(client):
    scan = client.data(**SIX_HOURS)
    scan.collect()
    client.close()
    assert len(list(scan.records())) == 72
    with pytest.raises(siteline.ClosedError):
        next(scan.records(fresh=True))


@systems.FORK
def test_a_forked_child_gets_what_its_parent_collected():
    script = f"""
        import os, siteline
        with siteline.Sandbox(now="{NOW}") as sandbox:
            client = sandbox.client()
            scan = client.data(**{SIX_HOURS!r})
            scan.collect()
            child = os.fork()
            if child == 0:
                os._exit(len(list(scan.records())))
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), sandbox.stats["data_requests"])
    """
    assert run_script(script, *FORK_WITH_THREADS) == "72 3"
