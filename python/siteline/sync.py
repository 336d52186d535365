"""Syncs: one loop reads pages and stores them, in a store or a target, blocking or in asyncio."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from contextlib import ExitStack
from operator import index
from typing import TYPE_CHECKING, Any, Self

from siteline import progress as _progress
from siteline._core import Call, _excerpt
from siteline._core import Client as ClientHandle
from siteline._handles import OfThisProcess
from siteline._records.plan import Plan
from siteline._records.progress import Progress
from siteline._records.sync import SyncReport
from siteline.errors import ClosedError, ConfigError, QueryError
from siteline.feed import Feed
from siteline.scan import ScanBase
from siteline.store import Store

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator, Mapping

    from siteline._core import SyncHandle
    from siteline.page import Page

    _Counts = tuple[int, int, int, int]
    _Handed = tuple[Page | None, dict[str, bytes]]
    # What the loop waits for, and the value that it gets.
    _Steps = Generator[Any, Any, None]

__all__ = ["AsyncSyncPages", "SyncPages"]


class _Pages(OfThisProcess):
    """Base of both iterators."""

    __slots__ = ("_callback", "_counts", "_handle")
    _instead = "pickle the states: a sync that begins with them continues"

    def __init__(
        self,
        client: ClientHandle,
        feeds: Any,
        states: Mapping[str, bytes] | None,
        options: dict[str, Any],
    ) -> None:
        """Begin a sync; made by ``client.sync_pages()``."""
        self._counts: _Counts | None = None
        known = feeds_of(feeds)
        self._handle = client.sync([feed._handle for feed in known], options, False)
        self._callback = _callback(known, options.get("progress"))
        self._handle.begin(None, _known_states(states, known), False).wait()

    def applied(self, inserted: int, revised: int, unchanged: int, withdrawn: int = 0) -> None:
        """State what the last page changed where you store it.

        ``report`` counts it, and audits use it to learn when points arrive. Otherwise all points
        of a page count as inserted.

        Args:
            inserted: New points.
            revised: Points with other values than before.
            unchanged: Points with the same values as before.
            withdrawn: Points that a complete read of their range no longer contained.
        """
        self._counts = (index(inserted), index(revised), index(unchanged), index(withdrawn))

    @property
    def report(self) -> SyncReport:
        """The report so far, or at the end. The last page counts when the next one is requested."""
        return SyncReport._restore(self._handle.report().wait())

    def close(self) -> None:
        """End the sync. Closing again does nothing.

        The last page counts as not stored: a sync that begins with the states before it reads it
        again.
        """
        try:
            self._handle.end()
        finally:
            _progress.finish(self._callback)

    def _confirm(self) -> None:
        """Count the last page as stored."""
        counts, self._counts = self._counts, None
        if self._handle.written(counts) and self._callback is not None:
            self._callback(Progress._restore(self._handle.progress()))

    def _taken(self) -> _Handed | None:
        handed = self._handle.take()
        if handed is None:
            return None
        feed, page, state = handed
        self._counts = None
        return page, {feed: state}


class SyncPages(_Pages):
    """The pages of a sync, one after the other, each with the state to store with it.

    Made by :meth:`Client.sync_pages`. A request for the next page means that the one before is
    stored, with its state. It is for one thread: if two ask at a time, one gets a ``RuntimeError``.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> with client.sync_pages(feed, {}) as pages:
    ...     rows = sum(0 if page is None else len(page) for page, state in pages)
    >>> pages.report.complete, pages.report.inserted == rows > 0
    (True, True)
    """

    __slots__ = ("_turn",)

    def __init__(
        self,
        client: ClientHandle,
        feeds: Any,
        states: Mapping[str, bytes] | None,
        options: dict[str, Any],
    ) -> None:
        """Begin a sync; made by ``client.sync_pages()``."""
        # Taking the one item is atomic.
        self._turn = [True]
        super().__init__(client, feeds, states, options)

    def __iter__(self) -> Self:
        """Return the iterator itself."""
        return self

    def __next__(self) -> _Handed:
        """Return the next page, or ``None`` if only the state changes, and the state."""
        try:
            turn = self._turn.pop()
        except IndexError:
            raise RuntimeError(
                "Another thread is waiting for the next page. Use a SyncPages in one thread."
            ) from None
        try:
            if (handed := self._next()) is not None:
                return handed
        except BaseException:
            # Ctrl-C may arrive after a page was taken: nobody has it.
            self._handle.put_back()
            raise
        finally:
            self._turn.append(turn)
        self.close()
        raise StopIteration

    def _next(self) -> _Handed | None:
        if self._handle.is_over:
            return None
        self._confirm()
        try:
            while self._handle.fetch().wait() or self._handle.flush(True):
                if (handed := self._taken()) is not None:
                    return handed
        except ClosedError:
            if not self._handle.is_over:
                raise
        return None

    def __enter__(self) -> Self:
        """Return the iterator. Leaving ends the sync."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the sync."""
        self.close()


