"""Calls of the user's coroutine functions, which the core awaits on the caller's event loop."""

from __future__ import annotations

import inspect
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from siteline.errors import ConfigError, QueryError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator

    from siteline.page import Page
    from siteline.targets import StoreTarget


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


class PlainTarget:
    """Calls a :class:`siteline.targets.StoreTarget` without coroutines, for one sync."""

    def __init__(self, target: Any) -> None:
        """Wrap the user's object."""
        self._target = target

    def state(self, feed: str) -> Any:
        """Call ``StoreTarget.state``."""
        return self._target.state(feed)

    def apply(self, feed: str, page: Page | None, state: bytes) -> Any:
        """Call ``StoreTarget.apply``."""
        return self._target.apply(feed, page, state)

    def lock(self, feed: str) -> Any:
        """Enter the context manager of ``lock()``, if any; the result is for ``release()``."""
        lock = getattr(self._target, "lock", None)
        if not callable(lock):
            return None
        held = lock(feed)
        if not hasattr(held, "__enter__") or not hasattr(held, "__exit__"):
            raise _not_a_lock(held)
        held.__enter__()
        return held

    def release(self, held: Any) -> None:
        """Exit the context manager of ``lock()``."""
        if held is not None:
            held.__exit__(None, None, None)


class AsyncTarget:
    """Calls an async :class:`siteline.targets.StoreTarget` for one sync, one call at a time."""

    def __init__(self, target: StoreTarget) -> None:
        """Wrap the user's object; the core checks that it has the methods."""
        self._target = target
        self._call: Call | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Cancel the current call and all later ones except ``release()``."""
        self._is_stopped = True
        if self._call is not None:
            self._call.cancel()

    def state(self, feed: str) -> Call:
        """Call ``StoreTarget.state``."""
        return self._calling(self._target.state, feed)

    def apply(self, feed: str, page: Page | None, state: bytes) -> Call:
        """Call ``StoreTarget.apply``."""
        return self._calling(self._target.apply, feed, page, state)

    def lock(self, feed: str) -> Call:
        """Enter the context manager of ``lock()``, if any; the result is for ``release()``."""
        return self._calling(_entered, getattr(self._target, "lock", None), feed)

    def release(self, entered: AsyncExitStack) -> Call:
        """Exit the context manager of ``lock()``."""
        return Call(entered.aclose)

    def _calling(self, function: Callable[..., Any], *arguments: Any) -> Call:
        self._call = call = Call(function, *arguments)
        if self._is_stopped:
            call.cancel()
        return call


def async_target(store: Any) -> AsyncTarget | None:
    """Wrap an object that has an async method; ``None`` for any other."""
    lock = getattr(store, "lock", None)
    methods = (getattr(store, "state", None), getattr(store, "apply", None), lock)
    if any(is_async(method) for method in methods) or (
        # @asynccontextmanager
        callable(lock) and inspect.isasyncgenfunction(inspect.unwrap(lock))
    ):
        return AsyncTarget(store)
    return None


def target(store: Any) -> PlainTarget | AsyncTarget:
    """Wrap a store for one sync or plan, unless it is an ``AsyncTarget`` already."""
    of_user = store._target if isinstance(store, AsyncTarget) else store
    if not all(callable(getattr(of_user, name, None)) for name in ("state", "apply")):
        raise QueryError(
            "store= is a siteline.Store, or an object with state() and apply(): see "
            "siteline.targets.StoreTarget."
        )
    if isinstance(store, AsyncTarget):
        return store
    if async_target(store) is not None:
        raise ConfigError(
            "The store is async, and a siteline.Client cannot await it; nothing was sent.",
            hint="Use siteline.AsyncClient.",
        )
    return PlainTarget(store)


async def _entered(lock: Any, feed: str) -> AsyncExitStack:
    stack = AsyncExitStack()
    if not callable(lock):
        return stack
    manager = lock(feed)
    if inspect.isawaitable(manager):
        manager = await manager
    if hasattr(type(manager), "__aenter__"):
        await stack.enter_async_context(manager)
    elif hasattr(type(manager), "__enter__"):
        stack.enter_context(manager)
    else:
        raise _not_a_lock(manager)
    return stack


def _not_a_lock(held: object) -> TypeError:
    kind = type(held).__name__
    return TypeError(f"lock() of the store returned a {kind}: it must return a context manager.")


class KnownStates:
    """The states of an async store's feeds, read in advance: a plan needs nothing else."""

    def __init__(self, states: dict[str, bytes | None]) -> None:
        """Store the states by feed."""
        self._states = states

    def state(self, feed: str) -> bytes | None:
        """Return the state of a feed."""
        return self._states[feed]

    def apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int]:
        """Refuse: a plan applies nothing."""
        raise TypeError("a plan applies no page")
