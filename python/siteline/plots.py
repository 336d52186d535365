"""Altair charts: points over time, coverage, lateness, the allowance.

The caller may change, combine and save the charts of this module, ``table.plot()``,
``coverage.plot()`` and ``lateness.plot()``. They need ``siteline[plot]``. ``chart.save()`` writes
PNG, SVG and PDF without a network, and with ``inline=True`` also HTML that needs none. Text and
background have the colours of the Altair theme: ``alt.theme.enable("dark")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline._keywords import strict
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, tzinfo

    import altair as alt

    from siteline.store import Store
    from siteline.types import Allowance, Coverage, Lateness, Plan

__all__ = ["allowance", "coverage", "lateness"]


@strict
def coverage(
    coverages: Coverage | Iterable[Coverage],
    *,
    tz: str | tzinfo = "UTC",
    title: str | None = None,
    width: int = 800,
    rows: int = 40,
) -> alt.LayerChart:
    """Return a chart of the time that feeds have settled, may still change, or never read.

    There is a row for each feed. The colours are the states of :class:`CoverageWindow`.

    Args:
        coverages: One coverage, or several.
        tz: The zone of the times.
        title: The title of the chart.
        width: The width in pixels, from 300 to 4,000.
        rows: The most feeds. The chart says how many more there are.

    Raises:
        QueryError: There is no feed, or a value is wrong.

    >>> now = sandbox.clock.now()
    >>> chart = siteline.plots.coverage([store.coverage(name, now=now) for name in store.feeds])
    >>> chart.title.text
    'Coverage of line-2'
    """
    from siteline import _plots
    from siteline.frames import zone_name

    given, zone = _listed(coverages, "settled_through"), zone_name(tz)
    chart: alt.LayerChart = _plots.load().coverage(given, zone, title, width, rows)
    return chart


@strict
def lateness(
    latenesses: Lateness | Iterable[Lateness],
    *,
    title: str | None = None,
    width: int = 800,
    panels: int = 12,
) -> alt.VConcatChart:
    """Return a chart of how late the points of feeds arrive: the share that arrived by each delay.

    A panel for each feed has a curve of its points and one of their revisions. Lines show its
    lateness and the suggested lateness. The time after which nothing was read again is grey. A feed
    without two reads of the same range has no curve.

    Args:
        latenesses: One lateness, or several.
        title: The title of the chart.
        width: The width in pixels, from 300 to 4,000.
        panels: The most feeds. The chart says how many more there are.

    Raises:
        QueryError: There is no feed, or a value is wrong.

    >>> siteline.plots.lateness(store.lateness("line-2")).description
    'Lateness of line-2. line-2: too little data: hardly anything was read twice'
    """
    from siteline import _plots

    given = _listed(latenesses, "verdict")
    chart: alt.VConcatChart = _plots.load().lateness(given, title, width, panels)
    return chart


@strict
def allowance(
    allowance: Allowance,
    stores: Store | Iterable[Store] = (),
    *,
    plan: Plan | None = None,
    now: datetime | str | None = None,
    days: int = 14,
    title: str | None = None,
    width: int = 800,
) -> alt.LayerChart:
    """Return a chart of the requests of the last days, by feed, and of today's limit.

    Requests of today without a page in the stores, such as retries and scans, have their own part.

    Args:
        allowance: ``client.allowance``: the count of today, its limit and the end of the day.
        stores: One or several. Their pages are the only record of the days before today.
        plan: ``client.plan(feeds, store)``. Its pages and its reserve are drawn on top of today.
        now: The time, by default that of the plan, for the pace: the count at the end of the day if
            the rest of the day is like its beginning. The first hour of a day has no pace.
        days: The number of days, from 1 to 366.
        title: The title of the chart.
        width: The width in pixels, from 300 to 4,000.

    Raises:
        QueryError: ``now`` is not in the day of ``allowance``, or a value is wrong.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> store = siteline.Store("plant.siteline")
    >>> client = sandbox.client(daily_allowance=100)
    >>> _ = client.sync(feed, store)
    >>> plan = client.plan(feed, store)
    >>> siteline.plots.allowance(client.allowance, store, plan=plan).title.text
    'Requests by day: 4 of 100 today'
    """
    from siteline import _plots

    if not 1 <= days <= 366:
        raise QueryError(f"days={days!r} is not a number of days from 1 to 366.")
    load, given = _plots.load(), _listed(stores, "feeds")
    chart: alt.LayerChart = load.allowance(allowance, given, plan, now, days, title, width)
    return chart


def _listed(given: Any, attribute: str) -> list[Any]:
    return [given] if hasattr(given, attribute) else list(given)
