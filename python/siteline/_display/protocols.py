"""The records of the core that are rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    pass

__all__: list[str] = []


class Pixel(TypedDict):
    """The values in one pixel of a line, scaled to 0..1."""

    x: int
    """The position from the left."""
    low: float
    """The lowest value."""
    high: float
    """The highest value."""


class SeriesPreview(TypedDict):
    """A series as a line."""

    ids: tuple[str | None, ...]
    """The five ids."""
    points: int
    """The number of points."""
    values: tuple[float, float] | None
    """The lowest and highest value; ``None`` without any."""
    stretches: list[list[Pixel]]
    """The line: stretches without a gap."""


class Preview(TypedDict):
    """The first series of some points, prepared for drawing."""

    range: tuple[int, int]
    """The start and end of the time axis, in microseconds since the Unix epoch."""
    more: bool
    """Whether there are more series."""
    series: list[SeriesPreview]
    """The series, in the order of the points."""
