"""The picture of series over time: a panel for each, with the band from minimum to maximum."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from siteline._counts import counted
from siteline._plots.axis import (
    TIME_AXIS,
    TimeAxis,
    baseline,
    microseconds,
    number_axis,
    room_for,
    zone_name,
)
from siteline._plots.columns import points_of
from siteline._plots.drawing import (
    BLUE,
    GREY,
    TITLE_SIZE,
    Drawing,
    box,
    filled,
    polyline,
    stroke,
    text,
)
from siteline._plots.legend import Entry, legend
from siteline._plots.numbers import Scale, scale
from siteline._plots.points_text import About, describe, every, notes, title_of
from siteline._plots.series import drawn, names, smallest_step
from siteline._plots.texts import fitted, width

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo
    from typing import Any

    from siteline._plots.columns import Ids, Points
    from siteline._plots.points_text import Grid, Options
    from siteline._plots.series import Drawn, Name
    from siteline._plots.stretches import Line, Place

__all__: list[str] = []

_RIGHT, _TOP, _NAME, _BETWEEN = 14, 54, 18, 12


class Picture(NamedTuple):
    """What was drawn, and what the tidy frame is made of."""

    drawing: Drawing
    points: Points
    names: dict[Ids, Name]
    zone: tzinfo
    widest: int | None


def picture(source: Any, grid: Grid, options: Options) -> Picture:
    """Draw the first series of a source."""
    points = points_of(source)
    series = list(points.rows)
    shown = series[: options.panels]
    named, shared = names(shown, options.labels)
    interval = grid.interval or smallest_step(points, shown)
    # A day of a zone has up to 25 hours.
    widest = None if interval is None else interval * 3 // 2
    axis, unread = _time_axis(points, shown, grid, options)
    lines = [
        drawn(points, ids, options.measure, (axis.start, axis.end), axis.right - axis.left, widest)
        for ids in shown
    ]
    height = _panel_height(len(shown))
    scales = [_scale(one, height) for one in lines]
    moved = max(room_for(scales), 34.0)
    # The labels at the left are known only now.
    final = axis._replace(left=moved)
    lines = [_moved(one, axis, final) for one in lines]
    title = options.title or title_of(named, shared, series, options.measure)
    about = About(grid, interval, len(series) - len(shown), lines, named, unread, final, options)
    drawing = _draw(title, about, scales, height)
    return Picture(drawing, points, named, options.zone, widest)


def _time_axis(
    points: Points, shown: list[Ids], grid: Grid, options: Options
) -> tuple[TimeAxis, list[tuple[int, int]]]:
    """Return the axis and the unread spans; what was asked for is the range, with all points."""
    coverage = points.provenance.get("coverage") or {}
    unread = [_span(*span) for span in coverage.get("unread", ())]
    bounds = [at for at in (grid.start, grid.end) if at is not None]
    if len(bounds) < 2:
        read = [_span(*span) for span in coverage.get("read", ())]
        bounds += [at for span in (*read, *unread) for at in span]
    for ids in shown:
        times = points.times(ids)
        bounds += [times[0], times[-1]]
    start, end = min(bounds, default=0), max(bounds, default=0)
    # Room for the numbers is found later: the lines are made for the width that is usual.
    axis = TimeAxis(start, max(end, start + 1), 60.0, options.width - _RIGHT, options.zone)
    return axis, [(max(a, start), min(b, end)) for a, b in unread if a < end and b > start]


def _span(start: str, end: str) -> tuple[int, int]:
    return microseconds(datetime.fromisoformat(start)), microseconds(datetime.fromisoformat(end))


def _panel_height(count: int) -> int:
    return 240 if count <= 1 else 150 if count <= 3 else 92


def _scale(one: Drawn, height: int) -> Scale:
    low, high = (one.low, one.high) if one.low <= one.high else (0.0, 1.0)
    ticks = scale(low, high, max(height // 34, 3))
    return ticks if one.low <= one.high else ticks._replace(ticks=[])


def _moved(one: Drawn, axis: TimeAxis, final: TimeAxis) -> Drawn:
    """Stretch the lines to the width that is left of them."""
    factor = (final.right - final.left) / (axis.right - axis.left)

    def stretched(line: Line) -> Line:
        parts = [[place._replace(x=place.x * factor) for place in part] for part in line.stretches]
        return line._replace(stretches=parts)

    band = None if one.band is None else stretched(one.band)
    return one._replace(line=stretched(one.line), band=band)


def _draw(title: str, about: About, scales: list[Scale], height: int) -> Drawing:
    axis, full = about.axis, about.options.width
    marks = axis.ticks() if about.lines else []
    parts = [
        text(0, 14, fitted(title, full, TITLE_SIZE), size=TITLE_SIZE, bold=True),
        _legend(about),
    ]
    y: float = _TOP
    for one, numbers in zip(about.lines, scales, strict=True):
        parts.append(_panel(one, numbers, about, y, height, marks))
        y += _NAME + height + _BETWEEN
    bottom = y - _BETWEEN
    if about.lines:
        parts.append(axis.labels(bottom, marks, full))
        bottom += TIME_AXIS
    for note in notes(about):
        bottom += 17
        parts.append(text(0, bottom, fitted(note, full), faint=True))
    return Drawing(full, bottom + 8, title, describe(about), "".join(parts))


def _panel(
    one: Drawn, numbers: Scale, about: About, y: float, height: int, marks: list[Any]
) -> str:
    axis = about.axis
    top, bottom = y + _NAME, y + _NAME + height
    label, unit = about.names[one.ids]
    room = axis.right - axis.left
    shown_unit = "" if unit is None else f"  [{fitted(unit, 120)}]"
    shown = f"{fitted(label, room - width(shown_unit) - 8)}{shown_unit}"
    areas = "".join(
        box(axis.x(a), top, max(axis.x(b) - axis.x(a), 1), height) for a, b in about.unread
    )
    parts = [
        filled(areas, GREY, 0.22),
        text(axis.left, y + 10, shown),
        axis.rules(top, bottom, marks),
        number_axis(numbers, axis.left, axis.right, top, bottom),
        baseline(axis.left, axis.right, bottom),
    ]
    if one.band is not None:
        parts.append(_band(one.band, numbers, axis.left, top, bottom))
    parts.append(_line(one.line, numbers, axis.left, top, bottom))
    if not one.line.stretches and one.band is None:
        middle = (axis.left + axis.right) / 2
        empty = f"no {about.options.measure} in {counted(one.points, 'point')}"
        parts.append(text(middle, (top + bottom) / 2, empty, anchor="middle", faint=True))
    return "".join(parts)


def _line(line: Line, numbers: Scale, left: float, top: float, bottom: float) -> str:
    def y(value: float) -> float:
        return bottom - numbers.share(value) * (bottom - top)

    path: list[str] = []
    dots: list[str] = []
    for part in line.stretches:
        is_dot = len(part) == 1 and part[0].low == part[0].high
        through = polyline((left + x, y(value)) for x, value in _through(part))
        (dots if is_dot else path).append(through)
    return stroke("".join(path), BLUE, 1.4) + stroke("".join(dots), BLUE, 4)


def _through(part: list[Place]) -> Iterator[tuple[float, float]]:
    """Go through the lowest and highest number of each place, first through the nearer one."""
    last = part[0].low
    for place in part:
        ends = (place.low, place.high)
        if abs(place.high / 2 - last / 2) < abs(place.low / 2 - last / 2):
            ends = (place.high, place.low)
        for value in dict.fromkeys(ends):
            yield place.x, value
        last = ends[1]


def _band(band: Line, numbers: Scale, left: float, top: float, bottom: float) -> str:
    def y(value: float) -> float:
        return bottom - numbers.share(value) * (bottom - top)

    areas, lone = [], []
    for part in band.stretches:
        there = [(left + place.x, y(place.high)) for place in part]
        back = [(left + place.x, y(place.low)) for place in reversed(part)]
        if len(part) == 1:
            lone.append(polyline([*there, *back]))
        else:
            areas.append(polyline([*there, *back], closed=True))
    return filled("".join(areas), BLUE, 0.25) + stroke("".join(lone), BLUE, 3, opacity=0.35)


def _legend(about: About) -> str:
    measure, full = about.options.measure, about.options.width
    entries = [Entry(measure, "line", BLUE)]
    if any(one.band is not None for one in about.lines):
        entries.append(Entry("minimum to maximum", "area", BLUE, 0.25))
    if about.unread:
        entries.append(Entry("never read", "area", GREY, 0.3))
    drawn, _ = legend(entries, 0, 33, full) if about.lines else ("", 33)
    where = f"{every(about)}{zone_name(about.axis.zone)}"
    # At the right, as far as the legend leaves room.
    used = sum(width(entry.label) + 38 for entry in entries)
    return drawn + text(full, 33, fitted(where, full - used), anchor="end", faint=True)
