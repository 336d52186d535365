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

# The nearest class of an exception decides.
_OF_CLASSES = {
    "ConfigError": Exit.USAGE,
    "BookmarkError": Exit.USAGE,
    "RedirectRefused": Exit.USAGE,
    "TransportError": Exit.TEMPORARY,
    "DeadlineExceeded": Exit.TEMPORARY,
    "PageLimitReached": Exit.INCOMPLETE,
    "ProtocolError": Exit.DAMAGED,
    "CursorLoop": Exit.INCOMPLETE,
    "EndlessChain": Exit.INCOMPLETE,
    "ServiceError": Exit.REFUSED,
    "CursorRejected": Exit.INCOMPLETE,
    "RateLimited": Exit.TEMPORARY,
    "AllowanceExhausted": Exit.SPENT,
    "ServiceUnavailable": Exit.TEMPORARY,
    "StoreError": Exit.USAGE,
    "StoreBusy": Exit.BUSY,
    "StoreFull": Exit.TEMPORARY,
    "StoreCorrupt": Exit.DAMAGED,
    "UnreadRange": Exit.INCOMPLETE,
    # A file that was named: missing, not permitted, a directory.
    "OSError": Exit.USAGE,
}


def status_of(error: BaseException) -> Exit:
    """Returns the exit status for an exception; :attr:`Exit.FAULT` for an unexpected one."""
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return Exit.CLOSED_PIPE
    from siteline._refusals import is_passing

    if is_passing(error):
        return Exit.TEMPORARY
    names = (kind.__name__ for kind in type(error).__mro__)
    status = next((_OF_CLASSES[name] for name in names if name in _OF_CLASSES), Exit.FAULT)
    if status is Exit.TEMPORARY and _is_about_settings(error):
        return Exit.USAGE
    if status is Exit.USAGE and getattr(error, "retryable", False):
        # A named file failed for a temporary reason: no descriptor, no space or a failing disk.
        return Exit.TEMPORARY
    return status


def _is_about_settings(error: BaseException) -> bool:
    """Returns whether a connection fails at every try: an untrusted certificate, a wrong proxy."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint({"TlsError", "ProxyError"}) and not getattr(
        error, "retryable", False
    )


def table() -> str:
    """Returns a line about each status."""
    return "\n".join(f"{status:>5}  {_MEANINGS[status]}" for status in Exit)
