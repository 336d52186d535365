"""Give up an awaited request: PACKAGE URL HOW LOOP."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from reader import hear, open_reader, say


async def told() -> None:
    """Wait for a word of the parent, in a thread."""
    await asyncio.get_running_loop().run_in_executor(None, hear)


async def cancel(reader: Any) -> None:
    """Cancel the task."""
    task = asyncio.ensure_future(reader.read_async())
    say("ready")
    await told()
    say("ending")
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        say("ended")


async def wait_for(reader: Any) -> None:
    """Run into a limit, with the connection there, so that the request is out long before it."""
    await reader.ping_async()
    say("ready")
    limit = 1.0
    say("ending", after=limit)
    try:
        await asyncio.wait_for(reader.read_async(), limit)
    except TimeoutError:
        say("ended")


async def gather(reader: Any) -> None:
    """Fail beside it; a loop that ends takes what is left with it."""

    async def fail() -> None:
        await told()
        say("ending")
        raise LookupError

    task = asyncio.ensure_future(reader.read_async())
    say("ready")
    try:
        await asyncio.gather(task, fail())
    except LookupError:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        say("ended")


async def group(reader: Any) -> None:
    """Fail beside it in a group, which cancels it."""

    async def fail() -> None:
        await told()
        say("ending")
        raise LookupError

    say("ready")
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(reader.read_async())
            tasks.create_task(fail())
    except* LookupError:
        assert task.cancelled()
        say("ended")


async def drop(reader: Any) -> None:
    """Begin a request, and hold on to it no longer."""
    pending = reader.pending()
    if asyncio.iscoroutine(pending):
        pending = asyncio.ensure_future(pending)
    say("ready")
    await told()
    say("ending")
    del pending
    say("ended")
    await told()


HOW = {"cancel": cancel, "wait_for": wait_for, "gather": gather, "group": group, "drop": drop}


async def play(reader: Any, how: str) -> None:
    """Give up, and look whether anything was left behind."""
    await HOW[how](reader)
    await reader.ping_async()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left
    say("usable")


def main() -> None:
    """Play."""
    package, url, how, loop = sys.argv[1:]
    reader = open_reader(package, url)
    reader.ping()
    factory = asyncio.new_event_loop
    if loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(play(reader, how))


main()
