"""The chart of points and larger buckets over time: a panel for each series, or one for all."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import altair as alt
import numpy as np

from siteline import _doors
from siteline._counts import counted
from siteline._plots import base
from siteline._plots.base import BLUE, GREY, MICROSECOND, micros, on_clock, safe, zoned
from siteline._times import duration, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import tzinfo

    from siteline.table import Table

    _Ids = tuple[str | None, ...]
    _Columns = dict[str, Any]

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
NUMBERS = ("value", "minimum", "maximum", "sample_count")
# A chart of one series has about twice as many points at most.
_BINS = 2_000
_PERIODS = {86_400: "days", 604_800: "weeks", 3_600: "hours", None: "months"}


class View(NamedTuple):
    """The drawn values, and the range of time in microseconds."""

    values: str
    zone: tzinfo
    inner: int
    start: int
    end: int
    interval: int | None
    """The time between two points."""
    bins: int
    is_stepped: bool
    """Whether the points are larger buckets, which have a width."""
    is_monthly: bool
    unread: list[tuple[int, int]]


class Series(NamedTuple):
    """A series: all its points, and the rows that are drawn."""

    ids: _Ids
    label: str
    unit: str | None
    columns: _Columns
    rows: list[dict[str, Any]]
    partial: list[int]
    """The start of each period that was not read completely."""
    hidden: int
    """The number of gaps that are too short for the chart."""
    back: set[str]
    """The days on which the clock was set back."""


def points(
    table: Table,
    values: str,
    tz: str,
    labels: Mapping[Any, str] | None,
    text: str | None,
    width: int,
    panels: int,
    overlay: bool,
) -> Any:
    """Draw the first series of a table."""
    inner, frame = base.size(width), _doors.frame(table)
    found, unread = _read(frame)
    shown, more = base.first(list(found.items()), panels, "panels", "series")
    start, end, interval = frame.grid()
    every = [columns["timestamp"] for _, columns in shown]
    steps = [int(step[step > 0].min()) for step in map(np.diff, every) if (step > 0).any()]
    bounds = [at for at in (start, end) if at is not None]
    bounds += [at for span in unread for at in span] if len(bounds) < 2 else []
    bounds += [int(times[place]) for times in every for place in (0, -1)]
    first, last = min(bounds, default=0), max(bounds, default=0)
    unread = [(max(a, first), min(b, last)) for a, b in unread if a < last and b > first]
    bins = max(inner // 2, _BINS // max(len(shown), 1))
    step = interval or min(steps, default=None)
    ends, is_stepped = (first, max(last, first + 1)), table.kind == "resampled"
    is_monthly = is_stepped and not interval
    view = View(values, zone_of(tz), inner, *ends, step, bins, is_stepped, is_monthly, unread)
    units = {tuple(row[name] for name in IDS): row["unit"] for row in table.series.records()}
    names = {ids: " / ".join(one or "" for one in ids) for ids, _ in shown} | dict(labels or {})
    series = [_series(ids, names[ids], units.get(ids), own, view) for ids, own in shown]
    groups = [series] if overlay or not series else [[one] for one in series]
    height = 240 if len(groups) == 1 else 140 if len(groups) <= 3 else 90
    drawn = [_panel(group, view, height, group is groups[-1]) for group in groups]
    period = frame.every if is_monthly else step and duration(step * MICROSECOND)
    pace = f"every {period}" if period else ""
    pace += " (the shortest step)" if step and not interval and not is_stepped else ""
    span = f"{zoned(view.start, view.zone)} to {zoned(view.end, view.zone)} {tz}" if series else ""
    lines = [" · ".join(filter(None, [pace, span])), *_notes(series, view), more]
    for part, one in zip(drawn, series, strict=False) if len(drawn) > 1 else ():
        part.title = base.panel_title(_heading(one, view), inner)
    chart = base.zoomed(drawn, [(one.ids, one.rows) for one in series])
    return base.finished(chart, text or _title(list(found), series, view), lines, width, lines)


def _read(frame: Any) -> tuple[dict[_Ids, _Columns], list[tuple[int, int]]]:
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
    places: dict[_Ids, list[Any]] = {}
    for one, end, length in zip(zip(*ids, strict=True), lengths.cumsum(), lengths, strict=True):
        places.setdefault(one, []).append(np.arange(end - length, end))
    found = {}
    for one, parts in places.items():
        own = np.concatenate(parts)
        # The points of a page are in the order of the service.
        own = own[np.argsort(columns["timestamp"][own], kind="stable")]
        if len(own):
            found[one] = {name: column[own] for name, column in columns.items()}
    spans = (provenance.get("coverage") or {}).get("unread", ())
    times = [[micros(datetime.fromisoformat(at)) for at in span] for span in spans]
    return found, [(start, end) for start, end in times]


def _series(ids: _Ids, label: str, unit: str | None, columns: _Columns, view: View) -> Series:
    """Return a series with the rows that are drawn: all points, or the extremes of each bin."""
    there = np.isfinite(columns[view.values])
    shown = {name: column[there] for name, column in columns.items()}
    times = shown["timestamp"]
    # The local days of a zone have up to 25 hours.
    is_gap = np.diff(times) > (np.inf if view.interval is None else view.interval * 1.5)
    kept, numbers, is_seen = reduced(shown, view, is_gap)
    after_gap = np.isin(kept - 1, np.flatnonzero(is_seen))
    rows: list[dict[str, Any]] = []
    stretch, back, before = 0, set(), 0
    for place, at in enumerate(times[kept].tolist()):
        row = {"time": on_clock(at, view.zone), "stretch": stretch}
        is_back = rows and at > before and row["time"] <= rows[-1]["time"]
        if is_back or after_gap[place]:
            _end(rows, view)
            stretch = row["stretch"] = stretch + 1
            back |= {zoned(at, view.zone)[:10]} if is_back else set()
        before = at
        own = ((name, float(column[place])) for name, column in numbers.items())
        rows.append(row | {name: one if np.isfinite(one) else None for name, one in own})
    _end(rows, view)
    if not view.is_stepped:
        counts = Counter(row["stretch"] for row in rows)
        for row in rows:
            row |= {"isLone": True} if counts[row["stretch"]] == 1 else {}
    partial = columns["timestamp"][columns["partial"]].tolist() if "partial" in columns else []
    return Series(ids, label, unit, columns, rows, partial, int(is_gap.sum() - is_seen.sum()), back)


def _end(rows: list[dict[str, Any]], view: View) -> None:
    """Draw a larger bucket to its end."""
    if rows and view.is_stepped:
        rows.append(rows[-1] | {"time": _after(rows[-1]["time"], view), "isEnd": True})


def _after(at: float, view: View) -> float:
    """Return the end of a larger bucket on the clock. Months differ in length."""
    if not view.is_monthly:
        return at + (view.interval or 0) // 1000
    start = base.EPOCH + timedelta(milliseconds=at)
    end = (start.replace(day=1) + timedelta(days=32)).replace(day=start.day)
    return at + (end - start) // timedelta(milliseconds=1)


def reduced(columns: _Columns, view: View, is_gap: Any) -> tuple[Any, dict[str, Any], Any]:
    """Return the places of the points that are drawn, their numbers, and which gaps are drawn.

    If there are more points than bins, each bin keeps its lowest and its highest point, and both
    have the minimum and the maximum of the bin. So no spike is lost. A gap of more than a bin keeps
    the points at its ends.
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
    kept = [np.flatnonzero(is_seen), np.flatnonzero(is_seen) + 1, np.array([0, len(times) - 1])]
    for pick in (np.fmin, np.fmax):
        found = np.flatnonzero(values == pick.reduceat(values, starts)[group])
        kept.append(found[np.unique(group[found], return_index=True)[1]])
    places = np.unique(np.concatenate(kept))
    extremes = {n: pick.reduceat(columns[n], starts)[group[places]] for n, pick in bands.items()}
    return places, {view.values: values[places], **extremes}, is_seen


