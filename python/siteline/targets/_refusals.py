"""Errors for databases that refuse a write, and driver calls that Ctrl-C can interrupt."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from siteline.errors import ConfigError, StoreError, StoreFull

_Result = TypeVar("_Result")
_LONGEST = 300
_FULL = re.compile("No space left on device|Disk quota exceeded|os error (28|122)")
_CORRECT = "Correct the table, or read the other series in a new feed with a filter."


def refused(place: str, feed: str, text: str) -> StoreError:
    """The error for a target that cannot be written, before any request."""
    message = f"The feed {feed!r} cannot be written to {place}: {cut(text)}"
    if is_full(text):
        return full(place, feed)
    hint = "No request was made. Correct the tables or the rights of the user, and sync again."
    return StoreError(message, hint=hint)


def failed(place: str, feed: str, text: str) -> StoreError:
    message = f"{place} did not store a page of the feed {feed!r}: {cut(text)}"
    return StoreError(message, hint="What was stored before stays: sync again.")


def full(place: str, feed: str) -> StoreFull:
    return StoreFull(
        f"No space is left for the feed {feed!r} in {place}. What was stored stays.",
        hint="Free space and sync again: only pages that were not stored are read again.",
    )


def is_full(text: str) -> bool:
    return _FULL.search(text) is not None


def unstorable(place: str, feed: str, text: str, hint: str = _CORRECT) -> StoreError:
    """The error for values that a target cannot store. The core sets their range aside."""
    message = f"{place} cannot store a page of the feed {feed!r}: {text}"
    return StoreError(message, hint=hint, _is_unstorable=True)


def cut(text: str) -> str:
    """External text on one line, escaped and truncated to about 300 characters."""
    line = " ".join(text[: 2 * _LONGEST].split())
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def shown(place: str) -> str:
    """A path, or a URI without its user, password and options."""
    if "://" not in place and not place.startswith("md:"):
        return place
    return re.sub(r"//[^/]*@", "//", place.partition("?")[0])


def check_types(
    place: str, found: Mapping[str, tuple[str, bool]], wanted: Mapping[str, str]
) -> None:
    """Rejects a table with wrong column types, or with an additional column that needs a value.

    ``found`` has the type of each column, and whether each row needs a value for it.
    """
    hint = "Restore the columns, or name another table."
    for name, kind in wanted.items():
        if name not in found:
            raise ConfigError(f"{place} has no column {name}.", hint=hint)
        if found[name][0] != kind:
            text = f"{place}.{name} has the type {found[name][0]}, not {kind}."
            raise ConfigError(text, hint=hint)
    for name, (_, is_needed) in found.items():
        if is_needed and name not in wanted:
            raise ConfigError(f"{place}.{cut(name)} needs a value in each row.", hint=hint)


def interruptible(call: Callable[[], _Result], cancel: Callable[[], object]) -> _Result:
    """Runs a driver call on another thread, so that the main thread can handle signals.

    Drivers ignore Ctrl-C or raise their own error. If a signal handler raises, ``cancel`` cancels
    the call, and the exception is raised after its end.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    outcome: list[Any] = []
    done, claim = threading.Event(), threading.Lock()

    def run() -> None:
        # After an interrupt before this thread begins, the call must not begin either.
        if not claim.acquire(blocking=False):
            return
        try:
            outcome.extend((call(), None))
        except BaseException as error:
            outcome.extend((None, error))
        finally:
            done.set()

    try:
        try:
            threading.Thread(target=run, name="siteline target", daemon=True).start()
        except RuntimeError:  # the system starts no more threads
            if claim.acquire(blocking=False):
                return call()
            raise
        cancellations = _cancellations()
        while not done.wait(0.1):
            _check_cancelled(cancellations)
    except BaseException:
        if not claim.acquire(blocking=False):
            _end(done, cancel)
        raise
    result, error = outcome
    if error is not None:
        try:
            raise error
        finally:
            del error, outcome[:]
    return result  # type: ignore[no-any-return]


def _check_cancelled(before: int) -> None:
    if _cancellations() > before:
        raise sys.modules["asyncio"].CancelledError


def _cancellations() -> int:
    """The number of cancellations of the current asyncio task. Ctrl-C is one."""
    asyncio: Any = sys.modules.get("asyncio")
    with suppress(RuntimeError):  # no event loop is running
        task = asyncio and asyncio.current_task()
        return task.cancelling() if task else 0
    return 0


def _end(done: threading.Event, cancel: Callable[[], object]) -> None:
    """Cancels a call and waits for its end, because it uses the connection until then."""
    while not done.is_set():
        # Repeated, because the call may start after the first cancel. Ctrl-C is ignored.
        with suppress(BaseException):
            cancel()
            done.wait(0.1)
