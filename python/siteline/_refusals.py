"""Temporary failures of the system: no threads, open files or disk space, or a failing disk."""

from __future__ import annotations

import errno

from siteline._core import _refusal

_NAMES = (
    *("ENOSPC", "EDQUOT", "EIO", "EREMOTEIO", "ENXIO", "ESTALE", "ETIMEDOUT"),
    *("EMFILE", "ENFILE", "ENOMEM", "EAGAIN"),
)
_PASSING = frozenset(getattr(errno, name) for name in _NAMES if hasattr(errno, name))


def is_passing(error: BaseException) -> bool:
    """Whether an error is temporary: the system lacked a resource, or a disk failed."""
    return isinstance(error, OSError) and error.errno in _PASSING


def reason(error: OSError) -> str | None:
    """Return the system's message; if too many files are open, also the limit."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return _refusal(error.errno)[0]
    return error.strerror


def no_process(error: OSError) -> str | None:
    return no_thread()[0] if error.errno == errno.EAGAIN else reason(error)


def no_thread() -> tuple[str, str | None]:
    """Return the reason why the system started no thread or process, and a hint."""
    return _refusal(None)
