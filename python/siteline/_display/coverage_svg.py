"""A coverage as SVG: its calendar, a row of cells for each month or day.

A filled box has points; a hollow box was read and is empty.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from siteline._display.calendar import DAY, calendar_rows, cells, empty_time, summary
from siteline._display.elements import AMBER, BLUE
from siteline._escape import escaped
from siteline._times import duration, to_minute

if TYPE_CHECKING:
    from siteline._display.calendar import Row
    from siteline.types import Coverage, CoverageWindow

__all__: list[str] = []

_ROWS = 36
# Colour-blind readers can distinguish blue and amber.
_FILL = {
    "settled": (BLUE, 1.0),
    "due": (AMBER, 1.0),
    "provisional": (BLUE, 0.45),
    "unread": ("#808080", 0.3),
    "forgotten": ("#808080", 0.45),
}
# In pixels: the margins, and the distances of cells and rows.
_LEFT, _TOP, _COLUMN, _ROW = 76, 44, 17, 18
_CELL_WIDTH, _CELL_HEIGHT = 15, 13
_FONT = "font-family:system-ui,sans-serif;font-size:11px"
_LONGEST = 90


def svg(coverage: Coverage) -> str:
    """Draw in the text colour of the surrounding page."""
    rows = calendar_rows(coverage)
    earlier, rows = len(rows) - _ROWS, rows[-_ROWS:]
    columns = 31 if not rows or rows[0].cell == DAY else 24
    width = _LEFT + columns * _COLUMN + 8
    height = _TOP + len(rows) * _ROW + 34
    cut = _text(0, _TOP - 6, f"… {earlier} earlier", 0.65) if earlier > 0 else ""
    name = escaped(coverage.feed.name)
    label = escape(f"coverage of {name}: {summary(coverage)}", quote=True)
    head = f"{name} · {summary(coverage)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{label}" style="{_FONT}">'
        f"{_text(0, 14, _cut(head), 1.0)}"
        f"{cut}{_axis(columns)}{_labels(rows)}{_cells(coverage, rows)}"
        f"{_legend(coverage, height - 10)}</svg>"
    )


def _axis(columns: int) -> str:
    days = columns == 31
    marks = [1, 5, 10, 15, 20, 25, 30] if days else [0, 6, 12, 18]
    places = [mark - 1 if days else mark for mark in marks]
    return "".join(
        _text(_LEFT + at * _COLUMN + 1, _TOP - 6, f"{mark}" if days else f"{mark:02}:00", 0.65)
        for mark, at in zip(marks, places, strict=True)
    )


def _labels(rows: list[Row]) -> str:
    return "".join(
        _text(0, _TOP + number * _ROW + _CELL_HEIGHT - 2, row.label, 0.65)
        for number, row in enumerate(rows)
    )


def _cells(coverage: Coverage, rows: list[Row]) -> str:
    number = {row.label: place for place, row in enumerate(rows)}
    drawn = []
    for row, at, pieces in cells(coverage, rows):
        left = _LEFT + (at - row.start) / row.cell * _COLUMN
        top = _TOP + number[row.label] * _ROW
        for start, end, window in pieces:
            x = left + (start - at) / row.cell * _CELL_WIDTH
            width = max((end - start) / row.cell * _CELL_WIDTH, 1.0)
            drawn.append(_window(x, top, width, window))
    return "".join(drawn)


def _window(x: float, y: float, width: float, window: CoverageWindow) -> str:
    read = "never read" if window.read_at is None else f"read {to_minute(window.read_at)}"
    empty = ", no points" if window.empty else ""
    known = "" if window.state == "forgotten" else f", {read}{empty}"
    title = f"{to_minute(window.start)} to {to_minute(window.end)}: {window.state}{known}"
    hollow = bool(window.empty) or window.state == "forgotten"
    box = _box(x, y, width, *_FILL[window.state], hollow=hollow)
    return f"{box}<title>{title}</title></rect>"


def _box(x: float, y: float, width: float, colour: str, opacity: float, *, hollow: bool) -> str:
    if hollow:
        # The outline is inside, so that the box is as large as a filled one.
        size = f'x="{x + 0.75:.2f}" y="{y + 0.75}" width="{max(width - 1.5, 0.5):.2f}"'
        line = f'fill="none" stroke="{colour}" stroke-opacity="{opacity}" stroke-width="1.5"'
        return f'<rect {size} height="{_CELL_HEIGHT - 1.5}" rx="2" {line}>'
    size = f'x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_CELL_HEIGHT}" rx="2"'
    return f'<rect {size} fill="{colour}" fill-opacity="{opacity}">'


def _legend(coverage: Coverage, y: float) -> str:
    spans = coverage.spans.items()
    entries = [
        (f"{state} {duration(span)}", *_FILL[state], state == "forgotten")
        for state, span in spans
        if span
    ]
    if empty := empty_time(coverage):
        entries.append((f"read, empty {duration(empty)}", BLUE, 1.0, True))
    drawn, x = [], 0.0
    for text, colour, opacity, hollow in entries:
        drawn.append(f"{_box(x, y - 11, 13, colour, opacity, hollow=hollow)}</rect>")
        drawn.append(_text(x + 18, y, text, 1.0))
        # A character is about 6.1 pixels wide.
        x += 18 + 6.1 * len(text) + 14
    return "".join(drawn)


def _text(x: float, y: float, text: str, opacity: float) -> str:
    faint = "" if opacity == 1.0 else f' fill-opacity="{opacity}"'
    return f'<text x="{x:g}" y="{y:g}" fill="currentColor"{faint}>{escape(text)}</text>'


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
