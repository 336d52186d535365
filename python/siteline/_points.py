"""Points as dicts and as named tuples: :class:`RecordIterator`, and its base for asyncio."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from siteline._awaiting import wait_for
from siteline._counts import counted
from siteline._handles import OfThisProcess
from siteline._kept import noted
from siteline._records.requests import Progress
from siteline.progress import finish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteline._awaiting import Steps
    from siteline._core import _Points

BOOKMARK = "pickle the scan, and page.bookmark for the position in it"
_Row_co = TypeVar("_Row_co", covariant=True)


def next_page(source: _Points, callback: Any) -> Steps[None]:
    """Read the next page, unless one has arrived, and report its progress."""
    try:
        progress = source._report()
        if progress is None:
            yield source._fill()
            progress = source._report()
        if progress is not None and callback is not None:
            callback(Progress._restore(progress))
    except Exception:
        finish(callback)
        raise


class Points(OfThisProcess, Generic[_Row_co]):
    """The points of a scan, a table or a store. Each is returned once."""

    _instead = BOOKMARK

    def __init__(
        self, source: _Points | None, named: bool, scan: Any = None, callback: Any = None
    ) -> None:
        """Wrap the points of the core."""
        self._source, self._scan, self._callback = source, scan, callback
        self._named = named
        self._count = 0
        self._ready: deque[Iterator[_Row_co]] = deque()

    def _at_hand(self) -> Iterator[Iterator[_Row_co]]:
        """Yield the records that are ready, in parts. Unused records stay ready."""
        for part in self._ready.copy():
            yield part
            with suppress(ValueError):  # another thread has removed it
                self._ready.remove(part)

    def _more(self) -> Steps[bool]:
        """Fetch more records. Return false after the last ones."""
        if self._source is None:
            begun = yield from self._scan._points()
            if self._source is None:  # another task may have been first
                self._source, self._callback = begun
        with noted(self._scan, "records", self._returned_points):
            while (count := self._source._take(self._ready, self._named)) is None:
                yield from next_page(self._source, self._callback)
        self._count += count
        if not count:
            finish(self._callback)
        return count > 0

    def _returned_points(self) -> str:
        return f"{counted(self._count, 'point')} {'was' if self._count == 1 else 'were'}"


class RecordIterator(Points[_Row_co]):
    """The points of a scan, a table or a store, one by one.

    Threads may share it: each point is returned once. An error has ``bookmark``, the position after
    the pages whose points were returned before it. It prefetches as :meth:`Scan.pages` does.
    """

    __module__ = "siteline.types"

    def __iter__(self) -> Iterator[_Row_co]:
        """Yield the points that were not returned yet."""
        return chain.from_iterable(self._parts())

    def _parts(self) -> Iterator[Iterator[_Row_co]]:
        while True:
            yield from self._at_hand()
            if not wait_for(self._more()):
                return

    def __next__(self) -> _Row_co:
        """Return the next point."""
        for record in self:
            return record
        raise StopIteration
