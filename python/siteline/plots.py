"""Pictures as plain SVG: series over time, coverage, lateness, the allowance.

``table.plot()``, ``coverage.plot()``, ``lateness.plot()`` and the
functions of this module return a :class:`Plot`. No plotting package is needed, and none is loaded.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._keywords import explain, strict
from siteline.errors import QueryError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime, tzinfo
    from typing import NoReturn

    import pandas as pd

    from siteline._plots.columns import Ids
    from siteline._plots.drawing import Drawing
    from siteline.store import Store
    from siteline.types import Allowance, Coverage, Lateness, Plan

__all__ = ["Plot", "allowance", "coverage", "lateness"]


@explain
class Plot:
    """A picture: SVG for notebooks and files, its text alternative, and the frame behind it.

    Notebooks show it. It has the colour of the page, light or dark, and no background; there is no
    script in it, and the same data give the same bytes. Text of others, such as names of tags, is
    escaped. It keeps the points that it was made of, for :meth:`to_pandas`.

    >>> plot = scan.collect().plot()
    >>> plot
    <Plot value of S1: 12 series>
    >>> plot.save("day.svg")
    >>> plot.to_pandas()[["series", "timestamp", "value", "stretch"]].shape
    (72, 4)
    """

    __slots__ = ("__weakref__", "_drawing", "_frame")

    def __init__(self, drawing: Drawing, frame: Callable[[], pd.DataFrame]) -> None:
        """Wrap a drawing. Methods and functions named ``plot`` make plots."""
        self._drawing = drawing
        self._frame = frame

    @property
    def alt(self) -> str:
        """The text alternative: what the picture shows, in words."""
        return f"{self._drawing.title}. {self._drawing.description}"

    @property
    def width(self) -> int:
        """The width in pixels."""
        return self._drawing.width

    @property
    def height(self) -> float:
        """The height in pixels."""
        return self._drawing.height

    def svg(self, *, standalone: bool = True) -> str:
        """Return the SVG.

        Args:
            standalone: For a file or ``<img>``: dark text, and light text if the reader prefers a
                dark page. Otherwise for a page, whose text colour it has.

        >>> scan.collect().plot().svg(standalone=False)[:4]
        '<svg'
        """
        return self._drawing.svg(standalone=standalone)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file whose name ends with ``.svg``, whole or not at all.

        A file of this name is replaced.

        Args:
            path: The path of the file.

        Raises:
            QueryError: The name has another suffix.
            OSError: It cannot be written. An existing file is unchanged.
        """
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise QueryError(
                f"a picture is SVG: {target.name!r} does not end with .svg.",
                hint="Browsers open SVG. For PNG draw plot.to_pandas() with matplotlib.",
            )
        with _doors.whole_file(target) as part:
            part.write_text(self.svg(), encoding="utf-8", newline="\n")

    def to_pandas(self) -> pd.DataFrame:
        """Return the frame behind the picture, a row for each thing that it shows.

        Of series: ``series`` (the name that is drawn), the five ids, ``timestamp`` in the zone of
        the picture, ``value``, ``minimum``, ``maximum``, ``sample_count``, and ``stretch``, which
        is one higher after each gap: draw a line for each ``stretch``, and no gap is bridged. All
        points of the series that are shown are in it, also where there are more than pixels. What
        the frames of the other pictures have stands at the functions of this module.
        """
        return self._frame()

    def __eq__(self, other: object) -> bool:
        """Compare what is drawn."""
        return self._drawing == other._drawing if isinstance(other, Plot) else NotImplemented

    def __hash__(self) -> int:
        """Hash what is drawn."""
        return hash(self._drawing)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled and copied."""
        raise TypeError(
            "A Plot cannot be pickled or copied: pickle the result of its svg() or to_pandas()."
        )

    def __repr__(self) -> str:
        """Name the picture."""
        from siteline._plots.texts import fitted

        return f"<Plot {fitted(self._drawing.title, 700)}>"

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        return f'<div style="max-width:100%;overflow-x:auto">{self.svg(standalone=False)}</div>'


@strict
def coverage(
    coverages: Coverage | Iterable[Coverage],
    /,
    *,
    tz: str | tzinfo = "UTC",
    title: str | None = None,
    width: int = 900,
    rows: int = 40,
) -> Plot:
    """Draw which days of many feeds are settled, may still change, or were never read.

    There is a row for each feed and a cell for each day, or for several days if there are many.
    The parts of a cell have the colour of their state (:class:`CoverageWindow`).

    The frame has a row for each feed, day and state: ``feed``, ``day`` (its start, in the zone),
    ``state`` (as of a window, or ``"read, empty"``), ``share`` of the day.

    Args:
        coverages: One coverage, or several.
        tz: The zone of the days: a name of the IANA database, or a ``ZoneInfo``.
        title: The title of the plot.
        width: The width in pixels, from 400 to 4,000.
        rows: The most feeds. The plot says how many more there are.

    Raises:
        QueryError: There is no feed, or a value is wrong.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> store = siteline.Store("plant.siteline")
    >>> _ = client.sync(feed, store)
    >>> now = sandbox.clock.now()
    >>> siteline.plots.coverage([store.coverage(name, now=now) for name in store.feeds])
    <Plot Coverage of line-2>
    """
    from siteline._plots import coverage as drawn
    from siteline._plots import tidy

    given = _some(coverages, "settled_through")
    zone = _zone(tz)
    drawing, parts = drawn.picture(given, zone, title, _width(width), _bound(rows, "rows"))
    return Plot(drawing, partial(tidy.coverage_frame, parts, zone))


@strict
def lateness(
    latenesses: Lateness | Iterable[Lateness],
    /,
    *,
    title: str | None = None,
    width: int = 900,
    panels: int = 12,
) -> Plot:
    """Draw how late the points of feeds arrive: the share that has arrived by each delay.

    There is a panel for each feed. It has a curve of its points and one of their revisions. Lines
    show its lateness, the suggested lateness if the data suggest one, and the time after which
    nothing was read again. A feed without two reads of the same range has no curve.

    The frame has a row for each step of the curves: ``feed``, ``kind`` (``"points"`` or
    ``"revisions"``), ``delay``, and ``share``, which had arrived by then, from 0 to 1.

    Args:
        latenesses: One lateness, or several.
        title: The title of the plot.
        width: The width in pixels, from 400 to 4,000.
        panels: The most feeds. The plot says how many more there are.

    Raises:
        QueryError: There is no feed, or a value is wrong.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> store = siteline.Store("plant.siteline")
    >>> _ = client.sync(feed, store)
    >>> siteline.plots.lateness(store.lateness("line-2")).alt
    'Lateness of line-2. Too little data: hardly anything was read twice.'
    """
    from siteline._plots import lateness as drawn
    from siteline._plots import tidy

    given = _some(latenesses, "verdict")
    drawing, curves = drawn.picture(given, title, _width(width), _bound(panels, "panels"))
    return Plot(drawing, partial(tidy.lateness_frame, curves))


@strict
def allowance(
    known: Allowance,
    /,
    stores: Store | Iterable[Store] = (),
    *,
    plan: Plan | None = None,
    now: datetime | str | None = None,
    days: int = 14,
    title: str | None = None,
    width: int = 900,
) -> Plot:
    """Draw the requests of the last days, who spent them, and what is left of today's allowance.

    The part of today that no feed of the stores explains, such as retries, scans and other
    programs of the integration, is a part of its own.

    The frame has a row for each day and part: ``day`` (its start, UTC), ``part`` (a feed's name, or
    the name of another part), ``kind`` (``"read"``, ``"other"``, ``"planned"``, ``"reserved"`` or
    ``"pace"``), and ``requests``.

    Args:
        known: ``client.allowance``: the count of today, its limit and the end of the day.
        stores: A :class:`Store`, or several. Their pages of each day are the only record of the
            days before today.
        plan: ``client.plan(feeds, store)``. Its pages are drawn on top of today, with the pages
            that it reserves for windows that become due today.
        now: The time, by default that of the plan, for the pace: the count at the end of the day if
            the rest of the day is like its beginning. The first hour of a day has no pace.
        days: The number of days, from 1 to 366.
        title: The title of the plot.
        width: The width in pixels, from 400 to 4,000.

    Raises:
        QueryError: ``now`` is not in the day of ``known``, or a value is wrong.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> store = siteline.Store("plant.siteline")
    >>> client = sandbox.client(daily_allowance=100)
    >>> _ = client.sync(feed, store)
    >>> siteline.plots.allowance(client.allowance, store, plan=client.plan(feed, store))
    <Plot Requests by day: 4 of 100 today>
    """
    from siteline._plots import allowance as drawn
    from siteline._plots import pace, tidy

    at = pace.time_of(plan, known) if now is None else pace.instant(now)
    given: list[Store] = _listed(stores, "feeds")
    if days != int(days) or not 1 <= days <= 366:
        raise QueryError(f"days={days!r} is not a number of days from 1 to 366.")
    drawing, parts = drawn.picture(known, given, plan, at, int(days), title, _width(width))
    return Plot(drawing, partial(tidy.allowance_frame, parts))


@strict
def _points(
    source: Any,
    value: str,
    tz: str,
    labels: Mapping[Ids, str] | None,
    title: str | None,
    width: int,
    panels: int,
) -> Plot:
    """Draw points: ``Table.plot()``."""
    from siteline._plots import points, tidy
    from siteline._plots.columns import NUMBERS
    from siteline._plots.points_text import Grid, Options

    if value not in NUMBERS:
        names = ", ".join(f'"{name}"' for name in NUMBERS)
        raise QueryError(f"values={value!r} is unknown: give one of {names}.")
    wide, most = _width(width), _bound(panels, "panels")
    options = Options(value, _zone(tz), labels, title, wide, most)
    shown = points.picture(source, Grid(*source.grid()), options)
    return Plot(shown.drawing, partial(tidy.points_frame, shown))


def _zone(given: str | tzinfo) -> tzinfo:
    from datetime import UTC
    from zoneinfo import ZoneInfo

    if not isinstance(given, str):
        return given
    if given == "UTC":
        return UTC
    try:
        return ZoneInfo(given)
    except (OSError, ValueError, LookupError):
        raise QueryError(
            f"tz={given!r} is not a zone that this machine knows.",
            hint='Give a name of the IANA database, such as "Europe/Berlin". Where the system has '
            "none: pip install tzdata",
        ) from None


def _width(given: int) -> int:
    from siteline._plots.drawing import NARROWEST, WIDEST

    if isinstance(given, bool) or given != int(given) or not NARROWEST <= given <= WIDEST:
        raise QueryError(f"width={given!r} is not a number of pixels from {NARROWEST} to {WIDEST}.")
    return int(given)


def _bound(given: int, name: str) -> int:
    if isinstance(given, bool) or given != int(given) or given < 1:
        raise QueryError(f"{name}={given!r} is not a count from 1 on.")
    return int(given)


def _listed(given: Any, attribute: str) -> list[Any]:
    return [given] if hasattr(given, attribute) else list(given)


def _some(given: Any, attribute: str) -> list[Any]:
    found = _listed(given, attribute)
    if not found:
        raise QueryError("nothing was given: a picture needs at least one feed.")
    return found