class AsyncSyncPages(_Pages):
    """The pages of a sync with the states to store with them: :class:`siteline.types.SyncPages`.

    Made by :meth:`AsyncClient.sync_pages`. It is for one task. A cancelled wait loses no page.

    >>> import asyncio
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> async def main():
    ...     async with sandbox.async_client() as client:
    ...         async with client.sync_pages(feed) as pages:
    ...             rows = sum([len(page) async for page, _ in pages if page is not None])
    ...         return pages.report.complete, pages.report.inserted == rows > 0
    >>> asyncio.run(main())
    (True, True)
    """

    __slots__ = ("_one_at_a_time",)

    def __init__(
        self,
        client: ClientHandle,
        feeds: Any,
        states: Mapping[str, bytes] | None,
        options: dict[str, Any],
    ) -> None:
        """Begin a sync; made by ``client.sync_pages()``."""
        import asyncio

        self._one_at_a_time = asyncio.Lock()
        super().__init__(client, feeds, states, options)

    def __aiter__(self) -> Self:
        """Return the iterator itself."""
        return self

    async def __anext__(self) -> _Handed:
        """Return the next page, or ``None`` if only the state changes, and the state."""
        async with self._one_at_a_time:
            if not self._handle.is_over:
                self._confirm()
                # Nothing is awaited between taking a page and returning it.
                while await self._handle.fetch() or self._handle.flush(True):
                    if (handed := self._taken()) is not None:
                        return handed
                self.close()
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        """Return the iterator. Leaving ends the sync."""
        return self

    async def __aexit__(self, *exception: object) -> None:
        """End the sync."""
        self.close()


def feeds_of(given: Any, known: str = "a siteline.Feed, or a list of them") -> list[Feed]:
    """Return one feed or several as a list.

    Raises:
        QueryError: for anything else.
    """
    if isinstance(given, Feed):
        return [given]
    is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    feeds = list(given) if is_list else [given]
    if not feeds:
        raise QueryError("feeds= is empty: there is nothing to read.")
    if not all(isinstance(feed, Feed) for feed in feeds):
        raise QueryError(f"feeds= is {known}.")
    return feeds


def sync(client: ClientHandle, feeds: Any, store: Any, options: dict[str, Any]) -> SyncReport:
    """Read what is due, and store it."""
    if not isinstance(store, Store) and is_async(store):
        raise ConfigError(
            "The store is async, and a siteline.Client cannot await it; nothing was sent.",
            hint="Use siteline.AsyncClient.",
        )
    run = _Run(client, feeds, store, options)
    with ExitStack() as held:
        for name in run.to_lock:
            if callable(lock := getattr(store, "lock", None)):
                manager = lock(name)
                if not hasattr(manager, "__enter__") or not hasattr(manager, "__exit__"):
                    raise _not_a_lock(manager)
                manager.__enter__()
                held.callback(manager.__exit__, None, None, None)
        states = {name: store.state(name) for name in run.to_lock}
        held.push(run.end)
        run.begin(states).wait()
        _drive(run.steps())
        return run.report(run.handle.report().wait())


