"""The checks of stores and versions on this machine."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline import __version__
from siteline._counts import counted
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline.errors import StoreBusy
from siteline.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteline._doctor.look import Look

_TRIES = 3
_LEAST_FREE = 100_000_000
_SUFFIXES = ("", "-wal", "-shm", "-lock")
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)\s*\(?>=\s*([0-9.]+)\)?\s*;.*extra\s*==")


def stores(look: Look) -> Seen | list[tuple[str, Seen]]:
    """Checks each store."""
    if not look.stores:
        return skipped("no store is named")
    return [(f"store {path}", _guarded(path)) for path in look.stores]


def _guarded(path: str) -> Seen:
    """A store that fails does not prevent the check of the next one."""
    try:
        return _store(path)
    except Exception as error:
        return fail(error)


def _store(path: str) -> Seen:
    feeds = _checked(path)
    full = os.path.abspath(path)
    permissions, free = permissions_of(full), free_bytes(full)
    seen = (
        f"{path}: whole, {counted(feeds, 'feed')}, {size(os.path.getsize(path))}; "
        f"{size(free)} free; {permissions.text}"
    )
    if "others" in (permissions.members["may_read"] or ()):
        return warn(seen, f"It contains cursors, which are secret: chmod o-r {path}")
    if free < _LEAST_FREE:
        return warn(seen, "Free some space: a sync stops when the disk is full.")
    return ok(seen)


def _checked(path: str, tries: int = _TRIES) -> int:
    """Compares a store with its checksums. Retries while a sync opens the store."""
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "there is no store", path)
    try:
        with Store(path, read_only=True) as store:
            store.check()
            return len(store.feeds)
    except StoreBusy:
        if tries == 1:
            raise
        return _checked(path, tries - 1)


def versions(look: Look) -> Seen:
    """Checks that the installed optional packages are new enough."""
    import platform

    found = [(name, _installed(name), lowest) for name, lowest in _lowest()]
    here = [(name, version, lowest) for name, version, lowest in found if version is not None]
    parts = [f"siteline {__version__}", f"Python {platform.python_version()}"]
    seen = ", ".join([*parts, *(f"{name} {version}" for name, version, _ in here)])
    old = [f"{name} {lowest}" for name, version, lowest in here if _is_older(version, lowest)]
    return warn(seen, f"Update to at least {', '.join(old)}.") if old else ok(seen)


def _lowest() -> Iterator[tuple[str, str]]:
    """Yields the optional packages and their lowest versions, as the package states them."""
    from importlib import metadata

    try:
        stated = metadata.requires("siteline") or []
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return
    found = (_REQUIREMENT.match(one) for one in stated)
    yield from {match[1]: match[2] for match in found if match}.items()


def _installed(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_older(version: str, lowest: str) -> bool:
    numbers = re.match(r"[0-9.]*[0-9]", version)
    return numbers is not None and _parts(numbers[0]) < _parts(lowest)


def _parts(version: str) -> tuple[int, ...]:
    """Returns the numbers without zeros at the end: 2.0 equals 2."""
    return tuple(int(one) for one in re.sub(r"(\.0+)+$", "", version).split(".") if one)


class Permissions(NamedTuple):
    """Who may use a store, by the mode of its file."""

    members: dict[str, Any]
    text: str


def files_of(path: Path) -> list[dict[str, Any]]:
    """Returns name and size of the store's file and of the files next to it."""
    found = []
    for file in (path.with_name(path.name + suffix) for suffix in _SUFFIXES):
        with suppress(FileNotFoundError):
            found.append({"name": file.name, "bytes": file.stat().st_size})
    return found


def free_bytes(path: str | Path) -> int:
    """Returns the free space on the disk of the store."""
    import shutil

    return shutil.disk_usage(Path(path).parent).free


def permissions_of(path: str | Path) -> Permissions:
    """Returns owner, group and mode of the store's file, and their meaning."""
    names = ("mode", "owner", "group", "may_read", "may_write")
    if os.name != "posix":
        return Permissions(dict.fromkeys(names), "by the permissions of its file")
    status = os.stat(path)
    owner, group = _names(status)
    mode = status.st_mode & 0o7777
    labels = {"owner": f"its owner {owner}", "group": f"the group {group}", "others": "all others"}
    shifts = dict(zip(labels, (6, 3, 0), strict=True))
    readers = [name for name, shift in shifts.items() if mode >> shift & 4]
    writers = [name for name, shift in shifts.items() if mode >> shift & 2]
    allowed = ", ".join(
        f"{labels[name]} ({'reads and writes' if name in writers else 'reads'})" for name in readers
    )
    values = (f"{mode:04o}", owner, group, readers, writers)
    return Permissions(
        dict(zip(names, values, strict=True)), f"{allowed or 'only root'}; mode {mode:04o}"
    )


def _names(status: os.stat_result) -> tuple[str, str]:
    """Returns the names of owner and group, or their numbers."""
    import grp
    import pwd

    try:
        owner = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        owner = str(status.st_uid)
    try:
        return owner, grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        return owner, str(status.st_gid)


def size(count: int) -> str:
    """Formats a number of bytes, as ``35.5 MB``."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= one:
            return f"{count / one:,.1f} {unit}"
    return f"{count} bytes"
