"""What the system refuses for the moment: threads, open files, space, a disk that fails."""

from __future__ import annotations

import errno

from siteline._siteline import _refusal

__all__ = ["is_passing", "no_process", "no_thread", "reason"]

_NAMES = (
    "ENOSPC",
    "EDQUOT",
    "EFBIG",
    "EIO",
    "EREMOTEIO",
    "ENXIO",
    "ESTALE",
    "ETIMEDOUT",
    "EMFILE",
    "ENFILE",
    "ENOMEM",
    "EAGAIN",
)
_PASSING = frozenset(getattr(errno, name) for name in _NAMES if hasattr(errno, name))
"""The numbers after which the same operation may succeed later, with nothing changed in it."""


def is_passing(error: BaseException) -> bool:
    """Whether the system lacked something for the moment, or a disk failed."""
    return isinstance(error, OSError) and error.errno in _PASSING


def reason(error: OSError) -> str | None:
    """Return why an operation failed, in the system's words; a limit of open files is named."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return _refusal(error.errno)[0]
    return error.strerror


def no_process(error: OSError) -> str | None:
    """Return why no process could be started."""
    return no_thread()[0] if error.errno == errno.EAGAIN else reason(error)


def no_thread() -> tuple[str, str | None]:
    """Return why no thread, or process, could be started, and what helps."""
    return _refusal(None)
