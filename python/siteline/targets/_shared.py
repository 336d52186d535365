"""The shared code of the targets."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline._keywords import explain
from siteline.errors import ConfigError, QueryError, StoreBusy
from siteline.targets import _refusals
from siteline.types import Coverage, Lateness

if TYPE_CHECKING:
    from typing import Self

IDS: tuple[str, ...] = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
VALUES: tuple[str, ...] = ("value", "minimum", "maximum", "sample_count")
COLUMNS: tuple[str, ...] = ("feed", *IDS, "timestamp", *VALUES, "sequence", "seen", "withdrawn")
"""The columns of a table of points. ``sequence`` is the page that changed the point last, ``seen``
the newest page that contained it."""

_busy: set[tuple[str, str]] = set()
_guard = threading.Lock()


class SharedTarget(ABC):
    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        explain(cls)

    _place = _path = ""

    def __repr__(self) -> str:
        # A path may be an address with a token. Without a place the constructor failed.
        shown = [self._place or type(self).__name__, _refusals.shown(self._path)]
        return escaped(f"<{' '.join(filter(None, shown))}>")

    @abstractmethod
    def state(self, feed: str) -> bytes | None: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _offset(self, consumer: str, feed: str) -> int | None: ...

    @abstractmethod
    def _set_offset(self, consumer: str, feed: str, sequence: int) -> None: ...

    def coverage(self, feed: str, now: datetime | str | None = None) -> Coverage:
        """Return the read and settled windows of a feed, as :meth:`Coverage.from_state`."""
        return Coverage.from_state(self._known(feed), now)

    def lateness(self, feed: str) -> Lateness:
        """Return how late points arrive, as :meth:`Lateness.from_state`."""
        return Lateness.from_state(self._known(feed))

    def offset(self, consumer: str, feed: str) -> int:
        """Return the sequence of the last page that a consumer has read; 0 at first.

        Args:
            consumer: A name that you choose for a program that reads the changes of feeds.
            feed: The name of the feed.
        """
        return self._offset(consumer, feed) or 0

    def set_offset(self, consumer: str, feed: str, sequence: int) -> None:
        """Store the sequence of the last page that a consumer has read.

        Args:
            consumer: The name that :meth:`offset` gets.
            feed: The name of the feed.
            sequence: The highest ``sequence`` of the changes that the consumer has processed.
        """
        self._set_offset(consumer, feed, sequence)

    def _known(self, feed: str) -> bytes:
        state = self.state(feed)
        if state is None:
            raise QueryError(f"There is no feed {feed!r} here.")
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextmanager
def held_in_process(place: str, feed: str) -> Iterator[None]:
    """Hold a feed of a place (a resolved path), or raise StoreBusy."""
    key = (place, feed)
    with _guard:
        if key in _busy:
            raise StoreBusy(f"Another sync of this process writes the feed {feed!r} to {place}.")
        _busy.add(key)
    try:
        yield
    finally:
        with _guard:
            _busy.discard(key)


def check_columns(place: str, found: Iterable[str], wanted: Iterable[str] = COLUMNS) -> None:
    """Reject a table with other columns, before any request."""
    found = set(found)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise ConfigError(
            f"{place} has no column {', '.join(missing)}: it is not a siteline table.",
            hint="Name another table, or remove this one.",
        )


def counted(page: Any, inserted: int, revised: int, withdrawn: int) -> tuple[int, int, int, int]:
    rows = 0 if page is None else len(page)
    return inserted, revised, rows - inserted - revised, withdrawn
