"""asyncio: cancelled, failed and shared iterators lose no items and do not end early."""

import asyncio
import contextvars
import gc
import threading

import pytest
import siteline
from kit.logs import handling
from kit.ranges import HOURLY
from kit.reading import count_points
from kit.waiting import wait_until_async


async def take_all(items, got):
    async for item in items:
        got.append(item)


@pytest.mark.parametrize("way", ["pages", "records"])
def test_an_iterator_that_was_cancelled_or_failed_continues_where_it_stopped(sandbox, way):
    async def read():
        async with sandbox.async_client() as client:
            items = getattr(client.scan(**HOURLY, page_size=50), way)()
            got = [await anext(items)]
            sandbox.fault(on="data", hang=True)
            before = sandbox.stats.data_requests
            task = asyncio.create_task(take_all(items, got))
            await wait_until_async(lambda: sandbox.stats.data_requests > before)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            sandbox.clear_faults()
            sandbox.fault(on="data", status=503, times=4, skip=1)
            with pytest.raises(siteline.errors.ServiceUnavailable):
                await take_all(items, got)
            await take_all(items, got)
            return sum(map(count_points, got))

    assert asyncio.run(read()) == len(sandbox.expected(**HOURLY))


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


def test_log_handlers_run_on_the_callers_loop(sandbox):
    """They also run while the call waits. They have the context variables of the call."""
    request, seen = contextvars.ContextVar("request"), []

    def emit(record):
        asyncio.get_running_loop()
        seen.append((request.get(), threading.get_ident()))

    async def ask(client, name):
        request.set(name)
        await client.discover()

    async def main():
        async with sandbox.async_client() as client:
            await client.discover()
            sandbox.fault(on="discovery", nth=1, status=503)
            sandbox.fault(on="discovery", nth=2, hang=True)
            with handling(emit, "siteline.http"):
                waiting = asyncio.create_task(ask(client, "first"))
                await wait_until_async(lambda: seen)
                assert not waiting.done()
                sandbox.clear_faults()
                await ask(client, "second")
                waiting.cancel()

    asyncio.run(main())
    assert {thread for _, thread in seen} == {threading.get_ident()}
    assert {name for name, _ in seen} == {"first", "second"}
