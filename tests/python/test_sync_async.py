"""`AsyncClient.sync`: the loop is not blocked; a cancelled sync leaves the store consistent."""

import asyncio
import gc
import pickle

import pytest
import siteline
from kit.feeds import make_feed, stored_points, true_points
from kit.memory_store import MemoryStore
from siteline.aio import _completed


def test_a_sync_gives_the_report_and_points_of_the_blocking_client(sandbox, store, tmp_path):
    async def main():
        async with sandbox.async_client() as client:
            report = await client.sync(make_feed(), store)
            plan = await client.plan(make_feed(), store)
            scan = client.data(site="S1", line="L2", start="2026-11-15T00:00Z", interval="5m")
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


def test_a_sync_of_so_many_pages_ends_and_the_next_one_continues(sandbox, store):
    async def main():
        async with sandbox.async_client() as client:
            feed, reports = make_feed(page_size=1000), []
            while not reports or not reports[-1].complete:
                reports.append(await client.sync(feed, store, max_pages=4))
            return reports

    *bounded, last = asyncio.run(main())
    assert {(one.pages, one.ended_by) for one in bounded} == {(4, "max_pages")}
    assert sum(one.pages for one in [*bounded, last]) == sandbox.stats["data_requests"]
    assert stored_points(store) == true_points(sandbox, last.read_through)


def test_progress_is_reported_in_the_event_loop(sandbox, store):
    reported = []

    async def main():
        async with sandbox.async_client() as client:
            current = asyncio.current_task()

            def on_progress(now):
                assert asyncio.current_task() is current
                reported.append(now.pages)

            return await client.sync(make_feed(page_size=1000), store, progress=on_progress)

    report = asyncio.run(main())
    assert reported == list(range(1, report.pages + 1))


def test_several_syncs_run_concurrently_and_do_not_block_the_loop(sandbox, store):
    async def main():
        async with sandbox.async_client() as client:
            lines = [make_feed(f"line-{n}", line=f"L{n}", page_size=500) for n in (1, 2)]
            syncs = asyncio.gather(*(client.sync(feed, store) for feed in lines))
            steps = 0
            while not syncs.done():
                steps += 1
                await asyncio.sleep(0)
            return steps, await syncs

    steps, reports = asyncio.run(main())
    assert all(report.complete for report in reports)
    assert steps > sum(report.pages for report in reports)


@pytest.mark.parametrize("moment", ["waiting", "writing", "beginning"])
def test_a_cancelled_sync_keeps_committed_pages_and_unlocks_the_feed(sandbox, store, moment):
    async def main():
        async with sandbox.async_client() as client:
            feed = make_feed(page_size=500)
            pages = []
            if moment == "waiting":
                sandbox.fault(on="data", skip=3, times=99, hang=True)
            task = asyncio.create_task(client.sync(feed, store, progress=pages.append))
            if moment == "beginning":
                await asyncio.sleep(0)
            elif moment == "writing":
                while len(pages) < 3:
                    await asyncio.sleep(0)
            else:
                while len(pages) < 3:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            sandbox.clear_faults()
            before = len(store.points(feed, unread="keep")) if "line-2" in store.feeds else 0
            assert before % 500 == 0
            assert before >= 500 * len(pages)
            # The feed is unlocked at once.
            return before, await client.sync(feed, store)

    before, report = asyncio.run(main())
    assert report.complete
    assert before + report.inserted == len(store.points("line-2"))
    assert stored_points(store) == true_points(sandbox, report.read_through)


@pytest.mark.parametrize("outcome", ["started", siteline.StoreBusy("held by another job")])
def test_a_sync_cancelled_twice_ends_only_after_its_current_step(outcome):
    async def main():
        handled, undone = [], []
        event_loop = asyncio.get_running_loop()
        event_loop.set_exception_handler(lambda _, about: handled.append(about))
        step = event_loop.create_future()
        task = asyncio.create_task(_completed(step, undone.append))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not task.done()
        step.set_result(outcome) if outcome == "started" else step.set_exception(outcome)
        with pytest.raises(asyncio.CancelledError):
            await task
        del step
        gc.collect()
        await asyncio.sleep(0)
        return handled, undone

    assert asyncio.run(main()) == ([], ["started"] if outcome == "started" else [])


def test_a_sync_cancelled_repeatedly_unlocks_the_feed(sandbox, store):
    async def main():
        async with sandbox.async_client() as client:
            feed = make_feed(page_size=500)
            for moment in range(12):
                task = asyncio.create_task(client.sync(feed, store))
                for _ in range(moment):
                    await asyncio.sleep(0.001)
                if task.done():
                    break
                for _ in range(4):
                    task.cancel()
                    await asyncio.sleep(0)
                with pytest.raises(asyncio.CancelledError):
                    await task
                await client.sync(feed, store, until="2026-11-15T00:00Z")
            return await client.sync(feed, store)

    report = asyncio.run(main())
    assert stored_points(store) == true_points(sandbox, report.read_through)


def test_a_timeout_ends_a_sync_and_the_next_one_continues(sandbox, store):
    async def main():
        async with sandbox.async_client() as client:
            sandbox.fault(on="data", skip=2, times=99, hang=True)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.sync(make_feed(page_size=500), store), 0.5)
            sandbox.clear_faults()
            return await client.sync(make_feed(page_size=500), store)

    assert asyncio.run(main()).complete
    assert len(store.points("line-2")) % 500 != 1


def test_an_exception_of_a_custom_store_is_raised_unchanged(sandbox):
    raised = LookupError("the table is gone")

    class Failing(MemoryStore):
        def apply(self, feed, page, state):
            if page is not None and page.sequence == 2:
                raise raised
            return super().apply(feed, page, state)

    async def main():
        async with sandbox.async_client() as client:
            await client.sync(make_feed(page_size=500), Failing())

    with pytest.raises(LookupError) as caught:
        asyncio.run(main())
    assert caught.value is raised


def test_arguments_are_those_of_the_client(sandbox, store):
    async def main():
        async with sandbox.async_client() as client:
            with pytest.raises(siteline.QueryError):
                await client.sync([], store)
            with pytest.raises(TypeError):
                await client.sync(make_feed(), store, shape="items")
            with pytest.raises(TypeError, match=r"deadlin'.*it takes until, .*deadline"):
                await client.sync(make_feed(), store, deadlin="1h")
            with pytest.raises(TypeError, match=r"deadline"):
                await client.plan(make_feed(), store, deadline="1h")
            report = await client.sync(make_feed(), store, until="2026-11-16T00:00Z", deadline="1h")
            await client.sync(make_feed(), store, reread=("2026-11-15T00:00Z", "2026-11-15T06:00Z"))
            return report

    assert asyncio.run(main()).read_through.day == 16
