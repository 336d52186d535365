"""The exit statuses of the command: its interface for cron, schedulers and shells."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Exit", "status_of", "table"]


class Exit(IntEnum):
    """What a command ends with. A status keeps its meaning; new ones may be added."""

    DONE = 0
    """Done."""
    FAULT = 1
    """A fault of siteline itself: please report it."""
    USAGE = 2
    """The command line, a setting or a file that was named is wrong."""
    REFUSED = 3
    """The service refused: credential, scope or request."""
    TEMPORARY = 4
    """Temporary: all tries failed, a time limit passed, a disk is full or fails."""
    SPENT = 5
    """The daily allowance is spent; the same command goes on later."""
    INCOMPLETE = 6
    """Incomplete: a part of what was asked for could not be read, or was left out as asked."""
    DAMAGED = 7
    """Damaged: a store, a ledger, or what the service sent."""
    BUSY = 75
    """Another run holds the feed; try again later."""
    INTERRUPTED = 130
    """Ctrl-C; what was read is kept."""
    CLOSED_PIPE = 141
    """Whoever read the output closed it."""


_MEANINGS = {
    Exit.DONE: "done",
    Exit.FAULT: "a fault of siteline itself: please report it",
    Exit.USAGE: "usage: the command line, a setting or a file that was named is wrong",
    Exit.REFUSED: "refused by the service: credential, scope or request",
    Exit.TEMPORARY: "temporary: all tries failed, a time limit passed, a disk is full or fails",
    Exit.SPENT: "the daily allowance is spent; the same command goes on later (--skip-code N)",
    Exit.INCOMPLETE: "incomplete: a part could not be read, or was left out as asked",
    Exit.DAMAGED: "damaged: a store, a ledger, or what the service sent",
    Exit.BUSY: "another run holds the feed; try again later",
    Exit.INTERRUPTED: "interrupted (Ctrl-C); what was read is kept",
    Exit.CLOSED_PIPE: "whoever read the output closed it",
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
    """Return the exit status for an exception; :attr:`Exit.FAULT` for one that nobody expects."""
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
    """Whether a connection fails at every try: a certificate that is not trusted, a wrong proxy."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint({"TlsError", "ProxyError"}) and not getattr(
        error, "retryable", False
    )


def table() -> str:
    """Return the statuses and their meanings, a line each."""
    return "\n".join(f"{status:>5}  {_MEANINGS[status]}" for status in Exit)
