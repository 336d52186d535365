"""The files of a store: their sizes, the room beside them, and who may use them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Permissions", "files_of", "free_bytes", "permissions_of", "size"]

# Beside the store: see docs/sync.md.
_SUFFIXES = ("", "-wal", "-shm", "-lock")


class Permissions(NamedTuple):
    """Who may use a store, as its file's mode says."""

    members: dict[str, Any]
    """As members of a document."""
    text: str
    """The same for a person."""


def files_of(path: Path) -> list[dict[str, Any]]:
    """Return the name and the size of the store's file and of those that are now beside it."""
    found = []
    for suffix in _SUFFIXES:
        file = path.with_name(path.name + suffix)
        try:
            found.append({"name": file.name, "bytes": file.stat().st_size})
        except FileNotFoundError:
            continue
    return found


def free_bytes(path: str | Path) -> int:
    """Return how much this user may still write to the disk of the store."""
    import shutil

    return shutil.disk_usage(Path(path).parent).free


def permissions_of(path: str | Path) -> Permissions:
    """Return the owner, the group and the mode of the store's file, and what they mean."""
    if os.name != "posix":
        none = {"mode": None, "owner": None, "group": None, "may_read": None, "may_write": None}
        return Permissions(none, "as the permissions of its file say")
    status = os.stat(path)
    owner, group = _owner(status.st_uid), _group(status.st_gid)
    mode = status.st_mode & 0o7777
    shifts = {"owner": 6, "group": 3, "others": 0}
    readers = [name for name, shift in shifts.items() if mode >> shift & 4]
    writers = [name for name, shift in shifts.items() if mode >> shift & 2]
    members = {
        "mode": f"{mode:04o}",
        "owner": owner,
        "group": group,
        "may_read": readers,
        "may_write": writers,
    }
    named = {"owner": f"its owner {owner}", "group": f"the group {group}", "others": "all others"}
    allowed = [
        f"{named[name]} ({'reads and writes' if name in writers else 'reads'})" for name in readers
    ]
    return Permissions(members, f"{', '.join(allowed) or 'root alone'}; mode {mode:04o}")


def _owner(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def size(count: int) -> str:
    """Write a number of bytes, as ``35.5 MB``."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= one:
            return f"{count / one:,.1f} {unit}"
    return f"{count} bytes"
