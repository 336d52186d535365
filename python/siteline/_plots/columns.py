"""The columns of points that a table, or a snapshot of a store, gives: read without NumPy."""

from __future__ import annotations

import ctypes
from itertools import compress
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


__all__: list[str] = []

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
NUMBERS = ("value", "minimum", "maximum", "sample_count")
# Eight bytes each: the type in C, and the letter of a memoryview.
_KINDS: dict[str, tuple[Any, Any]] = {"i": (ctypes.c_int64, "q"), "f": (ctypes.c_double, "d")}

Ids = tuple[str | None, str | None, str | None, str | None, str | None]


class Points(NamedTuple):
    """All points of a source: the rows of each series, and their columns."""

    rows: dict[Ids, list[range]]
    columns: Mapping[str, Any]
    zone: str
    provenance: Mapping[str, Any]
    kept: object
    """What owns the memory."""

    def numbers(self, ids: Ids, name: str) -> list[float]:
        """Return a column of a series; NaN where there is none."""
        whole: list[float] = self._column(ids, name)
        return whole

    def times(self, ids: Ids) -> list[int]:
        """Return the times of a series, in microseconds since the Unix epoch."""
        whole: list[int] = self._column(ids, "timestamp")
        return whole

    def _column(self, ids: Ids, name: str) -> Any:
        column = self.columns[name]
        # Nearly always one part, which is not copied again.
        first, *more = (column[part.start : part.stop].tolist() for part in self.rows[ids])
        for part in more:
            first += part
        return first


def points_of(source: Any) -> Points:
    """Read the columns of a source, once."""
    given, provenance = source.columns((None, None, None))
    columns: dict[str, Any] = {}
    codes: dict[str, tuple[memoryview, Sequence[str]]] = {}
    lengths, zone, kept = memoryview(b"").cast("q"), "UTC", []
    for name, kind, *payload in given:
        if kind == "runs":
            codes[name] = (memoryview(payload[0]).cast("i"), payload[2])
            lengths = memoryview(payload[1]).cast("q")
        elif name == "timestamp":
            columns[name], zone = _memory(payload[0]), payload[1]
        elif name in NUMBERS:
            columns[name] = _memory(payload[0])
            if kind == "integer" and payload[1] is not None:
                columns[name] = _with_missing(columns[name], payload[1])
        kept.append(payload)
    rows: dict[Ids, list[range]] = {}
    at = 0
    for ids, length in zip(_identities(codes, len(lengths)), lengths, strict=True):
        if length:
            rows.setdefault(ids, []).append(range(at, at + length))
        at += length
    return Points(rows, columns, zone, provenance, kept)


def _identities(codes: Mapping[str, tuple[memoryview, Sequence[str]]], count: int) -> Iterator[Ids]:
    for place in range(count):
        found = ((codes[name][0][place], codes[name][1]) for name in IDS)
        site, line, machine, device, tag = (
            None if code < 0 else texts[code] for code, texts in found
        )
        yield site, line, machine, device, tag


def _memory(memory: Any) -> Any:
    """Look at the memory of a column where it lies, by the interface that NumPy uses."""
    about = memory.__array_interface__
    (count,), (address, _) = about["shape"], about["data"]
    kind, letter = _KINDS[about["typestr"][1]]
    there: Any = (kind * count).from_address(address) if count else b""
    return memoryview(there).cast("B").cast(letter)


def _with_missing(numbers: Any, missing: bytearray) -> Any:
    """Return integers as doubles, NaN where there is none."""
    nan = float("nan")
    doubles = (nan if none else float(one) for one, none in zip(numbers, missing, strict=True))
    return memoryview((ctypes.c_double * len(missing))(*doubles)).cast("B").cast("d")


def known(times: list[int], *columns: list[float]) -> tuple[list[int], list[list[float]]]:
    """Leave out the rows without one of the numbers."""
    if all(isfinite(sum(column)) for column in columns):
        return times, list(columns)
    there = [all(map(isfinite, row)) for row in zip(*columns, strict=True)]
    return list(compress(times, there)), [list(compress(column, there)) for column in columns]
