"""The charts of the ranges that feeds have read, and of the delays of their points."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import altair as alt

from siteline import _doors
from siteline._plots import base
from siteline._plots.base import AMBER, BLUE, GREY, MICROSECOND, RED, micros, safe
from siteline._times import duration, zone_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteline.types import Coverage, CoverageWindow, Delays, Lateness

_EMPTY, _SKIPPED = "read, empty", "skipped"
# The inside and the outline of each state.
_STATES = {
    "settled": (BLUE, BLUE),
    "due": (AMBER, AMBER),
    "provisional": (f"{BLUE}66", BLUE),
    "unread": (f"{GREY}33", GREY),
    "forgotten": (f"{GREY}00", GREY),
    _EMPTY: (f"{BLUE}00", BLUE),
    _SKIPPED: (f"{RED}33", RED),
}
_TICKS = {
    1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3_600: "1 h", 21_600: "6 h", 86_400: "1 d",
    604_800: "7 d", 2_592_000: "30 d", 31_536_000: "1 y",
}  # fmt: skip
_HEIGHT = 130


def _named(what: str, given: Sequence[Any]) -> str:
    return f"{what} of {given[0].feed.name if len(given) == 1 else f'{len(given):,} feeds'}"


def _state(window: CoverageWindow) -> str:
    if window.skipped_until is not None:
        return _SKIPPED
    return _EMPTY if window.empty and window.state != "forgotten" else window.state


def coverage(given: list[Coverage], tz: str, text: str | None, width: int, rows: int) -> Any:
    """Draw a row for each feed, in the colours of its states."""
    shown, more = base.first(given, rows, "rows", "feed")
    zone, names = zone_of(tz), [safe(one.feed.name) for one in shown]
    inner = base.size(width) + 50 - min(max(map(len, names)) * 6, width // 4)
    totals: Counter[str] = Counter()
    spans: list[dict[str, Any]] = []
    for one, name in zip(shown, names, strict=True):
        for window in one:
            state = _state(window)
            totals[state] += (window.end - window.start) // MICROSECOND
            start, end = (base.on_clock(micros(at), zone) for at in (window.start, window.end))
            span = {"feed": name, "state": state, "from": start, "to": end}
            if spans and spans[-1] == span | {"from": spans[-1]["from"], "to": start}:
                spans[-1]["to"] = end
            else:
                spans.append(span)

    def written(at: Any) -> str:
        return base.zoned(micros(at), zone) if at else "nothing"

    now = max(one.now for one in shown)
    bounds = [span[end] for span in spans for end in ("from", "to")]
    bounds = bounds or [base.on_clock(micros(now), zone)]
    looks = {state: look for state, look in _STATES.items() if state in totals}
    keys = {state: f"{state} {duration(totals[state] * MICROSECOND)}" for state in looks}
    axis = alt.Axis(title=None, domain=False, ticks=False, labelLimit=width // 4)
    bars = base.data(spans).mark_bar(strokeWidth=1, aria=False).transform_calculate(
        start=base.WHEN.format("from", ""), end=base.WHEN.format("to", "")
    ).encode(
        x=base.time_x("from", min(bounds), max(bounds), inner), x2="to:T",
        y=alt.Y("feed:N", axis=axis, sort=names),
        tooltip=[f"{name}:N" for name in ("feed", "state", "start", "end")],
        **base.filled("state:N", looks, labelExpr=f"{json.dumps(keys)}[datum.label]",
                      columns=max(inner // 150, 1)),
    )  # fmt: skip
    chart = base.zoomed([base.panel([bars], inner, alt.Step(22))], spans)
    settled = [f"{one.feed.name} {written(one.settled_through)}" for one in shown]
    said = f"settled through: {' · '.join(settled[:3])}{' …' * (len(settled) > 3)}"
    notes = [f"at {written(now)} {tz}", said, more]
    words = [", ".join(keys.values()) or "no time yet", *notes]
    return base.finished(chart, text or _named("Coverage", given), notes, width, words)


def lateness(given: list[Lateness], text: str | None, width: int, panels: int) -> Any:
    """Draw a panel for each feed: the share that has arrived by each delay."""
    inner = base.size(width)
    shown, more = base.first(given, panels, "panels", "feed")
    curves = [
        [{"kind": kind, "delay": delay, "share": share}
         for kind in ("points", "revisions") for delay, share in _doors.curve(getattr(one, kind))]
        for one in shown
    ]  # fmt: skip
    delays = [one.total_seconds() for pair in shown for one in (pair.lateness, pair.looked) if one]
    delays += [row["delay"] for rows in curves for row in rows]
    least = max(min([60.0, *delays]), 1.0)
    domain = [least, max([*delays, 60 * least]) * 1.25]
    pairs = zip(shown, curves, strict=True)
    drawn = [_curves(one, rows, domain, inner, one is shown[-1]) for one, rows in pairs]
    chart = alt.vconcat(*drawn, spacing=12).resolve_scale(x="shared", color="shared")
    said = "share that had arrived, by the time since the end of its bucket; estimated from reads"
    words = [f"{one.feed.name}: {one.verdict}" for one in shown]
    return base.finished(chart, text or _named("Lateness", given), [said, more], width, words)


def _curves(
    one: Lateness, rows: list[dict[str, Any]], domain: list[float], inner: int, is_last: bool
) -> Any:
    """Draw the curves of a feed, its lateness, and the time after which nothing was read again."""
    axis = alt.Axis(
        title=None, values=[at for at in _TICKS if domain[0] <= at <= domain[1]],
        labelExpr=f"{json.dumps(_TICKS)}[datum.value]", labels=is_last, ticks=is_last, **base.GRID,
    )  # fmt: skip
    x = alt.X("delay:Q", axis=axis, scale=alt.Scale(type="log", domain=domain, nice=False))
    percent = base.number_axis(None, _HEIGHT, format=".0%")
    y = alt.Y("share:Q", axis=percent, scale=alt.Scale(domain=[0, 1]))
    colours = alt.Scale(domain=["points", "revisions"], range=[BLUE, AMBER])
    legend = alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolStrokeWidth=2)
    layers, lines = [], [_quantiles("points", one.points), _quantiles("revisions", one.revisions)]
    if one.looked is not None:
        lines.append(f"grey: not read again after {duration(one.looked)}")
        after = base.data([{"delay": one.looked.total_seconds(), "end": domain[1]}])
        area = after.mark_rect(color=f"{GREY}33")
        layers.append(area.encode(x=x, x2="end:Q", y=alt.value(0), y2=alt.value(_HEIGHT)))
    curves = base.data(rows).encode(x=x, y=y)
    line = curves.mark_line(interpolate="step-after", strokeWidth=2, aria=False)
    layers.append(line.encode(color=alt.Color("kind:N", scale=colours, legend=legend)))
    marks: list[tuple[timedelta, str, list[int], float]] = [(one.lateness, "lateness", [1, 0], 0.5)]
    if one.suggested is not None and one.suggested != one.lateness:
        marks.append((one.suggested, "suggested", [4, 3], 0.3))
    for at, name, dash, height in marks:
        row = {"delay": at.total_seconds(), "text": f"{name} {duration(at)}", "share": height}
        rule = base.data([row]).encode(x=x)
        # At the right of the rule, next to the end of the curves, if there is room.
        is_left = row["delay"] > (domain[1] / domain[0]) ** 0.8 * domain[0]
        side: Any = {"align": "right", "dx": -5} if is_left else {"align": "left", "dx": 5}
        layers.append(rule.mark_rule(color=RED, strokeWidth=1.5, strokeDash=dash))
        layers.append(rule.mark_text(color=RED, **side).encode(y=y, text="text:N"))
    tips = [alt.Tooltip("kind:N"), alt.Tooltip("delay:Q", title="delay in seconds", format=","),
            alt.Tooltip("share:Q", format=".1%")]  # fmt: skip
    layers.append(curves.mark_square(size=90, opacity=0, aria=False).encode(tooltip=tips))
    said = " · ".join(filter(None, lines))
    heading = base.panel_title(f"{one.feed.name}: {one.verdict}", inner, said)
    return base.panel(layers, inner, _HEIGHT, title=heading)


def _quantiles(kind: str, delays: Delays) -> str:
    if delays.median is None or delays.p99 is None or delays.longest is None:
        return f"no delays of {kind} are known" if kind == "points" else ""
    shares = (("half", delays.median), ("99 %", delays.p99), ("all", delays.longest))
    said = ", ".join(f"{name} {duration(delay)}" for name, delay in shares)
    return f"{delays.count:,} {kind}: {said}"
