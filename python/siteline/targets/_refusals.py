"""Errors for the refusals of another database, and calls of its driver that Ctrl-C can end."""

from __future__ import annotations

import re
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from siteline.errors import ConfigError, StoreError, StoreFull

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Result = TypeVar("_Result")
_LONGEST = 300
_FULL = re.compile("No space left on device|Disk quota exceeded|os error (28|122)")
CORRECT = "Correct the table, or read the other series in a new feed with a filter."
"""The hint for values that a table refuses."""


def refused(place: str, feed: str, text: str) -> StoreError:
    """Make the error of a target that cannot be written, before any request."""
    message = f"The feed {feed!r} cannot be written to {place}: {cut(text)}"
    if is_full(text):
        return full(place, feed)
    hint = "No request was made. Correct the tables or the rights of the user, and sync again."
    return StoreError(message, hint=hint)


def full(place: str, feed: str) -> StoreFull:
    """Make the error of a target without space."""
    return StoreFull(
        f"No space is left for the feed {feed!r} in {place}. What was stored stays.",
        hint="Free space and sync again: only pages that were not stored are read again.",
    )


def is_full(text: str) -> bool:
    """Whether the text of an error names a full disk or quota."""
    return _FULL.search(text) is not None


def unstorable(place: str, feed: str, text: str, hint: str | None = None) -> StoreError:
    """Make the error for values that a target cannot store: the core sets their range aside."""
    message = f"{place} cannot store a page of the feed {feed!r}: {text}"
    return StoreError(message, hint=hint, _is_unstorable=True)


def cut(text: str) -> str:
    """Return text of others on one line, escaped and at most 300 characters long."""
    line = " ".join(text[: 2 * _LONGEST].split())
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def shown(place: str) -> str:
    """Return a path or URI without a user, a password and options."""
    if "://" not in place and not place.startswith("md:"):
        return place
    return re.sub(r"//[^/]*@", "//", place.partition("?")[0])


def check_types(
    place: str, found: Mapping[str, tuple[str, bool]], wanted: Mapping[str, str]
) -> None:
    """Refuse a table whose columns would change values, or that needs a column of others.

    ``found`` has the type of each column, and whether a row needs a value for it.
    """
    hint = "Restore the columns, or name another table."
    for name, kind in wanted.items():
        if name not in found:
            raise ConfigError(f"{place} has no column {name}.", hint=hint)
        if found[name][0] != kind:
            raise ConfigError(
                f"{place}.{name} has the type {found[name][0]}, not {kind}.", hint=hint
            )
    for name, (_, is_needed) in found.items():
        if is_needed and name not in wanted:
            raise ConfigError(f"{place}.{cut(name)} needs a value in each row.", hint=hint)


def interruptible(call: Callable[[], _Result], cancel: Callable[[], object]) -> _Result:
    """Make a call of a driver on another thread, and handle signals meanwhile.

    Some drivers raise their own error for Ctrl-C, others do not answer it. An exception of a signal
    handler cancels the call with ``cancel``, and is raised when the call has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    outcome: list[Any] = []
    done = threading.Event()

    def run() -> None:
        try:
            outcome.extend((call(), None))
        except BaseException as error:
            outcome.extend((None, error))
        finally:
            done.set()

    try:
        threading.Thread(target=run, name="siteline target", daemon=True).start()
    except RuntimeError:  # there is no thread to be had
        return call()
    try:
        cancellations = _cancellations()
        while not done.wait(0.1):
            _check_cancelled(cancellations)
    except BaseException:
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
    """Count the cancellations of the asyncio task that runs here: Ctrl-C is one of them there."""
    asyncio: Any = sys.modules.get("asyncio")
    with suppress(RuntimeError):  # no loop runs here
        task = asyncio and asyncio.current_task()
        return task.cancelling() if task else 0
    return 0


def _end(done: threading.Event, cancel: Callable[[], object]) -> None:
    """Wait for the end of a call: nothing else may use its connection before."""
    while not done.is_set():
        # It may not have begun at the first time. A further Ctrl-C changes nothing.
        with suppress(BaseException):
            cancel()
            done.wait(0.1)
