"""Calls of the user's coroutine functions, which the core awaits on the caller's event loop."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator


def is_async(function: Any) -> bool:
    """Whether calling this returns a coroutine."""
    return callable(function) and (
        inspect.iscoroutinefunction(function)
        or inspect.iscoroutinefunction(type(function).__call__)
    )


class Call:
    """A call that begins when it is awaited; it can be cancelled before that."""

    __slots__ = ("_arguments", "_function", "_is_cancelled", "_task")

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Store the function and its arguments; nothing runs yet."""
        self._function, self._arguments = function, arguments
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def __await__(self) -> Generator[Any, None, Any]:
        """Call the function and await its result."""
        return self._run().__await__()

    async def _run(self) -> Any:
        # Here, because a target without coroutines needs no asyncio.
        import asyncio

        if self._is_cancelled:
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        result = self._function(*self._arguments)
        return await result if inspect.isawaitable(result) else result

    def cancel(self) -> None:
        """Cancel the call. Once it may have begun, only the loop's thread may do so."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()
