"""The chart of points and larger buckets over time: a panel for each series, or one for all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import altair as alt
import numpy as np

from siteline import _doors
from siteline._counts import counted
from siteline._plots import base
from siteline._plots.base import BLUE, GREY, safe
from siteline._times import duration, from_microseconds, in_zone, to_second, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import tzinfo

    from siteline.table import Table

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
NUMBERS = ("value", "minimum", "maximum", "sample_count")
# A chart of one series has about twice as many points at most.
_BINS = 2_000
_PERIODS = {86_400: "days", 604_800: "weeks", 3_600: "hours", 0: "months"}
_MONTH = "1mo"


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


class Series(NamedTuple):
    """A series: all its points, and the rows that are drawn."""

    ids: tuple[str | None, ...]
    label: str
    unit: str | None
    columns: dict[str, Any]
    rows: list[dict[str, Any]]
    hidden: int  # gaps that are too short for the chart
    back: set[str]  # days on which the clock was set back

    def partial(self, view: View) -> set[tuple[float, float]]:
        """Return the clock's bounds of each period that was not read completely."""
        times = self.columns["timestamp"][self.columns.get("partial", [])].tolist()
        starts = [base.clock(from_microseconds(at), view.zone) for at in times]
        return {(at, _end(at, view)) for at in starts}


