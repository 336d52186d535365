"""What the colours of a picture mean: swatches with their names, in as many lines as they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from siteline._plots.drawing import box, filled, frame, number, stroke, text
from siteline._plots.texts import fitted, width

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__: list[str] = []

LINE = 18
"""The height of a line of the legend."""
_SWATCH, _GAP, _APART = 14, 6, 18


class Entry(NamedTuple):
    """A swatch and its name: a line, a dashed line, an area, or one with an outline."""

    label: str
    kind: Literal["line", "dashes", "area", "outlined"]
    colour: str
    opacity: float = 1.0
    """Of the area; an outline is opaque."""


def legend(entries: Iterable[Entry], x: float, y: float, right: float) -> tuple[str, float]:
    """Write the legend from a place on, and return the base line of its last line."""
    left, drawn = x, []
    for entry in entries:
        label = fitted(entry.label, right - left - _SWATCH - _GAP)
        wide = _SWATCH + _GAP + width(label)
        if x > left and x + wide > right:
            x, y = left, y + LINE
        drawn.append(_swatch(entry, x, y) + text(x + _SWATCH + _GAP, y, label))
        x += wide + _APART
    return "".join(drawn), y


def _swatch(entry: Entry, x: float, y: float) -> str:
    if entry.kind in ("line", "dashes"):
        path = f"M{number(x)} {number(y - 4)}h{_SWATCH}"
        return stroke(path, entry.colour, 1.8, dashes="4 3" if entry.kind == "dashes" else "")
    place = (x, y - 10, _SWATCH, 12)
    return area([place], entry.colour, entry.opacity, outlined=entry.kind == "outlined")


def area(
    places: Iterable[tuple[float, float, float, float]],
    colour: str,
    opacity: float,
    *,
    outlined: bool,
) -> str:
    """Draw boxes of one colour; an outline lies inside, so that all boxes are equally large."""
    if not outlined:
        return filled("".join(box(*place) for place in places), colour, opacity)
    path = "".join(frame(*place, 1.2) for place in places)
    return (filled(path, colour, opacity) if opacity else "") + stroke(path, colour, 1.2)
