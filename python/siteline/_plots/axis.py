"""The axes of a picture: time below, numbers at the left, and the rules between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline._plots.calendar_ticks import local, ticks
from siteline._plots.drawing import number, rules, stroke, text
from siteline._plots.texts import width

if TYPE_CHECKING:
    from datetime import tzinfo

    from siteline._plots.calendar_ticks import Tick
    from siteline._plots.numbers import Scale

__all__: list[str] = []

# Between two labels of an axis, in pixels.
_APART = 10
TIME_AXIS = 38
"""The height of the labels below a picture."""


class TimeAxis(NamedTuple):
    """A range of time, in microseconds since the Unix epoch, from one pixel to another."""

    start: int
    end: int
    left: float
    right: float
    zone: tzinfo

    def x(self, at: int) -> float:
        """Return the pixel of a time; one outside the range is at its end."""
        length = max(self.end - self.start, 1)
        share = min(max((at - self.start) / length, 0.0), 1.0)
        return self.left + share * (self.right - self.left)

    def ticks(self) -> list[Tick]:
        """Return the ticks that have room for their labels."""
        most = max(int((self.right - self.left) / 80), 1)
        return ticks(self.start, self.end, self.zone, most)

    def rules(self, top: float, bottom: float, marks: list[Tick]) -> str:
        """Draw a faint rule at each tick."""
        places = (self.x(tick.at) for tick in marks)
        lines = rules((x, top, x, bottom) for x in places)
        return stroke(lines, "currentColor", 1, opacity=0.1)

    def labels(self, y: float, marks: list[Tick], full: float) -> str:
        """Write the labels below ``y``, in two lines; ``full`` is the width of the picture."""
        drawn, used = [], -float(_APART)
        for tick in marks:
            x, half = self.x(tick.at), width(tick.label) / 2
            if x - half < max(used + _APART, 0) or x + half > full:
                continue
            used = x + half
            drawn.append(text(x, y + 17, tick.label, anchor="middle"))
        return "".join(drawn) + self._below(y + 31, marks, full)

    def _below(self, y: float, marks: list[Tick], full: float) -> str:
        """Write what several ticks share where it changes; at the left end where there is room."""
        places: list[tuple[float, str]] = []
        for tick in marks:
            if not tick.below or (places and places[-1][1] == tick.below):
                continue
            half = width(tick.below) / 2
            x = min(max(self.x(tick.at), half), full - half)
            if places and x - half < places[-1][0] + width(places[-1][1]) / 2 + _APART:
                # The first one only continues what began outside the picture.
                if len(places) > 1:
                    continue
                places.pop()
            places.append((x, tick.below))
        return "".join(text(x, y, label, anchor="middle", faint=True) for x, label in places)


def microseconds(at: datetime) -> int:
    """Return a time as microseconds since the Unix epoch."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def zone_name(zone: tzinfo) -> str:
    """Return the name of a zone, as it was asked for."""
    return "UTC" if zone is UTC else str(getattr(zone, "key", None) or zone)


def clock(at: int, zone: tzinfo) -> str:
    """Write a time on the clock of a zone: ``2026-11-01 00:00``."""
    shown = local(at, zone)
    text_of = f"{shown:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
    return text_of if text_of.count(":") else f"{shown:%Y-%m-%d %H:%M}"


def room_for(scales: list[Scale]) -> float:
    """Return the width of the labels at the left of a picture."""
    return max((width(label) for one in scales for _, label in one.ticks), default=0) + 12


def number_axis(scale: Scale, left: float, right: float, top: float, bottom: float) -> str:
    """Draw the ticks of an axis of numbers, their rules and labels."""
    places = [bottom - scale.share(value) * (bottom - top) for value, _ in scale.ticks]
    lines = stroke(rules((left, y, right, y) for y in places), "currentColor", 1, opacity=0.14)
    labels = "".join(
        text(left - 7, y + 4, label, anchor="end")
        for y, (_, label) in zip(places, scale.ticks, strict=True)
    )
    return lines + labels


def baseline(left: float, right: float, y: float) -> str:
    """Draw the line on which a picture stands."""
    return stroke(f"M{number(left)} {number(y)}H{number(right)}", "currentColor", 1, opacity=0.5)
