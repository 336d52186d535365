"""Syncs into a custom store with coroutine methods."""

import asyncio
import contextlib
import threading

import pytest
import siteline
from kit.feeds import make_feed, true_points
from kit.memory_store import LockedStore, MemoryStore


class AsyncMemoryStore(MemoryStore):
    """Records the beginning and the end of each call, and its exception."""

    def __init__(self):
        super().__init__()
        self.calls = []

    async def state(self, feed):
        return await self.calling("state", super().state, feed)

    async def apply(self, feed, page, state):
        return await self.calling("apply", super().apply, feed, page, state)

    async def calling(self, name, call, *arguments):
        self.calls.append(f"+{name}")
        try:
            await self.work(name)
            return call(*arguments)
        except BaseException as error:
            self.calls.append(type(error).__name__)
            raise
        finally:
            self.calls.append(f"-{name}")

    async def work(self, name):
        await asyncio.sleep(0)


def run_sync(sandbox, store, feed, **options):
    async def main():
        async with sandbox.async_client() as client:
            return await client.sync(feed, store, **options)

    return asyncio.run(main())


def assert_next_sync_completes(sandbox, target, feed):
    report = run_sync(sandbox, target, feed)
    assert report.complete
    assert target.points() == true_points(sandbox, report.read_through)


def test_its_methods_are_called_in_order_one_at_a_time_without_blocking_the_loop(sandbox):
    target, ticks, reported = AsyncMemoryStore(), [], []

    async def main():
        async def tick():
            while True:
                ticks.append(len(target.pages))
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        async with sandbox.async_client() as client:
            report = await client.sync(make_feed(page_size=700), target, progress=reported.append)
        ticking.cancel()
        return report

    report = asyncio.run(main())
    assert target.sequences == list(range(1, report.pages + 1))
    assert [now.pages for now in reported if not now.done] == list(range(1, len(reported)))
    begun = target.calls[::2]
    assert target.calls[1::2] == [one.replace("+", "-") for one in begun], "one at a time"
    assert target.threads == {threading.get_ident()}
    assert set(ticks) >= set(range(report.pages)), "the loop runs while each page is applied"


class Trouble(Exception):
    """An exception of the user's code."""


@pytest.mark.parametrize(("method", "pages"), [("state", 0), ("apply", 2)])
@pytest.mark.parametrize("raised", [Trouble("the database went away"), asyncio.CancelledError()])
def test_its_exceptions_are_raised_and_the_next_sync_continues(sandbox, raised, method, pages):
    async def fail(name):
        if name == method and len(target.pages) == pages:
            del target.work
            raise raised

    target, feed = AsyncMemoryStore(), make_feed(page_size=700)
    target.work = fail
    with pytest.raises(type(raised)) as caught:
        run_sync(sandbox, target, feed)
    assert caught.value is raised or isinstance(raised, asyncio.CancelledError)
    assert len(target.pages) == pages
    assert_next_sync_completes(sandbox, target, feed)


def test_a_cancelled_sync_waits_for_apply(sandbox):
    target, feed = AsyncMemoryStore(), make_feed(page_size=700)

    async def main():
        going_on = asyncio.Event()

        async def slowly(name):
            if name == "apply" and len(target.pages) == 1:
                await going_on.wait()

        target.work = slowly
        async with sandbox.async_client() as client:
            task = asyncio.create_task(client.sync(feed, target))
            while target.calls.count("+apply") < 2:
                await asyncio.sleep(0)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
            assert not task.done()
            going_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert target.calls[-1] == "-apply"
            assert "CancelledError" not in target.calls
            assert len(target.pages) == 2

    asyncio.run(main())
    assert_next_sync_completes(sandbox, target, feed)
    assert target.sequences[:3] == [1, 2, 3]


def test_when_the_loop_ends_apply_is_cancelled_and_the_page_is_not_stored(sandbox):
    target, feed = AsyncMemoryStore(), make_feed(page_size=700)

    async def hanging(name):
        if name == "apply" and len(target.pages) == 2:
            await asyncio.Event().wait()

    target.work = hanging

    async def main():
        async with sandbox.async_client() as client:
            task = asyncio.create_task(client.sync(feed, target))
            while target.calls.count("+apply") < 3:
                await asyncio.sleep(0)
        return task

    task = asyncio.run(main())
    assert task.cancelled()
    assert target.calls[-2:] == ["CancelledError", "-apply"]
    assert len(target.pages) == 2
    del target.work
    assert_next_sync_completes(sandbox, target, feed)


TWO = [make_feed(), make_feed("line-1", line="L1")]


class Locked(AsyncMemoryStore):
    """Records when feeds are locked and unlocked."""

    def __init__(self):
        super().__init__()
        self.locks = []

    @contextlib.asynccontextmanager
    async def lock(self, feed):
        self.locks.append(f"+{feed}")
        try:
            await asyncio.sleep(0)
            yield
        finally:
            await asyncio.sleep(0)
            self.locks.append(f"-{feed}")


class LockedLater(Locked):
    async def lock(self, feed):
        await asyncio.sleep(0)
        return super().lock(feed)


def run_blocking(sandbox, store, feed, **options):
    return sandbox.client().sync(feed, store, **options)


@pytest.mark.parametrize(
    ("run", "kind"),
    [(run_blocking, LockedStore), *((run_sync, one) for one in (LockedStore, Locked, LockedLater))],
)
def test_a_lock_is_held_during_the_sync_and_always_released(sandbox, run, kind):
    target, seen = kind(), []
    run(sandbox, target, TWO, progress=lambda _: seen.append(list(target.locks)))
    assert target.locks == ["+line-1", "+line-2", "-line-2", "-line-1"]
    sandbox.clock.advance("1h")
    sandbox.fault(on="data", status=400, error="invalid_request", times=9)
    with pytest.raises(siteline.errors.RequestRejected):
        run(sandbox, target, TWO)
    assert len(target.locks) == 8
    assert not set(target.locks[-2:]) & {"+line-1", "+line-2"}
    assert all(one == ["+line-1", "+line-2"] for one in seen)
    assert seen


def test_a_sync_that_waits_for_a_lock_can_be_cancelled_and_releases_its_other_locks(sandbox):
    target = Locked()

    async def main():
        held_elsewhere = asyncio.Lock()
        await held_elsewhere.acquire()
        free = target.lock
        target.lock = lambda feed: held_elsewhere if feed == "line-2" else free(feed)
        async with sandbox.async_client() as client:
            task = asyncio.create_task(client.sync(TWO, target))
            while target.locks != ["+line-1"]:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert target.locks == ["+line-1", "-line-1"]
            held_elsewhere.release()
            for _ in range(20):
                await asyncio.sleep(0)
            assert not held_elsewhere.locked()
            return await client.sync(TWO, target)

    assert asyncio.run(main()).complete
