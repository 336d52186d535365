"""The stores that were named: opened to read alone."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from siteline._counts import counted
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline._doctor.store_files import free_bytes, permissions_of, size
from siteline.errors import StoreBusy
from siteline.store import Store

if TYPE_CHECKING:
    from siteline._doctor.look import Look

__all__: list[str] = []

_TRIES = 3
_LEAST_FREE = 100_000_000


def stores(look: Look) -> Seen | list[tuple[str, Seen]]:
    """Look at each store."""
    if not look.stores:
        return skipped("no store is named")
    return [(f"store {path}", _guarded(path)) for path in look.stores]


def _guarded(path: str) -> Seen:
    """A store that fails does not keep the next one from being looked at."""
    try:
        return _store(path)
    except Exception as error:
        return fail(error)


def _store(path: str) -> Seen:
    feeds = _checked(path)
    with_path = os.path.abspath(path)
    permissions, free = permissions_of(with_path), free_bytes(with_path)
    held = f"{counted(feeds, 'feed')}, {size(os.path.getsize(path))}"
    seen = f"{path}: whole, {held}; {size(free)} free; {permissions.text}"
    if "others" in (permissions.members["may_read"] or ()):
        return warn(seen, f"It holds cursors, which are secret: chmod o-r {path}")
    if free < _LEAST_FREE:
        return warn(seen, "Free some space: a sync stops where its store is full.")
    return ok(seen)


def _checked(path: str) -> int:
    """Compare it with its checksums; a sync that opens it meanwhile makes that busy, once."""
    for _ in range(_TRIES - 1):
        try:
            return _check(path)
        except StoreBusy:
            continue
    return _check(path)


def _check(path: str) -> int:
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "there is no store", path)
    with Store(path, read_only=True) as store:
        store.check()
        return len(store.feeds)
