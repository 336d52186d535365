"""Files that are replaced whole or not at all, and the folders that they need."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

__all__ = ["make_folder", "replace_file"]


def replace_file(path: Path, content: bytes, *, follows_link: bool = False) -> None:
    """Give a file this content; whoever reads it, or is killed, finds the former or the new one.

    A new file is for its owner alone. With ``follows_link`` the file behind a link is replaced, and
    keeps its owner and permissions; without, whatever has the name makes way for a new file.
    """
    target = Path(os.path.realpath(path)) if follows_link else path
    part = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.new")
    try:
        former = _former(target) if follows_link else None
        _write(part, content, former)
        os.replace(part, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise
    _sync_names(target.parent)


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone, and those above it that are missing."""
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(0o700)
    except FileExistsError:
        # Another process was faster, or it is no folder.
        if not path.is_dir():
            raise
        return
    _give_away(path, path.parent)


def _former(target: Path) -> os.stat_result | None:
    """The file that is replaced, which this user must be allowed to write to."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return found


def _write(part: Path, content: bytes, former: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
        if former is None:
            _give_away(part, part.parent)
        elif os.name == "posix":
            _take_over(file.fileno(), former)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _take_over(file: int, former: os.stat_result) -> None:
    made = os.fstat(file)
    if (made.st_uid, made.st_gid) != (former.st_uid, former.st_gid):
        try:
            os.fchown(file, former.st_uid, former.st_gid)
        except PermissionError:
            text = "only its owner can replace it and keep its owner and group"
            raise PermissionError(errno.EPERM, text) from None
    # After the owner: a change of the owner may clear bits of the mode.
    os.fchmod(file, stat.S_IMODE(former.st_mode))


def _give_away(made: Path, above: Path) -> None:
    """Let what root makes in a user's folder belong to that user, who has to use it."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        owner = above.stat()
        os.chown(made, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _sync_names(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
