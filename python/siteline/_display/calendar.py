"""The calendar of a coverage: rows of cells, the parts of windows in each cell, and its text.

A row is a month with a cell for each day; if windows are shorter than a day, a row is a day with
a cell for each hour.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from siteline._escape import escaped
from siteline._times import duration, in_zone, reached, to_minute, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from siteline.types import Coverage, CoverageWindow

    # The part of a window in a cell: its start, its end, and the window.
    Piece = tuple[datetime, datetime, CoverageWindow]

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EMPTY = "read, empty"
_MARKS = {
    "settled": "█",
    "due": "▓",
    "provisional": "▒",
    "unread": "·",
    "forgotten": "░",
    EMPTY: "▁",
}
_ROWS = 24


def has_days(coverage: Coverage) -> bool:
    """Return whether a cell is a day, in rows of months."""
    return coverage.feed.window >= DAY


def calendar_rows(coverage: Coverage) -> dict[str, dict[datetime, list[Piece]]]:
    """Return the parts of windows by row and by the start of their cell, in order of time."""
    is_day = has_days(coverage)
    cell, label = (DAY, "%Y-%m") if is_day else (HOUR, "%Y-%m-%d")
    rows: dict[str, dict[datetime, list[Piece]]] = {}
    for window in coverage:
        at = window.start
        while at < window.end:
            start = at.replace(hour=0 if is_day else at.hour, minute=0, second=0, microsecond=0)
            end = min(start + cell, window.end)
            row = rows.setdefault(at.strftime(label), {})
            row.setdefault(start, []).append((at, end, window))
            at = end
    return rows


def column(coverage: Coverage, at: datetime) -> int:
    """Return the place of a cell in its row."""
    return at.day - 1 if has_days(coverage) else at.hour


def spans(coverage: Coverage) -> dict[str, timedelta]:
    """Return the time in each state, and the time that was read and has no points."""
    empty = sum((one.end - one.start for one in coverage if one.empty), timedelta(0))
    return {name: span for name, span in [*coverage.spans.items(), (EMPTY, empty)] if span}


def skipped(coverage: Coverage) -> list[str]:
    """Write a line for each of the first five windows that a sync does not read for a day."""
    given = [(one, one.skipped_until) for one in coverage if one.skipped_until is not None]
    lines = [
        f"skipped until {to_minute(until)} UTC: {to_minute(one.start)} to {to_minute(one.end)}, "
        "whose chain was not read to its end"
        for one, until in given[:5]
    ]
    return [*lines, f"… and {len(given) - 5} more"] if len(given) > 5 else lines


def summary(times: Iterable[datetime | None], tz: str = "UTC") -> str:
    """Summarize how far a feed is settled and read, and its newest instant read."""
    settled, read, newest = times
    if newest is None:
        return "nothing read yet"
    return reached(settled, read, newest, lambda at: to_minute(in_zone(at, zone_of(tz))))


def summary_of(coverage: Coverage) -> str:
    return summary((coverage.settled_through, coverage.read_through, coverage.newest))


def lines(coverage: Coverage) -> str:
    """Print the newest rows and a legend."""
    title = f"Coverage of {escaped(coverage.feed.name)} at {to_minute(coverage.now)} UTC"
    printed = [f"{title}: {summary_of(coverage)}"]
    rows = list(calendar_rows(coverage).items())
    if len(rows) > _ROWS:
        printed.append(f"  … {len(rows) - _ROWS} earlier rows")
    for label, cells in rows[-_ROWS:]:
        indent = " " * column(coverage, next(iter(cells)))
        printed.append(f"  {label}  {indent}{''.join(map(_mark, cells.values()))}")
    legend = [f"{_MARKS[name]} {name} {duration(span)}" for name, span in spans(coverage).items()]
    printed.append("  " + "   ".join(legend))
    printed += [f"  {line}" for line in skipped(coverage)]
    return "\n".join(printed).rstrip()


def _mark(pieces: list[Piece]) -> str:
    """Return the mark of the state that takes most of a cell."""
    share: dict[str, timedelta] = {}
    for start, end, window in pieces:
        mark = _MARKS[EMPTY if window.empty else window.state]
        share[mark] = share.get(mark, timedelta(0)) + (end - start)
    return max(share, key=lambda mark: share[mark])