def points(
    table: Table, values: str, tz: str, labels: Mapping[Any, str] | None, text: str | None,
    width: int, panels: int, overlay: bool,
) -> Any:  # fmt: skip
    """Draw the first series of a table."""
    inner, frame, zone = base.size(width), _doors.frame(table), zone_of(tz)
    found, unread = _read(frame)
    shown, more = base.first(list(found.items()), panels, "panels", "series")
    start, end, interval = frame.grid()
    times = [columns["timestamp"] for _, columns in shown]
    steps = [int(step[step > 0].min()) for step in map(np.diff, times) if (step > 0).any()]
    bounds = [at for at in (start, end) if at is not None]
    bounds += [at for span in unread for at in span] if len(bounds) < 2 else []
    bounds += [int(one[place]) for one in times for place in (0, -1)]
    first, last = min(bounds, default=0), max(bounds, default=0)
    step, every = interval or min(steps, default=None), frame.every
    bins = max(inner // 2, _BINS // max(len(shown), 1))
    ends = first, max(last, first + 1)
    view = View(values, zone, inner, *ends, step, bins, every)
    units = {tuple(row[name] for name in IDS): row["unit"] for row in table.series.records()}
    names = {ids: " / ".join(one or "" for one in ids) for ids, _ in shown} | dict(labels or {})
    series = [_series(ids, names[ids], units.get(ids), own, view) for ids, own in shown]
    never = [
        tuple(base.clock(from_microseconds(at), zone) for at in (max(a, first), min(b, last)))
        for a, b in unread if a < last and b > first
    ]  # fmt: skip
    groups = [series] if overlay or not series else [[one] for one in series]
    drawn = [
        _panel(group, view, never, 240 if len(groups) == 1 else 140 if len(groups) <= 3 else 90,
               has_labels=group is groups[-1], head=_heading(group[0], view) if groups[1:] else "")
        for group in groups
    ]  # fmt: skip
    period = every if every == _MONTH else step and duration(timedelta(microseconds=step))
    pace = f"every {period}" if period else ""
    pace += " (the shortest step)" if step and not interval and not every else ""
    span = " to ".join(to_second(in_zone(from_microseconds(at), zone)) for at in ends)
    notes = [" · ".join(filter(None, [pace, f"{span} {tz}" if series else ""]))]
    notes += [*_notes(series, view, len(never)), more]
    chart = base.zoomed(drawn, [(one.ids, one.rows) for one in series])
    return base.finished(chart, text or _title(list(found), series, view), notes, width, notes)


def _read(frame: Any) -> tuple[dict[Any, dict[str, Any]], list[tuple[int, int]]]:
    """Return the columns of each series, ascending in time, and the ranges that were never read."""
    given, provenance = frame.columns((None, None, None))
    columns: dict[str, Any] = {}
    ids, lengths = [], np.empty(0, dtype=np.int64)
    for name, kind, *payload in given:
        if kind == "runs":
            lengths, codes = np.frombuffer(payload[1], np.int64), np.frombuffer(payload[0], "i4")
            ids.append([payload[2][code] if code >= 0 else None for code in codes.tolist()])
        elif name == "partial":
            columns[name] = np.frombuffer(payload[0], np.bool_)
        elif name in ("timestamp", *NUMBERS):
            columns[name] = np.asarray(payload[0])
            if kind == "integer" and payload[1] is not None:
                columns[name] = np.where(np.frombuffer(payload[1], np.bool_), np.nan, columns[name])
    places: dict[Any, int] = {}
    owners = [places.setdefault(one, len(places)) for one in zip(*ids, strict=True)]
    owner = np.repeat(np.array(owners, dtype=np.int32), lengths)
    # The points of a page are in the order of the service.
    order = np.lexsort((columns["timestamp"], owner))
    parts = np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)
    names, epoch = list(places), datetime(1970, 1, 1, tzinfo=UTC)
    found = {
        names[owner[part[0]]]: {name: column[part] for name, column in columns.items()}
        for part in parts if len(part)
    }  # fmt: skip
    spans = (provenance.get("coverage") or {}).get("unread", ())
    times = [[datetime.fromisoformat(at) - epoch for at in span] for span in spans]
    return found, [
        (a // timedelta(microseconds=1), b // timedelta(microseconds=1)) for a, b in times
    ]


def _series(ids: Any, label: str, unit: str | None, columns: dict[str, Any], view: View) -> Series:
    """Return a series with the rows that are drawn: all points, or the extremes of each bin."""
    there = np.isfinite(columns[view.values])
    shown = {name: column[there] for name, column in columns.items()}
    # The local days of a zone have up to 25 hours.
    is_gap = np.diff(shown["timestamp"]) > 1.5 * (view.step or np.inf)
    kept, numbers, is_seen = reduced(shown, view, is_gap)
    times = shown["timestamp"][kept]
    clock = np.array([base.clock(from_microseconds(at), view.zone) for at in times.tolist()])
    is_back = (np.diff(times) > 0) & (np.diff(clock) <= 0)
    is_new = np.isin(kept[1:] - 1, np.flatnonzero(is_seen)) | is_back
    # The line is interrupted between two stretches.
    stretch = np.cumsum(np.concatenate([np.zeros(len(kept[:1]), int), is_new]))
    drawn: dict[str, list[Any]] = {"time": clock.tolist(), "stretch": stretch.tolist()}
    is_lone = np.bincount(stretch)[stretch] == 1
    if view.every:
        drawn["end"] = [_end(at, view) for at in drawn["time"]]
    elif is_lone.any():
        drawn["isLone"] = is_lone.tolist()
    for name, column in numbers.items():
        drawn[name] = list(np.where(np.isfinite(column), column, None))
    rows = [dict(zip(drawn, row, strict=True)) for row in zip(*drawn.values(), strict=True)]
    twice = (clock[1:][is_back] * 1000).astype(np.int64).tolist()
    back = {f"{from_microseconds(at):%Y-%m-%d}" for at in twice}
    return Series(ids, label, unit, columns, rows, int(is_gap.sum() - is_seen.sum()), back)


def _end(at: float, view: View) -> float:
    """Return the end of a larger bucket on the clock. Months differ in length."""
    if view.every != _MONTH:
        return at + (view.step or 0) / 1000
    start = from_microseconds(round(at * 1000))
    return base.clock((start.replace(day=1) + timedelta(days=32)).replace(day=start.day), UTC)


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
    group: list[Series], view: View, never: list[Any], height: int, *, has_labels: bool, head: str
) -> Any:
    """Draw a panel: a series, or several in different colours."""
    names = [safe(one.label) for one in group] if len(group) > 1 else []
    rows = [
        row | ({"series": safe(one.label)} if names else {}) for one in group for row in one.rows
    ]
    partial = set().union(*(one.partial(view) for one in group))
    bounds = [base.clock(from_microseconds(at), view.zone) for at in (view.start, view.end)]
    bounds += [row[end] for row in rows for end in ("time", "end") if view.every]
    ends = min(bounds), max(bounds)

    def x(field: str) -> Any:
        return base.time_x(field, *ends, view.inner, has_labels=has_labels)

    # The stripes depend on the width of a box. Only months differ, by a tenth.
    longest = max((end - start for start, end in partial), default=0)
    hatching = _hatching(max(view.inner * longest / (ends[1] - ends[0]), 1), height)
    layers = [
        base.data({"from": start, "to": end} for start, end in sorted(spans))
        .mark_rect(color=paint, aria=False).encode(x=x("from"), x2="to:T")
        for spans, paint in ((never, f"{GREY}44"), (partial, hatching)) if spans
    ]  # fmt: skip
    units = {one.unit for one in group if view.values != "sample_count"} - {None, "", "1"}
    axis = base.number_axis(units.pop() if len(units) == 1 else None, height)
    legend = alt.Legend(
        title=None, orient="bottom", columns=2, labelLimit=view.inner // 2 - 30,
        symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2,
    )  # fmt: skip
    scale = alt.Scale(domain=names, range=base.COLOURS)
    colour = alt.Color("series:N", scale=scale, legend=legend) if names else alt.value(BLUE)
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
    when = base.WHEN.format("time", ":%S" if any(row["time"] % 60_000 for row in rows) else "")
    hover = plain.mark_square(size=120, opacity=0, aria=False).encode(tooltip=tips)
    layers.append(hover.transform_calculate(when=when))
    chart = base.panel(layers, view.inner, height, head)
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
    if len(found) == 1:
        label = _heading(series[0], view)
        site = " / ".join(name for name in found[0][:2] if name)
        return label if not site or label.startswith(site) else f"{site}: {label}"
    levels = [set(names) for names in zip(*found, strict=True)][:4]
    names = " / ".join(name for one in levels if len(one) == 1 for name in one if name)
    return ": ".join(filter(None, [names, f"{len(found):,} series"]))


