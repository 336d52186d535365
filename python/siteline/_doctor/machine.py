"""The checks of stores and versions on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from siteline import __version__
from siteline._counts import counted
from siteline._doctor.seen import Seen, ok, warn
from siteline.errors import StoreBusy
from siteline.store import Store

_Result = TypeVar("_Result")
_LEAST_FREE = 100_000_000
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)\s*\(?>=\s*([0-9.]+)\)?\s*;.*extra\s*==")


def store(path: str) -> Seen:
    feeds = checked(path)
    full = os.path.abspath(path)
    (permissions, users), free = permissions_of(full), free_bytes(full)
    seen = (
        f"{path}: whole, {counted(feeds, 'feed')}, {size(os.path.getsize(path))}; "
        f"{size(free)} free; {users}"
    )
    if "others" in (permissions["may_read"] or ()):
        return warn(seen, f"It contains cursors, which are secret: chmod o-r {path}")
    if free < _LEAST_FREE:
        return warn(seen, "Free some space: a sync stops when the disk is full.")
    return ok(seen)


def checked(path: str, *, progress: bool = False) -> int:
    """Compares a store with its checksums, and returns the number of feeds."""

    def work(store: Store) -> int:
        store.check(progress=progress)
        return len(store.feeds)

    return read(path, work)


def read(path: str, work: Callable[[Store], _Result], tries: int = 3) -> _Result:
    """Opens the store for reading, and returns the result of the work.

    A store that nobody has open is read without its log. If a sync opens it at this moment, the
    read is busy; the next try reads next to the sync.
    """
    try:
        with Store(path, labels=False, read_only=True) as store:
            return work(store)
    except StoreBusy:
        if tries == 1:
            raise
        return read(path, work, tries - 1)


def versions() -> Seen:
    import platform

    found = list(_optional_packages())
    parts = [f"siteline {__version__}", f"Python {platform.python_version()}"]
    seen = ", ".join([*parts, *(f"{name} {version}" for name, version, _ in found)])
    old = [
        f"{name} {lowest}"
        for name, version, lowest in found
        if _numbers(version) < _numbers(lowest)
    ]
    return warn(seen, f"Update to at least {', '.join(old)}.") if old else ok(seen)


def _optional_packages() -> Iterator[tuple[str, str, str]]:
    """Yields each installed optional package, its version, and the lowest supported one."""
    from importlib import metadata

    lowest: dict[str, str] = {}
    with suppress(metadata.PackageNotFoundError):  # a source tree that is not installed
        stated = map(_REQUIREMENT.match, metadata.requires("siteline") or [])
        lowest = {match[1]: match[2] for match in stated if match}
    for name in lowest:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name), lowest[name]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", version)]


def free_bytes(path: str | Path) -> int:
    import shutil

    return shutil.disk_usage(Path(path).parent).free


def permissions_of(path: str | Path) -> tuple[dict[str, Any], str]:
    """The users who may open a store, by the mode of its file: for a document, and as text."""
    names = ("mode", "owner", "group", "may_read", "may_write")
    if os.name != "posix":
        return dict.fromkeys(names), "by the permissions of its file"
    file, status = Path(path), os.stat(path)
    owner, group = _name(file.owner, status.st_uid), _name(file.group, status.st_gid)
    mode = status.st_mode & 0o7777
    users = {"owner": f"its owner {owner}", "group": f"the group {group}", "others": "all others"}
    shifts = dict(zip(users, (6, 3, 0), strict=True))
    readers, writers = (
        [user for user, shift in shifts.items() if mode >> shift & bit] for bit in (4, 2)
    )
    allowed = ", ".join(
        f"{users[user]} ({'reads and writes' if user in writers else 'reads'})" for user in readers
    )
    members = dict(zip(names, (f"{mode:04o}", owner, group, readers, writers), strict=True))
    return members, f"{allowed or 'only root'}; mode {mode:04o}"


def _name(find: Callable[[], str], number: int) -> str:
    try:
        return find()
    except KeyError:
        return str(number)


def size(count: int) -> str:
    """A number of bytes, as ``35.5 MB``."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= one:
            return f"{count / one:,.1f} {unit}"
    return f"{count} bytes"
