"""Cancel an awaited request: PACKAGE URL HOW LOOP."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from reader import await_parent, open_reader, report


async def await_line() -> None:
    """Wait for a line from the parent, in a thread."""
    await asyncio.get_running_loop().run_in_executor(None, await_parent)


async def cancel(reader: Any) -> None:
    """Cancel the task."""
    task = asyncio.ensure_future(reader.read_async())
    report("ready")
    await await_line()
    report("ending")
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        report("ended")


async def wait_for(reader: Any) -> None:
    """Run into a timeout; the connection is open, so the request is sent long before it."""
    await reader.ping_async()
    report("ready")
    limit = 1.0
    report("ending", after=limit)
    try:
        await asyncio.wait_for(reader.read_async(), limit)
    except TimeoutError:
        report("ended")


async def gather(reader: Any) -> None:
    """Fail in another awaitable of a gather, then cancel the request."""

    async def fail() -> None:
        await await_line()
        report("ending")
        raise LookupError

    task = asyncio.ensure_future(reader.read_async())
    report("ready")
    try:
        await asyncio.gather(task, fail())
    except LookupError:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        report("ended")


async def group(reader: Any) -> None:
    """Fail in another task of a group, which cancels the request."""

    async def fail() -> None:
        await await_line()
        report("ending")
        raise LookupError

    report("ready")
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(reader.read_async())
            tasks.create_task(fail())
    except* LookupError:
        assert task.cancelled()
        report("ended")


async def drop(reader: Any) -> None:
    """Start a request and drop it."""
    pending = reader.pending()
    if asyncio.iscoroutine(pending):
        pending = asyncio.ensure_future(pending)
    report("ready")
    await await_line()
    report("ending")
    del pending
    report("ended")
    await await_line()


HOW = {"cancel": cancel, "wait_for": wait_for, "gather": gather, "group": group, "drop": drop}


async def run(reader: Any, how: str) -> None:
    """Cancel a request, then check that the client works and no task is left."""
    await HOW[how](reader)
    await reader.ping_async()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left
    report("usable")


def main() -> None:
    """Run the script."""
    package, url, how, loop = sys.argv[1:]
    reader = open_reader(package, url)
    reader.ping()
    factory = asyncio.new_event_loop
    if loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run(reader, how))


main()
