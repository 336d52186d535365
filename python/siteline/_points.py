"""Points as dicts and as named tuples: :class:`RecordIterator`, and its base for asyncio."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from siteline._awaiting import wait_for
from siteline._counts import counted
from siteline._handles import OfThisProcess
from siteline._kept import Telling
from siteline._records.series import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteline._awaiting import Steps
    from siteline._core import _Points

__all__ = ["BOOKMARK", "Points", "RecordIterator", "dicts"]

BOOKMARK = "pickle the scan, and page.bookmark for the position in it"
_Row_co = TypeVar("_Row_co", covariant=True)


def dicts(
    names: list[str], columns: list[list[Any]], is_one: bool = False
) -> Iterable[dict[str, Any]]:
    """Return the rows of some columns as dicts. ``is_one``: all are of one series."""
    if tuple(names) != Record._fields:
        return [dict(zip(names, row)) for row in zip(*columns)]  # noqa: B905
    if not is_one:
        return [
            {
                "site_id": site,
                "line_id": line,
                "machine_id": machine,
                "device_id": device,
                "tag_guid": tag,
                "timestamp": timestamp,
                "value": value,
                "minimum": minimum,
                "maximum": maximum,
                "sample_count": count,
            }
            for site, line, machine, device, tag, timestamp, value, minimum, maximum, count in zip(
                *columns, strict=True
            )
        ]
    # A copy of a dict with the ids is faster than a new one, also because it does not grow.
    copy = dict(zip(names, (column[0] for column in columns), strict=True)).copy
    rows = []
    for timestamp, value, minimum, maximum, count in zip(*columns[5:], strict=True):
        row = copy()
        row["timestamp"] = timestamp
        row["value"] = value
        row["minimum"] = minimum
        row["maximum"] = maximum
        row["sample_count"] = count
        rows.append(row)
    return rows


def _records(
    _names: list[str], columns: list[list[Any]], _is_one: bool = False
) -> Iterable[Record]:
    # `map` makes each record when it is taken, in C, so that threads may share it.
    return map(tuple.__new__, repeat(Record), zip(*columns[:10], strict=True))


class Points(OfThisProcess, Generic[_Row_co]):
    """The points of a scan, a table or a store. Each is returned once."""

    __slots__ = ("_count", "_make", "_ready", "_scan", "_source")

    _instead = BOOKMARK

    def __init__(self, source: _Points | None, named: bool, scan: Any = None) -> None:
        """Wrap the points of the core."""
        self._source, self._scan = source, scan
        self._make = _records if named else dicts
        self._count = 0
        self._ready: deque[Iterator[_Row_co]] = deque()

    def _at_hand(self) -> Iterator[_Row_co]:
        """Yield the records that are ready. Unused records stay ready."""
        for part in self._ready.copy():
            yield from part
            with suppress(ValueError):  # another thread has removed it
                self._ready.remove(part)

    def _more(self, source: _Points) -> Steps:
        """Fetch more records. Return false after the last ones."""
        with Telling(self._scan, "records", self._returned_points):
            while (more := source._take(self._ready, self._counted)) is None:
                yield source._fill()
                source._report()
        return more

    def _returned_points(self) -> str:
        return f"{counted(self._count, 'point')} {'was' if self._count == 1 else 'were'}"

    def _counted(self, names: list[str], columns: list[list[Any]], is_one: bool) -> Iterable[Any]:
        self._count += len(columns[0])
        return self._make(names, columns, is_one)


class RecordIterator(Points[_Row_co]):
    """The points of a scan, a table or a store, one by one.

    Threads may share it: each point is returned once. An error has ``bookmark``, the position after
    the pages whose points were returned before it. It prefetches as :meth:`Scan.pages` does.

    >>> record = next(scan.records())
    >>> record["tag_guid"] is not None, record["timestamp"].isoformat()
    (True, '2026-11-01T00:00:00+00:00')
    """

    __slots__ = ()
    __module__ = "siteline.types"

    def __iter__(self) -> Iterator[_Row_co]:
        """Yield the points that were not returned yet."""
        assert self._source is not None
        while True:
            yield from self._at_hand()
            if not wait_for(self._more(self._source)):
                return

    def __next__(self) -> _Row_co:
        """Return the next point."""
        for record in self:
            return record
        raise StopIteration