async def sync_async(
    client: ClientHandle, feeds: Any, store: Any, options: dict[str, Any]
) -> SyncReport:
    """As :func:`sync`, in asyncio. What was begun to be written is completed if it is cancelled."""
    import asyncio
    from contextlib import AsyncExitStack

    run, held = _Run(client, feeds, store, options), AsyncExitStack()
    try:
        for name in run.to_lock:
            await _enter(held, getattr(store, "lock", None), name)
        states = {name: await _result(store.state(name)) for name in run.to_lock}
        try:
            begun = run.begin(states)
            await (_completed(begun.start()) if options.get("wait") is None else begun)
            await _drive_async(run.steps())
            report = await _completed(run.handle.report().start())
        except BaseException as error:
            run.end(type(error), error, None)
            raise
        run.end(None, None, None)
        return run.report(report)
    finally:
        await _completed(asyncio.ensure_future(held.aclose()))


def plan(client: ClientHandle, what: Any, store: Any, options: dict[str, Any]) -> Plan:
    """Return what a sync of feeds, or scans, would read."""
    scans, feeds = planned(what, store, options)
    if scans:
        handle = None if store is None else store._handle
        return Plan._restore({**client.plan_scans(scans, handle), "kind": "scan"})
    states = {}
    if not isinstance(store, Store):
        _check_target(store)
        states = {feed.name: store.state(feed.name) for feed in feeds}
    return plan_of(client, feeds, store, states, options)


def planned(what: Any, store: Any, options: dict[str, Any]) -> tuple[list[Any], list[Feed]]:
    """Return the scans to plan, or the feeds.

    Raises:
        QueryError: for anything else, and for arguments that do not belong to them.
    """
    is_list = isinstance(what, Iterable) and not isinstance(what, str | bytes | ScanBase)
    given = list(what) if is_list else [what]
    if given and all(isinstance(one, ScanBase) for one in given):
        if any(value is not None for value in options.values()):
            raise QueryError("until= and reread= belong to plans of feeds: a scan has a range.")
        if not (store is None or isinstance(store, Store)):
            raise QueryError("store= is a siteline.Store: the pages of its feeds are an estimate.")
        return [one._handle for one in given], []
    known = "a siteline.Feed or a siteline.Scan, or a list of the one or the other"
    feeds = feeds_of(given, known)
    if store is None:
        raise QueryError("plan() of feeds needs the store.", hint="client.plan(feeds, store)")
    return [], feeds


def plan_of(
    client: ClientHandle, feeds: list[Feed], store: Any, states: Any, options: dict[str, Any]
) -> Plan:
    """Return the plan of feeds, with the states of a target."""
    handle = store._handle if isinstance(store, Store) else None
    states = _known_states(states, feeds, "state() of the store returned")
    members = client.plan_feeds([feed._handle for feed in feeds], handle, states, options)
    return Plan._restore({**members, "kind": "sync"})


def is_async(target: Any) -> bool:
    """Whether a target has a coroutine function or an ``@asynccontextmanager``."""
    from siteline._awaiting import is_async as is_coroutine

    methods = [getattr(target, name, None) for name in ("state", "apply", "lock")]
    return any(map(is_coroutine, methods)) or inspect.isasyncgenfunction(
        inspect.unwrap(methods[2]) if callable(methods[2]) else None
    )


