"""The calendar of a coverage: rows of cells, and the parts of windows in each cell.

A row is a month with a cell for each day; where windows are shorter than a day, a row is a day with
a cell for each hour.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline._times import reached, to_minute

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from siteline.types import Coverage, CoverageWindow

__all__: list[str] = []

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


class Row(NamedTuple):
    """A row: a month or a day."""

    label: str
    start: datetime
    end: datetime
    cell: timedelta


class Piece(NamedTuple):
    """The part of a window that is in one cell."""

    start: datetime
    end: datetime
    window: CoverageWindow


def calendar_rows(coverage: Coverage) -> list[Row]:
    """Return the rows that contain the windows, in order of time."""
    windows = list(coverage)
    if not windows:
        return []
    by_month = coverage.feed.window >= DAY
    at = windows[0].start.replace(hour=0, minute=0, second=0, microsecond=0)
    at = at.replace(day=1) if by_month else at
    rows = []
    while at < windows[-1].end:
        end = (at.replace(day=1) + 32 * DAY).replace(day=1) if by_month else at + DAY
        label = at.strftime("%Y-%m" if by_month else "%Y-%m-%d")
        rows.append(Row(label, at, end, DAY if by_month else HOUR))
        at = end
    return rows


def cells(coverage: Coverage, rows: list[Row]) -> Iterator[tuple[Row, datetime, list[Piece]]]:
    """Yield each cell of each row: its row, its start, and the parts of windows in it."""
    windows = list(coverage)
    first = 0
    for row in rows:
        at = row.start
        while at < row.end:
            end = at + row.cell
            while first < len(windows) and windows[first].end <= at:
                first += 1
            pieces = []
            for window in windows[first:]:
                if window.start >= end:
                    break
                pieces.append(Piece(max(at, window.start), min(end, window.end), window))
            yield row, at, pieces
            at = end


def empty_time(coverage: Coverage) -> timedelta:
    """Add up the windows that were read and have no points."""
    return sum((one.end - one.start for one in coverage if one.empty), timedelta(0))


def skipped(coverage: Coverage) -> list[str]:
    """Write a line for the windows that a sync does not read for a day, the first five."""
    windows = [one for one in coverage if one.skipped_until is not None]
    lines = [
        f"skipped until {to_minute(one.skipped_until)} UTC: {to_minute(one.start)} to "
        f"{to_minute(one.end)}, whose chain was not read to its end"
        for one in windows[:5]
        if one.skipped_until is not None
    ]
    return [*lines, f"… and {len(windows) - 5} more"] if len(windows) > 5 else lines


def summary(coverage: Coverage) -> str:
    """Summarize how far the feed is settled and read."""
    if coverage.newest is None:
        return "nothing read yet"
    return reached(coverage.settled_through, coverage.read_through, coverage.newest, to_minute)