def _heading(one: Series, view: View) -> str:
    label, numbers = one.label.removesuffix(f" [{one.unit}]"), one.columns[view.values]
    if not np.isfinite(numbers).any():
        return f"{label}: no {view.values} in {counted(len(numbers), 'point')}"
    return label if view.values == "value" else f"{label}, {view.values}"


def _notes(series: list[Series], view: View, unread: int) -> Iterator[str]:
    """Write what the chart does not show by itself."""
    width = duration(timedelta(seconds=round((view.end - view.start) / view.bins / 1e6)))
    if any(len(one.columns["timestamp"]) > 2 * view.bins for one in series):
        yield f"lowest and highest value of each {width}"
    if hidden := sum(one.hidden for one in series):
        yield f"{counted(hidden, 'gap')} shorter than {width} not shown"
    for day in sorted(set().union(*(one.back for one in series))):
        yield f"clocks were set back on {day}: the hour that they show twice is drawn twice"
    if unread:
        yield f"grey: {counted(unread, 'range')} never read"
    if partial := set().union(*(one.partial(view) for one in series)):
        periods = {at for one in series for at in one.columns["timestamp"].tolist()}
        length = 0 if view.every == _MONTH else (view.step or 0) // 1_000_000
        name = _PERIODS.get(length, "periods")
        yield f"hatched: {len(partial):,} of {len(periods):,} {name} are partial"
