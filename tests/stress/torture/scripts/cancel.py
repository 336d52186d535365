"""Cancel an awaited request: URL HOW LOOP."""

import asyncio
import sys
from importlib import import_module

from reader import Reader, await_parent, report


async def end_when_told() -> None:
    """Waits for a line from the parent, in a thread."""
    await asyncio.to_thread(await_parent)
    report("ending")


async def fail_when_told() -> None:
    await end_when_told()
    raise LookupError


async def cancel(reader: Reader) -> None:
    task = asyncio.ensure_future(reader.read_async())
    report("ready")
    await end_when_told()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        report("ended")


async def wait_for(reader: Reader) -> None:
    """Runs into a timeout. The connection is open, so the request is sent long before it."""
    await reader.ping_async()
    report("ready")
    limit = 1.0
    report("ending", after=limit)
    try:
        await asyncio.wait_for(reader.read_async(), limit)
    except TimeoutError:
        report("ended")


async def gather(reader: Reader) -> None:
    task = asyncio.ensure_future(reader.read_async())
    report("ready")
    try:
        await asyncio.gather(task, fail_when_told())
    except LookupError:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        report("ended")


async def group(reader: Reader) -> None:
    report("ready")
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(reader.read_async())
            tasks.create_task(fail_when_told())
    except* LookupError:
        assert task.cancelled()
        report("ended")


async def drop(reader: Reader) -> None:
    pending = reader.pending()
    report("ready")
    await end_when_told()
    del pending
    report("ended")
    await asyncio.to_thread(await_parent)


async def run(reader: Reader, how: str) -> None:
    await globals()[how](reader)
    await reader.ping_async()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left
    report("usable")


def main() -> None:
    url, how, loop = sys.argv[1:]
    reader = Reader(url)
    reader.ping()
    with asyncio.Runner(loop_factory=import_module(loop).new_event_loop) as runner:
        runner.run(run(reader, how))


main()
