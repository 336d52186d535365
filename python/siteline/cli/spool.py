"""The spool of a read: a folder with the query, and a store with each page that was read.

A read that was killed continues with the same chains, so that no page is paid twice. The cursors in
the store are secret: only the owner can read the files, and the folder if the read creates it. A
folder that existed before keeps its mode, and is not removed.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline.errors import ConfigError, StoreBusy

if TYPE_CHECKING:
    from siteline import Client, Store

_QUERY, _POINTS = "query.json", "siteline-read.spool"
_OWN = (_POINTS, f"{_QUERY}-new-")


class Spool:
    """A spool, which may not exist yet."""

    def __init__(self, path: str, *, is_made: bool) -> None:
        """Reads the query of the earlier run. ``is_made``: the folder is siteline's own."""
        self.path = path
        self.kept: dict[str, Any] | None = None
        self.is_damaged: bool = False
        """Whether there are pages, and their query cannot be read."""
        self._is_made = is_made
        self._store: Store | None = None
        self._lock: int | None = None
        self._load()

    @property
    def is_empty(self) -> bool:
        """Whether there is no earlier run."""
        return self.kept is None and not self.is_damaged

    def lock(self) -> None:
        """Excludes other runs until :meth:`close` or :meth:`remove`."""
        try:
            import fcntl
        except ImportError:
            # Windows has no locks of folders: a second read of the same output is not refused.
            return
        self._make()
        self._lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The other run may have removed this folder before it released the lock.
            is_same = os.path.samestat(os.fstat(self._lock), os.stat(self.path))
        except (BlockingIOError, FileNotFoundError):
            is_same = False
        if not is_same:
            self._unlock()
            text = f"Another run of siteline read uses {self.path}."
            raise StoreBusy(text, hint="Wait until it has ended, or write to another file.")
        self._load()

    def _make(self) -> None:
        # An existing folder is the user's own, unless a read has created it.
        with suppress(FileExistsError):
            os.makedirs(self.path, mode=0o700)
            self._is_made = True

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _load(self) -> None:
        path, self.kept, self.is_damaged = self.path, None, False
        if not os.path.lexists(path):
            return
        try:
            with open(os.path.join(path, _QUERY), encoding="utf-8") as file:
                self.kept = json.load(file)
            _ = [self.kept[name] for name in ("start", "end", "origin")]
            _ = self.kept["asked"].keys()
            self._is_made = self._is_made or self.kept["is_made"]
        except (
            *(FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError),
            AttributeError,
        ):
            self.kept = None
            if os.path.isdir(path) and all(map(_is_own, os.listdir(path))):
                # A kill may happen before the query is written: then there are no pages.
                self.is_damaged = _POINTS in os.listdir(path)
                return
            raise ConfigError(
                f"{path} is not the spool of a read, or has other files too.",
                hint="Move the other files away, or name an empty folder with --spool.",
            ) from None

    def begin(self, client: Client, asked: dict[str, Any], bounds: dict[str, Any]) -> None:
        """Creates the spool of a new read, with its options as typed and its fixed bounds."""
        self._make()
        origin = _origin(client)
        self.kept = {"asked": asked, **bounds, "origin": origin, "is_made": self._is_made}
        with _doors.whole_file(os.path.join(self.path, _QUERY), mode=0o600, keeps=False) as part:
            part.write_text(json.dumps(self.kept), encoding="utf-8")

    def check(self, client: Client, asked: dict[str, Any]) -> None:
        """Refuses to continue the read of another query."""
        assert self.kept is not None
        before = self.kept["asked"]
        changes = [
            f"--{name.replace('_', '-')} was {_text(before.get(name))}, "
            f"now {_text(asked.get(name))}"
            for name in dict.fromkeys([*before, *asked])
            if before.get(name) != asked.get(name)
        ]
        if asked and changes:
            raise ConfigError(
                f"{self.path} is of another query: {'; '.join(changes)}.",
                hint="Give no option of the query to continue the earlier read, or --restart.",
            )
        if self.kept["origin"] != _origin(client):
            raise ConfigError(
                f"{self.path} is of another service or subject.",
                hint="Use the profile of the earlier run, or --restart.",
            )

    @property
    def store(self) -> Store:
        """The store with the pages."""
        if self._store is None:
            self._store = _doors.spool(os.path.join(self.path, _POINTS))
        return self._store

    @property
    def pages(self) -> int:
        """The number of pages that are kept."""
        if not os.path.exists(os.path.join(self.path, _POINTS)):
            return 0
        return sum(feed["sequence"] for feed in _doors.overview(self.store))

    def close(self) -> None:
        """Closes the store, and lets other runs in."""
        self._close_store()
        self._unlock()

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def remove(self) -> None:
        """Removes the spool, and no other file."""
        self.clear()
        if self._is_made:
            with suppress(OSError):
                os.rmdir(self.path)
        self._unlock()

    def clear(self) -> None:
        """Removes the files of the spool."""
        self._close_store()
        self.kept, self.is_damaged = None, False
        if not os.path.isdir(self.path):
            return
        for name in os.listdir(self.path):
            if _is_own(name):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))


def _is_own(name: str) -> bool:
    return name == _QUERY or name.startswith(_OWN)


def _origin(client: Client) -> str:
    from hashlib import sha256

    return sha256(f"{client.base_url}\0{client.subject}".encode()).hexdigest()[:16]


def _text(value: Any) -> str:
    if value is None:
        return "not given"
    return " ".join(value) if isinstance(value, list) else str(value)