def _panel(group: list[Series], view: View, height: int, is_last: bool) -> Any:
    """Draw a panel: a series, or several in different colours."""
    names = [safe(one.label) for one in group] if len(group) > 1 else []
    named = {one.ids: {"series": safe(one.label)} if names else {} for one in group}
    rows = [row | named[one.ids] for one in group for row in one.rows]
    bounds = [on_clock(at, view.zone) for at in (view.start, view.end)]
    bounds += [row["time"] for row in rows] if view.is_stepped else []
    x = base.time_x("time", min(bounds), max(bounds), view.inner, has_labels=is_last)
    units = {one.unit for one in group if view.values != "sample_count"} - {None, "", "1"}
    axis = base.number_axis(units.pop() if len(units) == 1 else None, height)
    legend = alt.Legend(
        title=None, orient="bottom", columns=2, labelLimit=view.inner // 2 - 30,
        symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2,
    )  # fmt: skip
    scale = alt.Scale(domain=names, range=base.COLOURS)
    colour = alt.Color("series:N", scale=scale, legend=legend) if names else alt.value(BLUE)
    y = alt.Y(f"{view.values}:Q", axis=axis, scale=alt.Scale(zero=False))
    plain = alt.Chart().encode(x=x, y=y, color=colour)
    shape: Any = {"interpolate": "step-after"} if view.is_stepped else {}
    layers = list(_spans(group, view, height, min(bounds), max(bounds)))
    shown = [view.values]
    if any(map(_has_band, group)) and view.values == "value":
        shown += ["minimum", "maximum"]
        ends = {"y": alt.Y("minimum:Q"), "y2": alt.Y2("maximum:Q")}
        area = plain.mark_area(opacity=0.25, aria=False, **shape)
        lone = plain.mark_rule(strokeWidth=4, opacity=0.4, aria=False)
        layers.append(area.encode(detail="stretch:N", **ends))
        layers.append(lone.transform_filter("datum.isLone").encode(**ends))
    layers.append(plain.mark_line(strokeWidth=1.5, aria=False, **shape).encode(detail="stretch:N"))
    dots = plain.mark_circle(size=22, opacity=1, aria=False)
    layers.append(dots.transform_filter("datum.isLone"))
    tips = [alt.Tooltip("series:N")] if names else []
    tips += [alt.Tooltip("when:N", title="time")]
    tips += [alt.Tooltip(f"{name}:Q", format=",.6~g") for name in shown]
    when = base.WHEN.format("time", ":%S" if any(row["time"] % 60_000 for row in rows) else "")
    hover = plain.mark_square(size=120, opacity=0, aria=False).transform_filter("!datum.isEnd")
    layers.append(hover.transform_calculate(when=when).encode(tooltip=tips))
    return base.panel(layers, view.inner, height, data=alt.InlineData(rows))


