"""The calendar of a coverage: rows of cells, the parts of windows in each cell, and its text.

A row is a month with a cell for each day; if windows are shorter than a day, a row is a day with
a cell for each hour.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline._escape import escaped
from siteline._times import duration, reached, to_minute

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from siteline.types import Coverage, CoverageWindow

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
_MARKS = {"settled": "█", "due": "▓", "provisional": "▒", "unread": "·", "forgotten": "░"}
_EMPTY = "▁"
_ROWS = 24


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


def lines(coverage: Coverage) -> str:
    """Print the newest rows and a legend."""
    title = f"Coverage of {escaped(coverage.feed.name)} at {to_minute(coverage.now)} UTC"
    printed = [f"{title}: {summary(coverage)}"]
    rows = calendar_rows(coverage)
    if len(rows) > _ROWS:
        printed.append(f"  … {len(rows) - _ROWS} earlier rows")
        rows = rows[-_ROWS:]
    marks: dict[str, str] = {}
    for row, _, pieces in cells(coverage, rows):
        marks[row.label] = marks.get(row.label, "") + _mark(pieces)
    printed += [f"  {label}  {row_marks}".rstrip() for label, row_marks in marks.items()]
    printed.append("  " + "   ".join(_legend(coverage)))
    printed += [f"  {line}" for line in skipped(coverage)]
    return "\n".join(printed).rstrip()


def _mark(pieces: list[Piece]) -> str:
    """Return the mark of the state that takes most of a cell."""
    share: dict[str, timedelta] = {}
    for start, end, window in pieces:
        mark = _EMPTY if window.empty else _MARKS[window.state]
        share[mark] = share.get(mark, timedelta(0)) + (end - start)
    return max(share, key=lambda mark: share[mark]) if share else " "


def _legend(coverage: Coverage) -> list[str]:
    spans = coverage.spans.items()
    entries = [f"{_MARKS[state]} {state} {duration(span)}" for state, span in spans if span]
    empty = empty_time(coverage)
    return [*entries, f"{_EMPTY} read, empty {duration(empty)}"] if empty else entries
