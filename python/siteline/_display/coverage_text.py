"""A coverage as text: a line of block characters for each row of its calendar."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from siteline._display.calendar import calendar_rows, cells, empty_time, skipped, summary
from siteline._escape import escaped
from siteline._times import duration, to_minute

if TYPE_CHECKING:
    from siteline._display.calendar import Piece
    from siteline.types import Coverage

__all__: list[str] = []

_MARKS = {"settled": "█", "due": "▓", "provisional": "▒", "unread": "·", "forgotten": "░"}
_EMPTY = "▁"
_ROWS = 24


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