def _has_band(one: Series) -> bool:
    """Return whether the values are within the band. Sums of larger buckets are not."""
    lows, highs, values = (one.columns[name] for name in ("minimum", "maximum", "value"))
    is_sum = one.rows and "isEnd" in one.rows[-1] and ((values < lows) | (values > highs)).any()
    return not is_sum and bool(np.isfinite(lows + highs).any())


def _spans(group: list[Series], view: View, height: int, start: float, end: float) -> Iterator[Any]:
    """Shade the time that was never read, and hatch the periods that were read in part."""
    partial = {on_clock(at, view.zone) for one in group for at in one.partial}
    never = [(on_clock(a, view.zone), on_clock(b, view.zone)) for a, b in view.unread]
    found: dict[Any, list[tuple[float, float]]] = {None: never} if never else {}
    for at in sorted(partial):
        found.setdefault(_after(at, view) - at, []).append((at, _after(at, view)))
    for length, spans in found.items():
        # A gradient depends on the width of its box.
        wide = max(view.inner * (length or 0) / (end - start), 1)
        paint: Any = f"{GREY}44" if length is None else _hatching(wide, height)
        rows = [{"from": at, "to": to} for at, to in spans]
        marks = base.data(rows).mark_rect(color=paint, aria=False)
        x = base.time_x("from", start, end, view.inner)
        yield marks.encode(x=x, x2="to:T", y=alt.value(0), y2=alt.value(height))


def _hatching(wide: float, height: int) -> dict[str, Any]:
    """Return a gradient of stripes at 45 degrees, for boxes of this size."""
    scale, count = (wide + height) / (wide**2 + height**2), max(round((wide + height) / 9), 2)
    parts = ((0, f"{GREY}70"), (0.3, f"{GREY}70"), (0.3, f"{GREY}00"), (1, f"{GREY}00"))
    stops = [
        {"offset": round((stripe + part) / count, 5), "color": colour}
        for stripe in range(count) for part, colour in parts
    ]  # fmt: skip
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


def _notes(series: list[Series], view: View) -> Iterable[str]:
    """Write what the chart does not show by itself."""
    width = duration(timedelta(seconds=round((view.end - view.start) / view.bins / 1e6)))
    if any(len(one.columns["timestamp"]) > 2 * view.bins for one in series):
        yield f"lowest and highest value of each {width}"
    if hidden := sum(one.hidden for one in series):
        yield f"{counted(hidden, 'gap')} shorter than {width} not shown"
    for day in sorted({day for one in series for day in one.back}):
        yield f"clocks were set back on {day}: the hour that they show twice is drawn twice"
    if view.unread:
        yield f"grey: {counted(len(view.unread), 'range')} never read"
    if partial := {at for one in series for at in one.partial}:
        periods = {at for one in series for at in one.columns["timestamp"].tolist()}
        length = None if view.is_monthly else (view.interval or 0) // 1_000_000
        name = _PERIODS.get(length, "periods")
        yield f"hatched: {len(partial):,} of {len(periods):,} {name} are partial"
