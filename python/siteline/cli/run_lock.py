"""A lock file: one run at a time writes to an output or a spool."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["locked"]


@contextmanager
def locked(path: str, what: str) -> Iterator[None]:
    """Hold the lock file of this path, which is removed at the end.

    Raises :class:`StoreBusy` where another process holds it. A process that is killed leaves the
    file, and holds nothing.
    """
    file = _lock(path, what)
    try:
        yield
    finally:
        # Windows removes no open file. Where another run locks it in between, it stays.
        if sys.platform == "win32":
            os.close(file)
        with suppress(OSError):
            os.unlink(path)
        if sys.platform != "win32":
            os.close(file)


def _lock(path: str, what: str) -> int:
    from siteline.errors import StoreBusy

    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            is_held = _try(file)
            # The run that held it may have removed it meanwhile: then this is a file of no name.
            if is_held and _is_at(file, path):
                _belong_to_folder(file, path)
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        if not is_held:
            break
    raise StoreBusy(
        f"another run writes to {what}",
        hint="Wait for its end. This run has read nothing, and changed nothing.",
        retryable=True,
    )


def _try(file: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        import errno

        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _belong_to_folder(file: int, path: str) -> None:
    """Have what root makes in a user's folder belong to the user, who could not open it else."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        folder = os.stat(os.path.dirname(path) or ".")
        with suppress(OSError):
            os.fchown(file, folder.st_uid, folder.st_gid)
