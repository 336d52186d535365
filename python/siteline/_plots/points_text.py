"""What the picture of series says: its title, what is not visible in it, its text alternative."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline._counts import counted
from siteline._plots.axis import clock, zone_name
from siteline._plots.stretches import COLUMN
from siteline._times import duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    from siteline._plots.axis import TimeAxis
    from siteline._plots.columns import Ids
    from siteline._plots.series import Drawn, Name, _Labels

__all__: list[str] = []


class Grid(NamedTuple):
    """The range that was asked for, and the width of a bucket, in microseconds where known."""

    start: int | None
    end: int | None
    interval: int | None


class Options(NamedTuple):
    """How series are drawn: see :meth:`siteline.Table.plot`."""

    measure: str
    zone: tzinfo
    labels: _Labels
    title: str | None
    width: int
    panels: int


class About(NamedTuple):
    """What is known when a picture is drawn."""

    grid: Grid
    interval: int | None
    not_shown: int
    lines: list[Drawn]
    names: Mapping[Ids, Name]
    unread: list[tuple[int, int]]
    axis: TimeAxis
    options: Options


def title_of(named: Mapping[Ids, Name], shared: str, series: list[Ids], measure: str) -> str:
    """Name what is drawn."""
    if not series:
        return f"{measure}: no points"
    if len(series) == 1:
        only = next(iter(named.values())).label
        return f"{measure} of {shared}/{only}" if shared else f"{measure} of {only}"
    of = f" of {shared}" if shared else ""
    return f"{measure}{of}: {len(series):,} series"


def every(about: About) -> str:
    """Write how far apart the points are, and how that is known."""
    if about.interval is None:
        return ""
    step = f"every {duration(timedelta(microseconds=about.interval))}"
    return f"{step} · " if about.grid.interval else f"{step}, the smallest step · "


def notes(about: About) -> list[str]:
    """Say what cannot be seen in the picture."""
    found = []
    if about.not_shown:
        are = "is" if about.not_shown == 1 else "are"
        bound = f"{are} not shown (panels={about.options.panels})"
        found.append(f"… and {about.not_shown:,} more series {bound}")
    hidden = sum(one.line.hidden for one in about.lines)
    if hidden:
        found.append(f"{counted(hidden, 'gap')} narrower than {COLUMN} pixels: not visible here")
    return found


def describe(about: About) -> str:
    """Say in words what the picture shows."""
    if not about.lines:
        return "No points."
    axis, lines = about.axis, about.lines
    total = sum(one.points for one in lines)
    said = [
        f"{counted(total, 'point')} of {len(lines):,} series",
        f"{clock(axis.start, axis.zone)} to {clock(axis.end, axis.zone)} {zone_name(axis.zone)}",
    ]
    lows = [one for one in lines if one.low <= one.high]
    if lows and len(lines) == 1:
        said.append(f"from {lows[0].low:,.6g} to {lows[0].high:,.6g}")
    gaps = sum(one.line.gaps for one in lines)
    if gaps and about.interval is not None:
        longest = timedelta(microseconds=max(one.line.longest for one in lines) - about.interval)
        said.append(f"{counted(gaps, 'gap')}, the longest of {duration(longest)}")
    elif about.interval is not None:
        said.append("no gaps between points")
    if about.interval is not None and not about.grid.interval:
        step = duration(timedelta(microseconds=about.interval))
        said.append(f"gaps by the smallest step seen, {step}")
    if about.unread:
        said.append(f"{counted(len(about.unread), 'range')} never read")
    return ". ".join(_sentence(one) for one in [*said, *notes(about)]) + "."


def _sentence(said: str) -> str:
    return said[:1].upper() + said[1:]
