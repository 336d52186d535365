"""`AsyncClient.sync`: the loop is not blocked; a cancelled sync leaves the store consistent."""

import asyncio
import pickle

import pytest
import siteline
from kit.feeds import make_feed, stored_points, true_points


def test_a_sync_gives_the_report_and_points_of_the_blocking_client(sandbox, store, tmp_path):
    async def main():
        async with sandbox.async_client() as client:
            report = await client.sync(make_feed(), store)
            plan = await client.plan(make_feed(), store)
            scan = client.scan(site="S1", line="L2", start="2026-11-15T00:00Z", interval="5m")
            return report, plan, await client.plan(scan, store)

    report, plan, of_scan = asyncio.run(main())
    assert report.complete
    assert plan.tasks == ()
    assert of_scan.pages is not None
    assert stored_points(store) == true_points(sandbox, report.read_through)
    other = siteline.Store(tmp_path / "other.siteline")
    blocking = sandbox.client().sync(make_feed(), other)
    assert {**blocking.to_dict(), "allowance": None} == {**report.to_dict(), "allowance": None}
    assert pickle.loads(pickle.dumps(report)) == report


@pytest.mark.parametrize("moment", ["waiting", "writing", "beginning"])
def test_a_cancelled_sync_keeps_pages_and_unlocks_feeds(sandbox, store, tmp_path, moment):
    async def main():
        async with sandbox.async_client() as client:
            feed = make_feed(page_size=500)
            pages = []
            if moment == "waiting":
                sandbox.fault(on="data", skip=3, times=99, hang=True)
            task = asyncio.create_task(client.sync(feed, store, progress=pages.append))
            await asyncio.sleep(0)
            while len(pages) < 3 and moment != "beginning":
                await asyncio.sleep(0)
            while sandbox.stats.data_requests < 4 and moment == "waiting":
                await asyncio.sleep(0)
            for _ in range(4):
                task.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await task
            sandbox.clear_faults()
            before = len(store.read(feed, unread="keep")) if "line-2" in store.feeds else 0
            assert before >= 500 * len(pages)
            # The feed is unlocked at once.
            return before, await client.sync(feed, store)

    before, report = asyncio.run(main())
    assert report.complete
    whole_pages = {0}
    with siteline.Store(tmp_path / "other.siteline") as other:
        feed = make_feed(page_size=500)
        sandbox.client().sync(feed, other, progress=lambda after: whole_pages.add(after.points))
    assert before in whole_pages
    assert before + report.inserted == len(store.read("line-2"))
    assert stored_points(store) == true_points(sandbox, report.read_through)