class _Run:
    """A sync to a store or a target. Its steps yield what waits; a driver does that."""

    __slots__ = ("_callback", "_store", "_target", "_write", "feeds", "handle", "to_lock")

    def __init__(self, client: ClientHandle, feeds: Any, store: Any, options: dict[str, Any]):
        """Check the arguments. Nothing is locked yet."""
        self.feeds = feeds_of(feeds)
        self._store = store if isinstance(store, Store) else None
        names = sorted(feed.name for feed in self.feeds)
        self.to_lock, self._target = [], store
        if self._store is None:
            _check_target(store)
            if options.get("wait") is not None:
                raise ConfigError(
                    "wait= is for a siteline.Store: lock() of a store of yours may wait."
                )
            for name in names:
                if names.count(name) > 1:
                    raise QueryError(f"the feed {name!r} is given twice")
            self.to_lock = names
            batch = getattr(store, "batch", 1)
            options = {**options, "batch": None if _is_one(batch) else batch}
        self.handle: SyncHandle = client.sync([feed._handle for feed in self.feeds], options, True)
        self._callback = _callback(self.feeds, options.get("progress"))

    def begin(self, states: dict[str, Any]) -> Call[None]:
        """Return the call that loads the states of feeds, and locks those of a store."""
        handle = None if self._store is None else self._store._handle
        known = _known_states(states, self.feeds, "state() of the store returned")
        keeps_names = self._store is not None and self._store._labels is not False
        return self.handle.begin(handle, known, keeps_names)

    def steps(self) -> _Steps:
        """Read and store everything. After an error, store what waits for a batch to be full."""
        try:
            while (yield from self._one_page()) or (yield from self._finish()):
                pass
            yield from self._keep_names()
        except GeneratorExit:
            raise
        except BaseException as error:
            try:
                if self.handle.flush(False):
                    yield from self._store_ready()
            except Exception as later:
                error.add_note(f"Pages that had arrived were not stored: {later}")
            raise

    def _keep_names(self) -> _Steps:
        """Keep the names of series in the store, if it asks for them today."""
        if self._store is not None and (settling := self.handle.settle_names()) is not None:
            yield settling
            yield _Whole(self.handle.keep_names(self._store._handle))
            self.handle.tell(False)

    def report(self, members: dict[str, Any]) -> SyncReport:
        """Return the report, which knows its store."""
        if self._store is not None:
            store = self._store._handle.id()
            members["feeds"] = [{**feed, "store": store} for feed in members["feeds"]]
        return SyncReport._restore(members)

    def end(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Unlock the feeds of a store. Errors do not replace one of the sync."""
        try:
            try:
                self.handle.end()
            finally:
                _progress.finish(self._callback)
        except Exception:
            if error is None:
                raise

    def _one_page(self) -> Generator[Any, Any, bool]:
        """Read and store a page; ``False`` if nothing is left to read."""
        has_failed = True
        try:
            more: bool = yield self.handle.fetch()
            if more and self._store is not None:
                yield _Whole(self.handle.apply())
            elif more:
                yield from self._apply_next()
            has_failed = False
        finally:
            self.handle.tell(has_failed)
        if more and self._callback is not None:
            self._callback(Progress._restore(self.handle.progress()))
        return more

    def _finish(self) -> Generator[Any, Any, bool]:
        """Store what is left; ``True`` if the range of it may have been set aside."""
        if self._store is not None:
            yield _Whole(self.handle.keep())
            return False
        had_waited = self.handle.flush(False)
        if had_waited or self.handle.flush(True):
            yield from self._store_ready()
        return had_waited

    def _store_ready(self) -> _Steps:
        while (yield from self._apply_next()):
            pass

    def _apply_next(self) -> Generator[Any, Any, bool]:
        """Give the target what is to be stored next; ``False`` if that is nothing."""
        handed = self.handle.take()
        if handed is None:
            return False
        try:
            counts = yield _Whole(None, self._target.apply, *handed)
        except Exception as error:
            if not getattr(error, "_is_unstorable", False):
                raise
            text, hint = str(error.message), error.hint  # type: ignore[attr-defined]
            self.handle.refused(text, hint, error.__cause__)
        else:
            self.handle.written(_counts(counts))
        return True


class _Whole:
    """A step that is completed once it has begun: a write of the core, or a call of a target."""

    __slots__ = ("_arguments", "_call", "_function")

    def __init__(
        self, call: Call[Any] | None, function: Callable[..., Any] | None = None, *arguments: Any
    ) -> None:
        self._call, self._function, self._arguments = call, function, arguments

    def wait(self) -> Any:
        if self._call is not None:
            return self._call.wait()
        assert self._function is not None
        return self._function(*self._arguments)

    async def done(self) -> Any:
        import asyncio

        if self._call is not None:
            return await _completed(self._call.start())
        assert self._function is not None
        result = self._function(*self._arguments)
        return await _completed(asyncio.ensure_future(result)) if _is_awaitable(result) else result


def _drive(steps: _Steps) -> None:
    """Do the steps on this thread."""
    act, given = steps.send, None
    while True:
        try:
            step = act(given)
        except StopIteration:
            return
        try:
            act, given = steps.send, step.wait()
        except BaseException as error:
            act, given = steps.throw, error


async def _drive_async(steps: _Steps) -> None:
    """Do the steps in asyncio."""
    act, given = steps.send, None
    while True:
        try:
            step = act(given)
        except StopIteration:
            return
        try:
            act, given = steps.send, await (step.done() if isinstance(step, _Whole) else step)
        except BaseException as error:
            act, given = steps.throw, error


async def _completed(future: asyncio.Future[Any]) -> Any:
    """Wait until a future is done, even if the task is cancelled; then raise the cancellation.

    This way a sync has unlocked the feed and stopped writing when it ends.
    """
    import asyncio
    from contextlib import suppress

    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            # The future ends soon, so a second cancellation does not end the wait.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        if not future.cancelled():
            # It is retrieved, so that asyncio does not log it.
            future.exception()
        raise


async def _enter(held: Any, lock: Any, feed: str) -> None:
    """Enter the context manager of ``lock()``, if there is one."""
    if not callable(lock):
        return
    manager = await _result(lock(feed))
    if hasattr(type(manager), "__aenter__"):
        await manager.__aenter__()
        held.push_async_callback(manager.__aexit__, None, None, None)
    elif hasattr(type(manager), "__enter__"):
        manager.__enter__()
        held.callback(manager.__exit__, None, None, None)
    else:
        raise _not_a_lock(manager)


async def _result(given: Any) -> Any:
    return await given if _is_awaitable(given) else given


def _is_awaitable(given: Any) -> bool:
    return inspect.isawaitable(given)


def _callback(feeds: list[Feed], progress: Any) -> Any:
    progress = _progress.checked(progress)
    title = ", ".join(feed.name for feed in feeds)
    return None if progress is None else _progress.reporter(progress, title)


def _check_target(store: Any) -> None:
    if not all(callable(getattr(store, name, None)) for name in ("state", "apply")):
        raise QueryError(
            "store= is a siteline.Store, or an object with state() and apply(): see "
            "siteline.targets.StoreTarget."
        )


def _known_states(states: Any, feeds: list[Feed], whose: str = "states= has") -> dict[str, bytes]:
    """Return the states of feeds that have one."""
    if states is None:
        return {}
    if not hasattr(states, "get"):
        raise TypeError("states= is a mapping of feed names to the bytes of their states.")
    known = {feed.name: states.get(feed.name) for feed in feeds}
    for state in known.values():
        if not isinstance(state, bytes | None):
            kind = type(state).__name__
            raise TypeError(
                f"{whose} a {kind}: a state is the bytes that were given to be stored last, or "
                "None."
            )
    return {name: state for name, state in known.items() if state is not None}


def _counts(given: Any) -> _Counts:
    """Return the four counts of ``apply()``."""
    try:
        counts = [index(one) for one in given] if isinstance(given, tuple) else []
        if len(counts) in (3, 4) and min(counts) >= 0:
            return tuple([*counts, 0][:4])  # type: ignore[return-value]
    except TypeError:
        pass
    raise TypeError(
        f"apply() of the store returned {_excerpt(repr(given))}: it must return (inserted, "
        "revised, unchanged), or these and withdrawn."
    )


def _is_one(batch: Any) -> bool:
    return batch is None or (batch == 1 and not isinstance(batch, bool | float | str))


def _not_a_lock(held: object) -> TypeError:
    kind = type(held).__name__
    return TypeError(f"lock() of the store returned a {kind}: it must return a context manager.")
