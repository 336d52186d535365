"""Writes points as CSV, JSON lines, Arrow or Parquet, in memory that does not grow with them."""

from __future__ import annotations

import csv
import io
from itertools import islice
from json import dumps
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._escape import escaped_json
from siteline.types import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from siteline import Table

    _Row = Sequence[Any]

__all__ = ["CHANGES", "COLUMNS", "header", "lines", "write_stream"]

COLUMNS: tuple[str, ...] = Record._fields
CHANGES = (*COLUMNS, "change")

# Rows that are made into one text.
_ROWS = 4_096


def write_stream(points: Table, columns: Sequence[str], format: str, stream: BinaryIO) -> int:
    """Write all points as CSV, JSON lines or an Arrow IPC stream; return how many they are."""
    if format == "arrow":
        for piece in _doors.ipc(points, columns):
            stream.write(piece)
        return len(points)
    # It raises where the points cannot be read: then the header is not written either.
    rows = rows_of(points, columns)
    stream.write(header(format, columns))
    count = 0
    for text, some in lines(format, columns, rows):
        stream.write(text)
        count += some
    return count


def rows_of(points: Table, columns: Sequence[str]) -> Iterable[_Row]:
    """Yield the points as tuples of these columns."""
    if tuple(columns) == COLUMNS:
        return points.records(named=True)
    # A named record has the ten columns alone.
    return (tuple(record.values()) for record in points.records())


def header(format: str, columns: Sequence[str]) -> bytes:
    """Return what stands before the first row."""
    return f"{','.join(columns)}\n".encode() if format == "csv" else b""


def lines(format: str, columns: Sequence[str], rows: Iterable[_Row]) -> Iterator[tuple[bytes, int]]:
    """Yield some thousand rows at a time as lines of CSV or JSON, and how many they are."""
    line = (_csv if format == "csv" else _json)(columns)
    remaining = iter(rows)
    while some := list(islice(remaining, _ROWS)):
        yield "".join(map(line, some)).encode(), len(some)


# Both functions write what is the same in all rows of a series once, and numbers as repr() does,
# which is the shortest text that is read back as the same number. Only a missing number is "None"
# there. csv and json would take twice the time for each row.


def _csv(_columns: Sequence[str]) -> Callable[[_Row], str]:
    ids: _Row = ()
    start = ""

    def line(row: _Row) -> str:
        nonlocal ids, start
        if row[:5] != ids:
            ids = row[:5]
            start = _quoted(ids)
        numbers = f"{row[6]!r},{row[7]!r},{row[8]!r},{row[9]!r}".replace("None", "")
        more = f",{_quoted(row[10:])}" if len(row) > 10 else ""
        return f"{start},{row[5].isoformat()[:-6]}Z,{numbers}{more}\n"

    return line


def _quoted(texts: _Row) -> str:
    written = io.StringIO()
    # The writer quotes a field with a character of its line's end, and so both of them.
    csv.writer(written, lineterminator="\r\n").writerow(texts)
    return written.getvalue().removesuffix("\r\n")


def _json(columns: Sequence[str]) -> Callable[[_Row], str]:
    ids: _Row = ()
    start = ""

    def line(row: _Row) -> str:
        nonlocal ids, start
        if row[:5] != ids:
            ids = row[:5]
            start = _members(columns[:5], ids)
        numbers = (
            f'"value":{row[6]!r},"minimum":{row[7]!r},"maximum":{row[8]!r},'
            f'"sample_count":{row[9]!r}'
        ).replace("None", "null")
        more = f",{_members(columns[10:], row[10:])}" if len(row) > 10 else ""
        return f'{{{start},"timestamp":"{row[5].isoformat()[:-6]}Z",{numbers}{more}}}\n'

    return line


def _members(names: Sequence[str], values: _Row) -> str:
    members = dict(zip(names, values, strict=True))
    return escaped_json(dumps(members, separators=(",", ":"), ensure_ascii=False))[1:-1]
