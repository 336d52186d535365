"""The chart of points and larger buckets over time: a panel for each series, or one for all."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from siteline import _doors, _plots
from siteline._counts import counted
from siteline._plots import BLUE, GREY, alt, safe
from siteline._times import (
    duration,
    from_microseconds,
    in_zone,
    local_microseconds,
    to_second,
    zone_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import tzinfo

    from siteline.table import Table

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
# A chart of one series has about twice as many points at most.
_BINS = 2_000
_MONTH = "1mo"
_PERIODS = {"1h": "hours", "1d": "days", "7d": "weeks", _MONTH: "months"}


class View(NamedTuple):
    """The drawn column, the range in microseconds, and the number of bins."""

    values: str
    zone: tzinfo
    inner: int
    start: int
    end: int
    step: int | None  # between two points
    bins: int
    every: str | None = None  # the length of larger buckets, which are drawn to their ends

    def clock(self, at: int) -> float:
        return _plots.clock(from_microseconds(at), self.zone)

    def bucket_end(self, at: float) -> float:
        """Return the end of a larger bucket on the clock. Months differ in length."""
        if self.every != _MONTH:
            return at + (self.step or 0) / 1000
        start = from_microseconds(round(at * 1000))
        return _plots.clock((start.replace(day=1) + timedelta(days=32)).replace(day=start.day), UTC)


class Series(NamedTuple):
    """A series: all its points, and the rows that are drawn."""

    label: str
    unit: str | None
    columns: dict[str, Any]
    rows: list[dict[str, Any]]
    partial: set[tuple[float, float]]  # periods that were not read completely


def points(
    table: Table, values: str, tz: str, labels: Mapping[Any, str] | None, title: str | None,
    width: int, panels: int, overlay: bool,
) -> Any:  # fmt: skip
    """Draw the first series of a table."""
    inner, frame, zone = _plots.size(width), _doors.handle(table), zone_of(tz)
    found = frame.series()
    shown, more = _plots.first(found, panels, "panels")
    columns = [_columns(frame.keep([ids])) for ids in shown]
    times = [own["timestamp"] for own in columns]
    start, end, interval = frame.grid()
    unread = [
        [local_microseconds(at, "UTC") for at in span]
        for span in (frame.provenance().get("coverage") or {}).get("unread", ())
    ]
    bounds = [at for at in (start, end) if at is not None]
    bounds += [at for span in unread for at in span] if len(bounds) < 2 else []
    bounds += [int(own[place]) for own in times if len(own) for place in (0, -1)]
    first, last = min(bounds, default=0), max(bounds, default=0)
    steps = [int(step[step > 0].min()) for step in map(np.diff, times) if (step > 0).any()]
    step, every = interval or min(steps, default=None), frame.every
    bins = max(inner // 2, _BINS // max(len(shown), 1))
    view = View(values, zone, inner, first, max(last, first + 1), step, bins, every)
    units = {tuple(row[name] for name in IDS): row["unit"] for row in table.series.records()}
    names = {ids: " / ".join(one or "" for one in ids) for ids in shown} | dict(labels or {})
    series = [
        _series(names[ids], units.get(ids), own, view)
        for ids, own in zip(shown, columns, strict=True)
    ]
    clipped = [(max(a, first), min(b, last)) for a, b in unread]
    never = {(view.clock(a), view.clock(b)) for a, b in clipped if a < b}
    groups = [series] if overlay or not series else [[one] for one in series]
    height = {1: 240, 2: 140, 3: 140}.get(len(groups), 90)
    drawn = [
        _panel(group, view, never, height, has_labels=group is groups[-1],
               head=_heading(group[0], view) if groups[1:] else "")
        for group in groups
    ]  # fmt: skip
    period = every if every == _MONTH else step and duration(timedelta(microseconds=step))
    pace = (
        f"every {period}{'' if interval or every else ' (the shortest step)'} · " if period else ""
    )
    ends = (to_second(in_zone(from_microseconds(at), zone)) for at in (view.start, view.end))
    notes = [f"{pace}{' to '.join(ends)} {tz}"] if series else []
    notes += [*_notes(series, view, len(never)), more]
    scales = {one.unit or "no unit" for one in series} if values != "sample_count" else set()
    if overlay and len(scales) > 1:
        notes.append(f"one scale for different units: {', '.join(sorted(scales))}")
    chart = _plots.zoomed(drawn, [(one.label, one.rows) for one in series])
    return _plots.finished(chart, title or _title(found, series, view), notes, width)


def _columns(frame: Any) -> dict[str, Any]:
    """Return the columns of numbers, ascending in time."""
    columns: dict[str, Any] = {}
    for name, kind, *payload in frame.columns((None, None, None))[0]:
        if name == "partial":
            columns[name] = np.frombuffer(payload[0], np.bool_)
        elif name in ("timestamp", "value", "minimum", "maximum", "sample_count"):
            columns[name] = np.asarray(payload[0])
            if kind == "integer" and payload[1] is not None:
                columns[name] = np.where(np.frombuffer(payload[1], np.bool_), np.nan, columns[name])
    # The points of a page are in the order of the service.
    order = np.argsort(columns["timestamp"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _series(label: str, unit: str | None, columns: dict[str, Any], view: View) -> Series:
    """Return a series with the rows that are drawn: all points, or the extremes of each bin."""
    there = np.isfinite(columns[view.values])
    shown = {name: column[there] for name, column in columns.items()}
    # The local days of a zone have up to 25 hours.
    is_gap = np.diff(shown["timestamp"]) > 1.5 * (view.step or np.inf)
    kept, numbers, is_seen = reduced(shown, view, is_gap)
    times = shown["timestamp"][kept]
    clock = np.array([view.clock(at) for at in times.tolist()])
    # A clock that is set back shows an hour twice.
    is_back = (np.diff(times) > 0) & (np.diff(clock) <= 0)
    is_new = np.isin(kept[1:] - 1, np.flatnonzero(is_seen)) | is_back
    # The line is interrupted between two stretches.
    stretch = np.cumsum(np.concatenate([np.zeros(len(kept[:1]), int), is_new]))
    drawn: dict[str, list[Any]] = {"time": clock.tolist(), "stretch": stretch.tolist()}
    is_lone = np.bincount(stretch)[stretch] == 1
    if view.every:
        drawn["end"] = [view.bucket_end(at) for at in drawn["time"]]
    elif is_lone.any():
        drawn["isLone"] = is_lone.tolist()
    for name, column in numbers.items():
        drawn[name] = list(np.where(np.isfinite(column), column, None))
    rows = [dict(zip(drawn, row, strict=True)) for row in zip(*drawn.values(), strict=True)]
    starts = map(view.clock, columns["timestamp"][columns.get("partial", [])].tolist())
    partial = {(at, view.bucket_end(at)) for at in starts}
    return Series(label, unit, columns, rows, partial)


def reduced(columns: dict[str, Any], view: View, is_gap: Any) -> tuple[Any, dict[str, Any], Any]:
    """Return the places of the points that are drawn, their numbers, and which gaps are drawn.

    So that no spike is lost, each of many bins keeps its lowest and highest point, both with the
    minimum and the maximum of the bin. A gap of more than a bin keeps the points at its ends.
    """
    times, values = columns["timestamp"], columns[view.values]
    bands = {"minimum": np.fmin, "maximum": np.fmax} if view.values == "value" else {}
    if len(times) <= 2 * view.bins:
        drawn = {name: columns[name] for name in (view.values, *bands)}
        return np.arange(len(times)), drawn, is_gap
    length = view.end - view.start
    bins = ((times - view.start) / length * view.bins).astype(np.int64).clip(0, view.bins - 1)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(times)))
    is_seen = is_gap & (np.diff(times) > length / view.bins)
    gaps, order = np.flatnonzero(is_seen), np.lexsort((values, bins))
    ends = [0, len(times) - 1]
    # Sorted by value, the first point of a bin is its lowest, the last one its highest.
    highest = order[np.append(starts[1:], len(times)) - 1]
    places = np.unique(np.concatenate([gaps, gaps + 1, ends, order[starts], highest]))
    extremes = {n: pick.reduceat(columns[n], starts)[group[places]] for n, pick in bands.items()}
    return places, {view.values: values[places], **extremes}, is_seen


def _panel(
    group: list[Series], view: View, never: set[Any], height: int, *, has_labels: bool, head: str
) -> Any:
    """Draw a panel: a series, or several in different colours."""
    names = [safe(one.label) for one in group] if len(group) > 1 else []
    rows = [
        row | ({"series": safe(one.label)} if names else {}) for one in group for row in one.rows
    ]
    partial = set().union(*(one.partial for one in group))
    bounds = [view.clock(view.start), view.clock(view.end)]
    bounds += [row[end] for row in rows for end in ("time", "end") if view.every]
    ends = min(bounds), max(bounds)

    def x(field: str) -> Any:
        return _plots.time_x(field, *ends, view.inner, has_labels=has_labels)

    # The stripes depend on the width of a box. Only months differ, by a tenth.
    longest = max((end - start for start, end in partial), default=0)
    hatching = _hatching(max(view.inner * longest / (ends[1] - ends[0]), 1), height)
    layers = [
        _plots.data({"from": start, "to": end} for start, end in sorted(spans))
        .mark_rect(color=paint, aria=False).encode(x=x("from"), x2="to:T")
        for spans, paint in ((never, f"{GREY}44"), (partial, hatching)) if spans
    ]  # fmt: skip
    units = {one.unit for one in group if view.values != "sample_count"} - {None, "", "1"}
    axis = _plots.number_axis(units.pop() if len(units) == 1 else None, height)
    colour = alt.value(BLUE)
    if names:
        colour = _plots.line_colours("series:N", names, columns=2, labelLimit=view.inner // 2 - 30)
    y = alt.Y(f"{view.values}:Q", axis=axis, scale=alt.Scale(zero=False))
    plain = line = alt.Chart().encode(x=x("time"), y=y, color=colour)
    if view.every:
        # A larger bucket is a horizontal line from its start to its end.
        line = plain.transform_fold(["time", "end"], as_=["edge", "at"]).encode(x=x("at"))
    lone = plain.transform_filter("datum.isLone")
    shown = [view.values]
    if any(_has_band(one, view) for one in group):
        shown += ["minimum", "maximum"]
        band = {"y": alt.Y("minimum:Q"), "y2": alt.Y2("maximum:Q")}
        area = line.mark_area(opacity=0.25, aria=False)
        layers.append(area.encode(detail="stretch:N", **band))
        layers.append(lone.mark_rule(strokeWidth=4, opacity=0.4, aria=False).encode(**band))
    layers.append(line.mark_line(strokeWidth=1.5, aria=False).encode(detail="stretch:N"))
    layers.append(lone.mark_circle(size=22, opacity=1, aria=False))
    tips = [alt.Tooltip("series:N")] if names else []
    tips += [alt.Tooltip("when:N", title="time")]
    tips += [alt.Tooltip(f"{name}:Q", format=",.6~g") for name in shown]
    hover = plain.mark_square(size=120, opacity=0, aria=False).encode(tooltip=tips)
    layers.append(hover.transform_calculate(when=_plots.WHEN.format("time")))
    chart = _plots.panel(layers, view.inner, height, head)
    chart.data = alt.InlineData(rows)
    return chart


def _has_band(one: Series, view: View) -> bool:
    """Return whether the values are within the band. Sums of larger buckets are not."""
    lows, highs, values = (one.columns[name] for name in ("minimum", "maximum", "value"))
    is_sum = bool(view.every) and ((values < lows) | (values > highs)).any()
    return view.values == "value" and not is_sum and bool(np.isfinite(lows + highs).any())


def _hatching(wide: float, height: int) -> dict[str, Any]:
    """Return a gradient of stripes at 45 degrees, for boxes of this size."""
    scale, count = (wide + height) / (wide**2 + height**2), max(round((wide + height) / 9), 2)
    stops = [
        {"offset": round((stripe + part) / count, 5), "color": f"{GREY}{opacity}"}
        for stripe in range(count)
        for part, opacity in ((0, 70), (0.3, 70), (0.3, "00"), (1, "00"))
    ]
    ends = {"x1": 0, "y1": 0, "x2": wide * scale, "y2": height * scale}
    return {"gradient": "linear", "stops": stops, **ends}


def _title(found: list[Any], series: list[Series], view: View) -> str:
    """Name what all series share, such as their site and line."""
    if not found:
        return f"{view.values}: no points"
    shared = [next(iter(ids)) for ids in map(set, zip(*found, strict=True)) if len(ids) == 1]
    if len(found) > 1:
        return ": ".join(filter(None, [" / ".join(filter(None, shared)), f"{len(found):,} series"]))
    site, heading = " / ".join(filter(None, shared[:2])), _heading(series[0], view)
    return heading if not site or heading.startswith(site) else f"{site}: {heading}"


def _heading(one: Series, view: View) -> str:
    numbers, name = one.columns[view.values], one.label.removesuffix(f" [{one.unit}]")
    if not np.isfinite(numbers).any():
        return f"{name}: no {view.values} in {counted(len(numbers), 'point')}"
    return name if view.values == "value" else f"{name}, {view.values}"


def _notes(series: list[Series], view: View, unread: int) -> Iterator[str]:
    """Write what the chart does not show by itself."""
    width = duration(timedelta(seconds=round((view.end - view.start) / view.bins / 1e6)))
    if any(len(one.columns["timestamp"]) > 2 * view.bins for one in series):
        yield f"lowest and highest value of each {width}; shorter gaps are not drawn"
    if unread:
        yield f"grey: {counted(unread, 'range')} never read"
    if partial := set().union(*(one.partial for one in series)):
        periods = {at for one in series for at in one.columns["timestamp"].tolist()}
        name = _PERIODS.get(view.every or "", "periods")
        yield f"hatched: {len(partial):,} of {len(periods):,} {name} are partial"
