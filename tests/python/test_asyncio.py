"""asyncio: cancelled, failed and shared iterators lose no items and do not end early."""

import asyncio
import gc
import logging

import pytest
import siteline
from kit.ranges import HOURLY


def size(item):
    """The number of points of an item: a page, or one point."""
    return len(item) if isinstance(item, siteline.Page) else 1


async def take_all(items, got):
    async for item in items:
        got.append(item)


def key(record):
    return tuple(record.values())


@pytest.mark.fault("R5")
@pytest.mark.parametrize("way", ["pages", "records"])
def test_an_iterator_that_was_cancelled_or_failed_continues_where_it_stopped(sandbox, way):
    async def read():
        async with sandbox.async_client() as client:
            items = getattr(client.data(**HOURLY, page_size=50), way)()
            got = [await anext(items)]
            sandbox.fault(on="data", hang=True)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(take_all(items, got), 0.3)
            sandbox.clear_faults()
            sandbox.fault(on="data", status=503, times=4, skip=1)
            with pytest.raises(siteline.ServiceUnavailable):
                await take_all(items, got)
            await take_all(items, got)
            return sum(map(size, got))

    assert asyncio.run(read()) == len(sandbox.truth(**HOURLY))


@pytest.mark.parametrize("way", ["pages", "records"])
def test_tasks_share_an_iterator_and_each_item_is_returned_once(sandbox, way):
    async def count(items):
        got = []
        async for item in items:
            got.append(item)
            await asyncio.sleep(0)
        return got

    async def read():
        async with sandbox.async_client() as client:
            items = getattr(client.data(**HOURLY, page_size=50), way)()
            shares = await asyncio.gather(*(count(items) for _ in range(4)))
        return [item for share in shares for item in share]

    got = asyncio.run(read())
    assert sum(map(size, got)) == len(sandbox.truth(**HOURLY))
    if way == "records":
        assert len({key(record) for record in got}) == len(got)


@pytest.mark.fault("R6")
def test_a_task_without_references_is_not_collected_while_it_waits(sandbox):
    async def ask(client, answered):
        answered.set_result(sorted(await client.discover()))

    async def begin():
        async with sandbox.async_client() as client:
            answered = asyncio.get_running_loop().create_future()
            asyncio.create_task(ask(client, answered))  # noqa: RUF006 (that is the point)
            await asyncio.sleep(0)
            gc.collect()
            return await asyncio.wait_for(answered, 60)

    assert asyncio.run(begin()) == ["sites", "subject"]


def test_records_may_be_named(sandbox):
    async def read():
        async with sandbox.async_client() as client:
            return [
                record async for record in client.data(**HOURLY, page_size=50).records(named=True)
            ]

    named = asyncio.run(read())
    assert type(named[0]) is siteline.Record
    assert len(named) == len(sandbox.truth(**HOURLY))


def test_a_log_handler_that_raises_stop_iteration_leaves_no_task_waiting(sandbox):
    class Stopping(logging.Handler):
        def emit(self, record):
            raise StopIteration

    async def ask():
        async with sandbox.async_client() as client:
            return await asyncio.wait_for(client.discover(), 60)

    logger, handler = logging.getLogger("siteline.http"), Stopping()
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        with pytest.raises(RuntimeError, match="StopIteration") as caught:
            asyncio.run(ask())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert isinstance(caught.value.__cause__, StopIteration)
