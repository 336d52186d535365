"""Syncs: one loop reads pages and stores them, in a store or a target, blocking or in asyncio."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

from siteline import progress as _progress
from siteline._awaiting import Asked, Whole, await_for, wait_for
from siteline._awaiting import is_async as is_coroutine
from siteline._core import Client as ClientHandle
from siteline._core import _excerpt
from siteline._escape import described
from siteline._handles import AsyncClosing, Closing, OfThisProcess
from siteline._kept import note_sync
from siteline._records.plan import Plan
from siteline._records.requests import Progress
from siteline._records.sync import SyncReport
from siteline.errors import ClosedError, ConfigError, QueryError, SitelineError
from siteline.feed import Feed
from siteline.page import Page
from siteline.scan import ScanBase
from siteline.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteline._awaiting import Steps
    from siteline._core import Call, SyncHandle

    _Counts = tuple[int, int, int, int]

__all__ = ["AsyncSyncPages", "SyncPages"]

_Handed: TypeAlias = tuple[Page | None, dict[str, bytes]]


class _Pages(OfThisProcess):
    _instead = "pickle the states: a sync that begins with them continues"

    def __init__(
        self,
        client: ClientHandle,
        feeds: Any,
        states: Mapping[str, bytes] | None,
        options: dict[str, Any],
    ) -> None:
        """Wrap a sync of the core, and begin it."""
        self._counts: _Counts | None = None
        self._prepare()
        known = feeds_of(feeds)
        self._handle = client.sync([feed._state for feed in known], options, False)
        self._callback = _callback(known, options.get("progress"))
        self._handle.begin(None, _known_states(states, known), False).wait()

    def _prepare(self) -> None: ...

    def applied(self, inserted: int, revised: int, unchanged: int, withdrawn: int = 0) -> None:
        """Report the changes that the last page made in your store.

        ``report`` and audits use them. Otherwise all points of a page count as inserted. The counts
        are those of a :class:`siteline.types.FeedReport`.
        """
        self._counts = (index(inserted), index(revised), index(unchanged), index(withdrawn))

    @property
    def report(self) -> SyncReport:
        """The report so far, or at the end. The last page counts when the next one is requested."""
        return SyncReport._restore(self._handle.report().wait())

    def close(self) -> None:
        """End the sync. Closing again does nothing.

        The last page counts as not stored: a sync with the states before it reads it again.
        """
        try:
            self._handle.end()
        finally:
            _progress.finish(self._callback)

    def _confirm(self) -> None:
        counts, self._counts = self._counts, None
        if self._handle.written(counts) and self._callback is not None:
            self._callback(Progress._restore(self._handle.progress()))

    def _taking(self) -> Steps[_Handed | None]:
        """Return the next page; ``None`` after the last one."""
        if self._handle.is_over():
            return None
        self._confirm()
        try:
            # No step is between taking a page and returning it, so none is lost.
            while (yield self._handle.fetch()) or self._handle.flush(True):
                if (handed := self._handle.take()) is not None:
                    feed, page, state = handed
                    self._counts = None
                    return page, {feed: state}
        except BaseException as error:
            with suppress(SitelineError):
                note_sync(error, Progress._restore(self._handle.progress()), is_handed=True)
            raise
        return None


class SyncPages(_Pages, Closing, Iterator[_Handed]):
    """The pages of a sync, one after the other, each with the state to store with it.

    Made by :meth:`Client.sync_pages`. A request for the next page means that the one before is
    stored, with its state. It is for one thread: a second one gets a ``RuntimeError``.

    >>> with client.sync_pages(feed, {}) as pages:
    ...     rows = sum(0 if page is None else len(page) for page, state in pages)
    >>> pages.report.complete, pages.report.inserted == rows > 0
    (True, True)
    """

    def _prepare(self) -> None:
        # Taking the one item is atomic.
        self._turn = [True]

    def __next__(self) -> _Handed:
        """Return the next page, or ``None`` if only the state changes, and the state."""
        try:
            turn = self._turn.pop()
        except IndexError:
            raise RuntimeError(
                "Another thread is waiting for the next page. Use a SyncPages in one thread."
            ) from None
        try:
            if (handed := wait_for(self._taking())) is not None:
                return handed
        except ClosedError:
            if not self._handle.is_over():
                raise
        except BaseException:
            # Ctrl-C may arrive after a page was taken: nobody has it.
            self._handle.put_back()
            raise
        finally:
            self._turn.append(turn)
        self.close()
        raise StopIteration


class AsyncSyncPages(_Pages, AsyncClosing, AsyncIterator[_Handed]):
    """The pages of a sync with the states to store with them: :class:`siteline.types.SyncPages`.

    Made by :meth:`AsyncClient.sync_pages`. It is for one task. A cancelled wait loses no page.
    """

    def _prepare(self) -> None:
        import asyncio

        self._one_at_a_time = asyncio.Lock()

    async def __anext__(self) -> _Handed:
        """Return the next page, or ``None`` if only the state changes, and the state."""
        async with self._one_at_a_time:
            if (handed := await await_for(self._taking())) is None:
                self.close()
                raise StopAsyncIteration
            return handed


def feeds_of(given: Any, known: str = "a siteline.Feed, or a list of them") -> list[Feed]:
    """Return one feed or several as a list."""
    if isinstance(given, Feed):
        return [given]
    is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    feeds = list(given) if is_list else [given]
    if not feeds:
        raise QueryError("feeds= is empty: there is nothing to read.")
    if wrong := [one for one in feeds if not isinstance(one, Feed)]:
        hint = "The feeds come first: sync(feeds, store)." if _is_target(wrong[0]) else None
        raise QueryError(f"feeds= is {known}; this is {described(wrong[0])}.", hint=hint)
    return feeds


def _is_target(store: Any) -> bool:
    return all(callable(getattr(store, name, None)) for name in ("state", "apply"))


def syncing(
    client: ClientHandle, feeds: Any, store: Any, options: dict[str, Any], *, awaits: bool
) -> Steps[SyncReport]:
    """Read what is due, and store it; return the report."""
    if not awaits and not isinstance(store, Store) and is_async(store):
        raise ConfigError(
            "The store is async, and a siteline.Client cannot await it; nothing was sent.",
            hint="Use siteline.AsyncClient.",
        )
    run, lock = _Run(client, feeds, store, options), getattr(store, "lock", None)
    held, is_locked = AsyncExitStack() if awaits else ExitStack(), False
    try:
        for name in run.to_lock:
            if callable(lock):
                yield from _locking(lock, name, held)
                is_locked = True
        states = {}
        for name in run.to_lock:
            states[name] = yield Asked(store.state, name)
        try:
            step = Whole if options.get("wait") is None else Asked
            yield step(run.begin, states)
            try:
                yield from run.steps()
            except BaseException as error:
                note_sync(error, Progress._restore(run.handle.progress()))
                raise
            report = yield Whole(run.handle.report)
        except BaseException as error:
            if isinstance(error, SitelineError):
                with suppress(SitelineError):
                    error.report = run.report((yield Whole(run.handle.report)))
            run.end(error)
            raise
        run.end(None)
        return run.report(report)
    finally:
        if is_locked:
            yield Whole(held.aclose if isinstance(held, AsyncExitStack) else held.close)


def _locking(lock: Any, feed: str, held: AsyncExitStack | ExitStack) -> Steps[None]:
    """Enter the context manager of ``lock()``."""
    manager = yield Asked(lock, feed)
    if isinstance(held, AsyncExitStack) and hasattr(manager, "__aenter__"):
        yield Asked(held.enter_async_context, manager)
    elif hasattr(manager, "__enter__"):
        held.enter_context(manager)
    else:
        kind = type(manager).__name__
        raise TypeError(f"lock() of the store returned a {kind}: it must return a context manager.")


def planning(client: ClientHandle, what: Any, store: Any, options: dict[str, Any]) -> Steps[Plan]:
    scans, feeds = _planned(what, store, options)
    is_stored = isinstance(store, Store) and not store._is_new()
    handle = store._handle if is_stored else None
    if scans:
        return Plan._restore({**client.plan_scans(scans, handle), "kind": "scan"})
    states = {}
    if handle is None:
        _check_target(store)
        for feed in feeds:
            states[feed.name] = yield Asked(store.state, feed.name)
    states = _known_states(states, feeds, "state() of the store returned")
    members = client.plan_feeds([feed._state for feed in feeds], handle, states, options)
    return Plan._restore({**members, "kind": "sync"})


def _planned(what: Any, store: Any, options: dict[str, Any]) -> tuple[list[Any], list[Feed]]:
    """Return the scans to plan, or the feeds."""
    is_list = isinstance(what, Iterable) and not isinstance(what, str | bytes | ScanBase)
    given = list(what) if is_list else [what]
    if given and all(isinstance(one, ScanBase) for one in given):
        if any(value is not None for value in options.values()):
            raise QueryError("until= and reread= belong to plans of feeds: a scan has a range.")
        if not (store is None or isinstance(store, Store)):
            raise QueryError("store= is a siteline.Store: the pages of its feeds are an estimate.")
        return [one._with_store(makes=False) for one in given], []
    known = "a siteline.Feed or a siteline.Scan, or a list of the one or the other"
    feeds = feeds_of(given, known)
    if store is None:
        raise QueryError("plan() of feeds needs the store.", hint="client.plan(feeds, store)")
    return [], feeds


def is_async(target: Any) -> bool:
    """Whether a target has a coroutine function or an ``@asynccontextmanager``."""
    methods = [getattr(target, name, None) for name in ("state", "apply", "lock")]
    return any(map(is_coroutine, methods)) or inspect.isasyncgenfunction(
        inspect.unwrap(methods[2]) if callable(methods[2]) else None
    )


class _Run:
    """A sync to a store or a target, as steps for a driver."""

    def __init__(self, client: ClientHandle, feeds: Any, store: Any, options: dict[str, Any]):
        """Check the arguments. Nothing is locked yet."""
        self.feeds = feeds_of(feeds)
        self._store = store if isinstance(store, Store) else None
        names = sorted(feed.name for feed in self.feeds)
        for name in names:
            if names.count(name) > 1:
                raise QueryError(f"the feed {name!r} is given twice")
        self.to_lock, self._target = [], store
        if self._store is None:
            _check_target(store)
            if options.get("wait") is not None:
                raise ConfigError(
                    "wait= is for a siteline.Store: lock() of a store of yours may wait."
                )
            self.to_lock = names
            batch = getattr(store, "batch", 1)
            options = {**options, "batch": None if _is_one(batch) else batch}
        self.handle: SyncHandle = client.sync([feed._state for feed in self.feeds], options, True)
        self._callback = _callback(self.feeds, options.get("progress"))

    def begin(self, states: dict[str, Any]) -> Call[None]:
        """Return the call that loads the states of feeds, and locks the feeds of a store."""
        handle = None if self._store is None else self._store._made()
        known = _known_states(states, self.feeds, "state() of the store returned")
        keeps_names = self._store is not None and self._store._labels is not False
        return self.handle.begin(handle, known, keeps_names)

    def steps(self) -> Steps[None]:
        """Read and store everything. After an error, store the pages of an incomplete batch."""
        try:
            while (yield from self._one_page()):
                pass
            yield from self._keep_names()
        except GeneratorExit:
            raise
        except BaseException as error:
            try:
                if self.handle.flush(False):
                    while (yield from self._apply_next()):
                        pass
            except Exception as later:
                error.add_note(f"Pages that had arrived were not stored: {later}")
            raise

    def _keep_names(self) -> Steps[None]:
        if self._store is not None and (settling := self.handle.settle_names()) is not None:
            yield settling
            yield Whole(self.handle.keep_names, self._store._handle)
            self.handle.tell(False)

    def report(self, members: dict[str, Any]) -> SyncReport:
        if self._store is not None:
            store = self._store._handle.id()
            members["feeds"] = [{**feed, "store": store} for feed in members["feeds"]]
        return SyncReport._restore(members)

    def end(self, error: BaseException | None) -> None:
        """Unlock the feeds of a store. Errors do not replace one of the sync."""
        try:
            try:
                self.handle.end()
            finally:
                _progress.finish(self._callback)
        except Exception:
            if error is None:
                raise

    def _one_page(self) -> Steps[bool]:
        """Read and store a page, at the end the rest; ``False`` if nothing is left."""
        has_failed, is_stored = True, False
        try:
            more: bool = yield self.handle.fetch()
            if self._store is not None:
                yield Whole(self.handle.apply, not more)
            elif more or self.handle.flush(True):
                is_stored = yield from self._apply_next()
            has_failed = False
        finally:
            self.handle.tell(has_failed)
        if more and self._callback is not None:
            self._callback(Progress._restore(self.handle.progress()))
        return more or is_stored

    def _apply_next(self) -> Steps[bool]:
        """Pass the next pages to the target; ``False`` if there are none."""
        handed = self.handle.take()
        if handed is None:
            return False
        try:
            counts = yield Whole(self._target.apply, *handed)
        except Exception as error:
            if not getattr(error, "_is_unstorable", False):
                raise
            text, hint = str(error.message), error.hint  # type: ignore[attr-defined]
            self.handle.refused(text, hint, error.__cause__)
        else:
            self.handle.written(_counts(counts))
        return True


def _callback(feeds: list[Feed], progress: Any) -> Any:
    progress = _progress.checked(progress)
    title = ", ".join(feed.name for feed in feeds)
    return None if progress is None else _progress.reporter(progress, title)


def _check_target(store: Any) -> None:
    if not _is_target(store):
        raise QueryError(
            "store= is a siteline.Store, or an object with state() and apply() such as those of "
            f"siteline.targets; this is {described(store)}.",
            hint="Open the store first: siteline.Store(path).",
        )


def _known_states(states: Any, feeds: list[Feed], whose: str = "states= has") -> dict[str, bytes]:
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
