"""The picture of how late points come: the share that has come by each delay."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

from siteline import _doors
from siteline._counts import counted
from siteline._plots.axis import baseline, number_axis
from siteline._plots.drawing import (
    AMBER,
    BLUE,
    GREY,
    RED,
    TITLE_SIZE,
    Drawing,
    box,
    filled,
    number,
    polyline,
    rules,
    stroke,
    text,
)
from siteline._plots.legend import Entry, legend
from siteline._plots.numbers import Scale
from siteline._plots.texts import fitted, width
from siteline._times import duration

if TYPE_CHECKING:
    from siteline.types import Delays, Lateness

__all__: list[str] = []

_LEFT, _RIGHT, _TOP, _HEIGHT, _BETWEEN = 48, 14, 56, 130, 22
_PERCENT = Scale(0, 1, [(0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1, "100 %")])
_TICKS = (
    (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"), (21_600, "6 h"),
    (86_400, "1 d"), (7 * 86_400, "7 d"), (30 * 86_400, "30 d"), (365 * 86_400, "1 y"),
)  # fmt: skip
_COLOURS = {"points": BLUE, "revisions": AMBER}


class Curve(NamedTuple):
    """The steps of one curve: delays in seconds, and the share that had come by then."""

    feed: str
    kind: str
    steps: list[tuple[int, float]]


class _Delay(NamedTuple):
    """The axis of delays, by their logarithm."""

    least: float
    most: float
    left: float
    right: float

    def x(self, seconds: float) -> float:
        share = log(max(seconds, self.least) / self.least) / log(self.most / self.least)
        return self.left + min(share, 1.0) * (self.right - self.left)


def picture(
    given: list[Lateness], title: str | None, full: int, panels: int
) -> tuple[Drawing, list[Curve]]:
    """Draw the curves, and return them."""
    shown = given[:panels]
    by_feed = [
        [Curve(one.feed.name, kind, _doors.curve(getattr(one, kind))) for kind in _COLOURS]
        for one in shown
    ]
    curves = [curve for own in by_feed for curve in own]
    names = [one.feed.name for one in shown]
    title = title or f"Lateness of {names[0] if len(given) == 1 else f'{len(given):,} feeds'}"
    axis = _axis(shown, curves, full)
    said = "share that had come, by the time since the end of its bucket; estimated from the reads"
    parts = [
        text(0, 14, fitted(title, full, TITLE_SIZE), size=TITLE_SIZE, bold=True),
        text(0, 33, fitted(said, full), faint=True),
    ]
    y: float = _TOP
    for one, own in zip(shown, by_feed, strict=True):
        panel, y = _panel(one, [curve for curve in own if curve.steps], axis, y, full)
        parts.append(panel)
        y += _BETWEEN
    y -= _BETWEEN
    parts.append(_labels(axis, y, full))
    y += 22
    notes = _notes(len(given) - len(shown), panels)
    for note in notes:
        y += 17
        parts.append(text(0, y, fitted(note, full), faint=True))
    drawing = Drawing(full, y + 8, title, _describe(shown, notes), "".join(parts))
    return drawing, curves


def _axis(shown: list[Lateness], curves: list[Curve], full: int) -> _Delay:
    """Reach from the shortest delay to the longest time that matters, and a little beyond."""
    ends = [one.lateness.total_seconds() for one in shown]
    ends += [one.looked.total_seconds() for one in shown if one.looked is not None]
    delays = [seconds for curve in curves for seconds, _ in curve.steps]
    least = max(min([60.0, *ends, *delays]), 1.0)
    most = max([*ends, *delays, 60.0 * least])
    return _Delay(least, most * 1.25, _LEFT, full - _RIGHT)


def _panel(
    one: Lateness, curves: list[Curve], axis: _Delay, y: float, full: int
) -> tuple[str, float]:
    """Draw the panel of a feed, from its name on; return it and its lower end."""
    head, last = legend(_entries(one, curves), axis.left, y + 20, full - _RIGHT)
    top, bottom = last + 12, last + 12 + _HEIGHT
    parts = [
        text(axis.left, y + 2, fitted(f"{one.feed.name}: {one.verdict}", full - axis.left)),
        head,
        number_axis(_PERCENT, axis.left, axis.right, top, bottom),
        _rules(axis, top, bottom),
        baseline(axis.left, axis.right, bottom),
    ]
    if one.looked is not None:
        x = axis.x(one.looked.total_seconds())
        parts.append(filled(box(x, top, axis.right - x, _HEIGHT), GREY, 0.2))
    for curve in curves:
        line = polyline((axis.x(at), bottom - share * _HEIGHT) for at, share in curve.steps)
        parts.append(stroke(line, _COLOURS[curve.kind], 1.8))
    parts.append(_upright(axis.x(one.lateness.total_seconds()), top, bottom, ""))
    if one.suggested is not None and one.suggested != one.lateness:
        parts.append(_upright(axis.x(one.suggested.total_seconds()), top, bottom, "4 3"))
    if not curves:
        middle = (axis.left + axis.right) / 2
        said = "no delays are known"
        # A rule of the axis lies at the middle of the panel.
        place = bottom - 0.625 * _HEIGHT + 4
        parts.append(text(middle, place, said, anchor="middle", faint=True))
    return "".join(parts), bottom


def _entries(one: Lateness, curves: list[Curve]) -> list[Entry]:
    kinds = {"points": one.points, "revisions": one.revisions}
    entries = [
        Entry(_quantiles(curve.kind, kinds[curve.kind]), "line", _COLOURS[curve.kind])
        for curve in curves
    ]
    entries.append(Entry(f"lateness {duration(one.lateness)}", "line", RED))
    if one.suggested is not None and one.suggested != one.lateness:
        entries.append(Entry(f"suggested {duration(one.suggested)}", "dashes", RED))
    if one.looked is not None:
        looked = f"not looked at, after {duration(one.looked)}"
        entries.append(Entry(looked, "area", GREY, 0.3))
    return entries


def _quantiles(kind: str, delays: Delays) -> str:
    half, p99, longest = (
        None if one is None else duration(one)
        for one in (delays.median, delays.p99, delays.longest)
    )
    return f"{delays.count:,} {kind}: half {half}, 99 % {p99}, all {longest}"


def _upright(x: float, top: float, bottom: float, dashes: str) -> str:
    return stroke(f"M{number(x)} {number(top)}V{number(bottom)}", RED, 1.6, dashes=dashes)


def _ticks(axis: _Delay) -> list[tuple[float, str]]:
    return [(axis.x(at), label) for at, label in _TICKS if axis.least <= at <= axis.most]


def _rules(axis: _Delay, top: float, bottom: float) -> str:
    lines = rules((x, top, x, bottom) for x, _ in _ticks(axis))
    return stroke(lines, "currentColor", 1, opacity=0.1)


def _labels(axis: _Delay, bottom: float, full: int) -> str:
    drawn, used = [], 0.0
    for x, label in _ticks(axis):
        half = width(label) / 2
        if x - half >= used and x + half <= full:
            drawn.append(text(x, bottom + 17, label, anchor="middle"))
            used = x + half + 8
    return "".join(drawn)


def _notes(not_shown: int, panels: int) -> list[str]:
    if not not_shown:
        return []
    are = "is" if not_shown == 1 else "are"
    return [f"… and {counted(not_shown, 'more feed')} {are} not shown (panels={panels})"]


def _describe(shown: list[Lateness], notes: list[str]) -> str:
    if len(shown) == 1:
        said = [_with_counts(shown[0])]
    else:
        said = [
            f"{one.feed.name}, lateness {duration(one.lateness)}: {one.verdict}" for one in shown
        ]
    return ". ".join([*said, *notes]) + "."


def _with_counts(one: Lateness) -> str:
    verdict = one.verdict[:1].upper() + one.verdict[1:]
    kinds = (("points", one.points), ("revisions", one.revisions))
    known = [_quantiles(kind, delays) for kind, delays in kinds if delays.count]
    if not known:
        return verdict
    return ". ".join([f"Lateness {duration(one.lateness)}: {verdict}", *known])
