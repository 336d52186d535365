"""The calendar strip of a coverage, in text and in SVG.

A row for each month with a cell for each day, or for each day with a cell for each hour where
windows are shorter than a day. Filled: there are points; hollow: read, and nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from siteline.coverage import Coverage, CoverageWindow

__all__: list[str] = []

STATES = ["settled", "settling", "provisional", "unread"]

_MARKS = {"settled": "█", "settling": "▓", "provisional": "▒", "unread": "·"}
_HOLLOW = "▁"
_TEXT_ROWS, _ROWS = 24, 36
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)

# Blue and amber differ for every eye, and stand out from white and from black alike.
_BLUE, _AMBER = "#3d8fd1", "#c98a1b"
_INK = {
    "settled": (_BLUE, 1.0),
    "settling": (_AMBER, 1.0),
    "provisional": (_BLUE, 0.45),
    "unread": ("#808080", 0.3),
}
_LEFT, _TOP, _CELL, _TALL, _PITCH = 76, 44, 17, 13, 18
_FONT = "font-family:system-ui,sans-serif;font-size:11px"


class _Row(NamedTuple):
    """A month or a day."""

    label: str
    start: datetime
    end: datetime
    cell: timedelta


def _rows(coverage: Coverage) -> list[_Row]:
    if not coverage:
        return []
    first, last = coverage[0].start, coverage[-1].end
    by_month = coverage.feed.window >= _DAY
    rows = []
    at = first.replace(hour=0, minute=0, second=0, microsecond=0)
    at = at.replace(day=1) if by_month else at
    while at < last:
        end = (at.replace(day=1) + 32 * _DAY).replace(day=1) if by_month else at + _DAY
        label = at.strftime("%Y-%m" if by_month else "%Y-%m-%d")
        rows.append(_Row(label, at, end, _DAY if by_month else _HOUR))
        at = end
    return rows


def _parts(
    coverage: Coverage, rows: list[_Row]
) -> Iterator[tuple[_Row, datetime, list[tuple[datetime, datetime, CoverageWindow]]]]:
    """For each cell of each row the pieces of windows that lie in it."""
    windows = list(coverage)
    behind = 0
    for row in rows:
        at = row.start
        while at < row.end:
            end = at + row.cell
            while behind < len(windows) and windows[behind].end <= at:
                behind += 1
            pieces = []
            for window in windows[behind:]:
                if window.start >= end:
                    break
                pieces.append((max(at, window.start), min(end, window.end), window))
            yield row, at, pieces
            at = end


def _mark(pieces: list[tuple[datetime, datetime, CoverageWindow]]) -> str:
    """What most of a cell is."""
    share: dict[str, timedelta] = {}
    for start, end, window in pieces:
        mark = _HOLLOW if window.empty else _MARKS[window.state]
        share[mark] = share.get(mark, timedelta(0)) + (end - start)
    return max(share, key=lambda mark: share[mark]) if share else " "


def strip(coverage: Coverage) -> str:
    """Print it: a line for each row, and what the marks mean."""
    lines = [f"Coverage of {coverage.feed.name} at {_time(coverage.now)} UTC: {_reach(coverage)}"]
    rows = _rows(coverage)
    if len(rows) > _TEXT_ROWS:
        lines.append(f"  … {len(rows) - _TEXT_ROWS} earlier rows")
        rows = rows[-_TEXT_ROWS:]
    texts: dict[str, str] = {}
    for row, _, pieces in _parts(coverage, rows):
        texts[row.label] = texts.get(row.label, "") + _mark(pieces)
    lines += [f"  {label}  {text}".rstrip() for label, text in texts.items()]
    said = [f"{_MARKS[state]} {state} {_span(span)}" for state, span in _there(coverage)]
    hollow = _hollow(coverage)
    said += [f"{_HOLLOW} read, empty {_span(hollow)}"] if hollow else []
    return "\n".join([*lines, "  " + "   ".join(said)]).rstrip()


def document(coverage: Coverage) -> str:
    """Draw it as a file of its own: dark text on light pages, light text on dark ones."""
    style = "<style>svg{color:#24292f}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"
    return drawn(coverage, style)


def drawn(coverage: Coverage, style: str = "") -> str:
    """Draw it in the colour of the text around it."""
    rows = _rows(coverage)
    earlier, rows = len(rows) - _ROWS, rows[-_ROWS:]
    columns = 31 if not rows or rows[0].cell == _DAY else 24
    width = _LEFT + columns * _CELL + 8
    height = _TOP + len(rows) * _PITCH + 34
    cut = _said(0, _TOP - 6, f"… {earlier} earlier", 0.65) if earlier > 0 else ""
    label = escape(f"coverage of {coverage.feed.name}: {_reach(coverage)}", quote=True)
    head = f"{coverage.feed.name} · {_reach(coverage)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{label}" style="{_FONT}">{style}'
        f"{_said(0, 14, _cut(head), 1.0)}"
        f"{cut}{_axis(columns)}{_labels(rows)}{_cells(coverage, rows)}"
        f"{_legend(coverage, height - 10)}</svg>"
    )


def _axis(columns: int) -> str:
    days = columns == 31
    marks = [1, 5, 10, 15, 20, 25, 30] if days else [0, 6, 12, 18]
    place = [mark - 1 if days else mark for mark in marks]
    return "".join(
        _said(_LEFT + at * _CELL + 1, _TOP - 6, f"{mark}" if days else f"{mark:02}:00", 0.65)
        for mark, at in zip(marks, place, strict=True)
    )


def _labels(rows: list[_Row]) -> str:
    return "".join(
        _said(0, _TOP + number * _PITCH + _TALL - 2, row.label, 0.65)
        for number, row in enumerate(rows)
    )


def _cells(coverage: Coverage, rows: list[_Row]) -> str:
    number = {row.label: place for place, row in enumerate(rows)}
    made = []
    for row, at, pieces in _parts(coverage, rows):
        left = _LEFT + (at - row.start) / row.cell * _CELL
        top = _TOP + number[row.label] * _PITCH
        for start, end, window in pieces:
            x = left + (start - at) / row.cell * (_CELL - 2)
            wide = max((end - start) / row.cell * (_CELL - 2), 1.0)
            made.append(_rect(x, top, wide, window))
    return "".join(made)


def _rect(x: float, y: float, wide: float, window: CoverageWindow) -> str:
    colour, strength = _INK[window.state]
    read = "never read" if window.read_at is None else f"read {_time(window.read_at)}"
    empty = ", nothing there" if window.empty else ""
    title = f"{_time(window.start)} to {_time(window.end)}: {window.state}, {read}{empty}"
    box = _box(x, y, wide, colour, strength, hollow=bool(window.empty))
    return f"{box}<title>{title}</title></rect>"


def _box(x: float, y: float, wide: float, colour: str, strength: float, *, hollow: bool) -> str:
    if hollow:
        # Its line lies within, as wide as the filled ones.
        size = f'x="{x + 0.75:.2f}" y="{y + 0.75}" width="{max(wide - 1.5, 0.5):.2f}"'
        ink = f'fill="none" stroke="{colour}" stroke-opacity="{strength}" stroke-width="1.5"'
        return f'<rect {size} height="{_TALL - 1.5}" rx="2" {ink}>'
    size = f'x="{x:.2f}" y="{y}" width="{wide:.2f}" height="{_TALL}" rx="2"'
    return f'<rect {size} fill="{colour}" fill-opacity="{strength}">'


def _legend(coverage: Coverage, y: float) -> str:
    made, x = [], 0.0
    entries = [(f"{state} {_span(span)}", *_INK[state], False) for state, span in _there(coverage)]
    if hollow := _hollow(coverage):
        entries.append((f"read, empty {_span(hollow)}", _BLUE, 1.0, True))
    for text, colour, strength, is_hollow in entries:
        made.append(f"{_box(x, y - 11, 13, colour, strength, hollow=is_hollow)}</rect>")
        made.append(_said(x + 18, y, text, 1.0))
        x += 18 + 6.1 * len(text) + 14
    return "".join(made)


def _said(x: float, y: float, text: str, strength: float) -> str:
    faint = "" if strength == 1.0 else f' fill-opacity="{strength}"'
    return f'<text x="{x:g}" y="{y:g}" fill="currentColor"{faint}>{escape(text)}</text>'


def _there(coverage: Coverage) -> list[tuple[str, timedelta]]:
    return [(state, span) for state, span in coverage.spans.items() if span]


def _hollow(coverage: Coverage) -> timedelta:
    return sum((one.end - one.start for one in coverage if one.empty), timedelta(0))


def _reach(coverage: Coverage) -> str:
    if coverage.read_through is None:
        return "nothing read yet"
    settled = coverage.settled_through
    begun = "nothing settled yet" if settled is None else f"settled through {_time(settled)}"
    return f"{begun}, read through {_time(coverage.read_through)}"


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def _span(length: timedelta) -> str:
    seconds = length.total_seconds()
    if seconds >= 2 * 86_400 or (seconds >= 86_400 and seconds % 86_400 == 0):
        return f"{seconds / 86_400:.1f}".removesuffix(".0") + " d"
    if seconds >= 3_600:
        return f"{seconds / 3_600:.1f}".removesuffix(".0") + " h"
    return f"{seconds / 60:.0f} min"


def _cut(text: str) -> str:
    spelt = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return spelt if len(spelt) <= 90 else f"{spelt[:89]}…"
