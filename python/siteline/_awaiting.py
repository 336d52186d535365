"""Two drivers for generators of steps: on a thread and in asyncio.

A step is a :class:`Call` of the core, or :class:`Asked`, a call of the user's target.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from siteline._core import Call

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Generator

    from siteline.errors import SitelineError

    Steps = Generator[Any, Any, "_T"]

_T = TypeVar("_T")

# Seconds after which the core has dropped a cancelled call, and so cancelled its functions.
_LONGEST_DROP = 0.1

# Functions import asyncio, because a thread does not need it.


def wait_for(steps: Steps[_T]) -> _T:
    """Run the steps on this thread."""
    try:
        step = next(steps)
        while True:
            try:
                result = step.wait()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: _T = end.value
        return value


async def await_for(steps: Steps[_T]) -> _T:
    """Run the steps in the current task."""
    try:
        step = next(steps)
        while True:
            try:
                result = await step
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: _T = end.value
        return value


class Asked:
    """A call of a function, which may return an awaitable in asyncio, or a call of the core."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._function, self._arguments = function, arguments

    def wait(self) -> Any:
        result = self._function(*self._arguments)
        return result.wait() if isinstance(result, Call) else result

    def __await__(self) -> Generator[Any, None, Any]:
        return self._result().__await__()

    async def _result(self) -> Any:
        result = self._function(*self._arguments)
        return await self._awaited(result) if inspect.isawaitable(result) else result

    async def _awaited(self, result: Awaitable[Any]) -> Any:
        return await result


class Whole(Asked):
    """A step that is completed once it has begun, even if its task is cancelled.

    So a sync has unlocked its feeds and stopped writing when it ends.
    """

    async def _awaited(self, result: Awaitable[Any]) -> Any:
        import asyncio
        from contextlib import suppress

        future = asyncio.ensure_future(result)
        # Retrieves an exception that nobody may await, so asyncio does not log it.
        future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                # The future ends soon, so a second cancellation does not end the wait.
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            raise


def drive(call: Call[Any]) -> Generator[Any, None, Any]:
    """Await a call on the running loop. Its log records and observers are handled meanwhile."""
    running = call.begin()
    try:
        while True:
            future, result = running.step()
            if future is None:
                return result
            yield from future
    except BaseException:
        # A cancelled or dropped coroutine ends its request.
        running.cancel()
        raise


def is_async(function: Any) -> bool:
    return callable(function) and (
        inspect.iscoroutinefunction(function)
        or inspect.iscoroutinefunction(type(function).__call__)
    )


def check_callback(
    name: str, given: Any, record: str, error: type[SitelineError], *, other: str = ""
) -> None:
    """Check an argument that is called with a record and not awaited."""
    if not callable(given):
        raise error(f"{name}= is {other}a callable that takes a siteline.types.{record}.")
    if is_async(given):
        raise error(f"{name}= is an async function, which nobody would await.")


def begin(answer: Any, function: Callable[..., Any], argument: bytes) -> asyncio.Task[Any]:
    """Begin an async function on the running loop; ``answer`` is called with its ended task."""
    import asyncio

    async def run() -> Any:
        if answer.is_cancelled:
            # Only a task that outlives the cancelled call still needs the result.
            await asyncio.sleep(_LONGEST_DROP)
        result = function(argument)
        return await result if inspect.isawaitable(result) else result

    task = asyncio.ensure_future(run())
    task.add_done_callback(answer)
    return task
