"""The exit statuses of the command, for cron, schedulers and shells."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit status of a command. A status keeps its meaning; new ones may be added."""

    DONE = 0
    FAULT = 1
    USAGE = 2
    REFUSED = 3
    TEMPORARY = 4
    SPENT = 5
    INCOMPLETE = 6
    DAMAGED = 7
    BUSY = 75
    INTERRUPTED = 130
    CLOSED_PIPE = 141


_MEANINGS = {
    Exit.DONE: "done",
    Exit.FAULT: "a fault of siteline itself: please report it",
    Exit.USAGE: "usage: the command line, a setting or a named file is wrong",
    Exit.REFUSED: "refused by the service: credential, scope or request",
    Exit.TEMPORARY: "temporary: all tries failed, a time limit passed, a disk is full or fails",
    Exit.SPENT: "the daily allowance is spent; the same command continues later (--skip-code N)",
    Exit.INCOMPLETE: "incomplete: a part could not be read, or was left out as asked",
    Exit.DAMAGED: "damaged: a store, a ledger, or a reply of the service",
    Exit.BUSY: "another run holds the feed or the output; try again later",
    Exit.INTERRUPTED: "interrupted (Ctrl-C); the pages are kept",
    Exit.CLOSED_PIPE: "the reader closed the output",
}

# The nearest class of an exception decides. An OSError is about a file that was named.
_CLASSES = {
    Exit.USAGE: "ConfigError BookmarkError RedirectRefused StoreError OSError",
    Exit.REFUSED: "ServiceError",
    Exit.TEMPORARY: "TransportError DeadlineExceeded RateLimited ServiceUnavailable StoreFull",
    Exit.SPENT: "AllowanceExhausted",
    Exit.INCOMPLETE: "PageLimitReached CursorLoop EndlessChain CursorRejected UnreadRange",
    Exit.DAMAGED: "ProtocolError StoreCorrupt",
    Exit.BUSY: "StoreBusy",
}
_OF_CLASSES = {name: status for status, names in _CLASSES.items() for name in names.split()}


def status_of(error: BaseException) -> Exit:
    """Returns the exit status for an exception; :attr:`Exit.FAULT` for an unexpected one."""
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return Exit.CLOSED_PIPE
    from siteline._refusals import is_passing

    if is_passing(error):
        return Exit.TEMPORARY
    names = [kind.__name__ for kind in type(error).__mro__]
    status = next((_OF_CLASSES[name] for name in names if name in _OF_CLASSES), Exit.FAULT)
    may_pass = getattr(error, "retryable", False)
    if status is Exit.TEMPORARY and not may_pass and {"TlsError", "ProxyError"} & {*names}:
        return Exit.USAGE  # an untrusted certificate or a wrong proxy
    if status is Exit.USAGE and may_pass:
        return Exit.TEMPORARY  # a named file failed: no descriptor, no space or a failing disk
    return status


def table() -> str:
    """Returns a line about each status."""
    return "\n".join(f"{status:>5}  {_MEANINGS[status]}" for status in Exit)
