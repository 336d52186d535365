"""The charts of feeds: the ranges that they read, the delays of their points, their requests."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

import altair as alt

from siteline import _doors
from siteline._counts import counted
from siteline._plots import base
from siteline._plots.base import AMBER, BLUE, COLOURS, GREY, RED, safe
from siteline._times import duration, from_microseconds, in_zone, to_minute, to_second, zone_of
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteline.store import Store
    from siteline.types import Allowance, Coverage, CoverageWindow, Delays, Lateness, Plan

# The inside and the outline of each state.
_STATES = {
    "settled": (BLUE, BLUE),
    "due": (AMBER, AMBER),
    "provisional": (f"{BLUE}66", BLUE),
    "unread": (f"{GREY}33", GREY),
    "forgotten": (f"{GREY}00", GREY),
    "read, empty": (f"{BLUE}00", BLUE),
    "skipped": (f"{RED}33", RED),
}
_TICKS = {
    1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3_600: "1 h", 21_600: "6 h", 86_400: "1 d",
    604_800: "7 d", 2_592_000: "30 d", 31_536_000: "1 y",
}  # fmt: skip
_DAY, _HOUR, _NONE = timedelta(days=1), timedelta(hours=1), timedelta(0)
# A limit that is further above the bars would make them too low to be compared.
_FAR = 10


def _named(what: str, given: Sequence[Any]) -> str:
    return f"{what} of {given[0].feed.name if len(given) == 1 else f'{len(given):,} feeds'}"


def _state(window: CoverageWindow) -> str:
    if window.skipped_until is not None:
        return "skipped"
    return "read, empty" if window.empty and window.state != "forgotten" else window.state


def coverage(given: list[Coverage], tz: str, text: str | None, width: int, rows: int) -> Any:
    """Draw a row for each feed, in the colours of its states."""
    shown, more = base.first(given, rows, "rows", "feed")
    zone, names = zone_of(tz), [safe(one.feed.name) for one in shown]
    inner = base.size(width) + 50 - min(max(map(len, names)) * 6, width // 4)
    totals: dict[str, timedelta] = {}
    spans: list[dict[str, Any]] = []
    for one, name in zip(shown, names, strict=True):
        for state, same in groupby(one, _state):
            first, *_, last = [*same] * 2
            totals[state] = totals.get(state, _NONE) + (last.end - first.start)
            ends = {"from": base.clock(first.start, zone), "to": base.clock(last.end, zone)}
            spans.append({"feed": name, "state": state, **ends})

    def written(at: datetime | None) -> str:
        return to_second(in_zone(at, zone)) if at else "nothing"

    now = max(one.now for one in shown)
    bounds = [span[end] for span in spans for end in ("from", "to")] or [base.clock(now, zone)]
    looks = {state: look for state, look in _STATES.items() if state in totals}
    keys = {state: f"{state} {duration(totals[state])}" for state in looks}
    label = f"{json.dumps(keys)}[datum.label]"
    axis = alt.Axis(title=None, domain=False, ticks=False, labelLimit=width // 4)
    bars = base.bars(spans, "state", looks, labelExpr=label, columns=max(inner // 150, 1))
    bars = bars.transform_calculate(
        start=base.WHEN.format("from", ""), end=base.WHEN.format("to", "")
    ).encode(
        x=base.time_x("from", min(bounds), max(bounds), inner), x2="to:T",
        y=alt.Y("feed:N", axis=axis, sort=names),
        tooltip=[f"{name}:N" for name in ("feed", "state", "start", "end")],
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
    percent = base.number_axis(None, 130, format=".0%")
    y = alt.Y("share:Q", axis=percent, scale=alt.Scale(domain=[0, 1]))
    colours = alt.Scale(domain=["points", "revisions"], range=[BLUE, AMBER])
    legend = alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolStrokeWidth=2)
    layers, lines = [], [_quantiles("points", one.points), _quantiles("revisions", one.revisions)]
    if one.looked is not None:
        lines.append(f"grey: not read again after {duration(one.looked)}")
        after = base.data([{"delay": one.looked.total_seconds(), "end": domain[1]}])
        layers.append(after.mark_rect(color=f"{GREY}33").encode(x=x, x2="end:Q"))
    curves = base.data(rows).encode(x=x, y=y)
    line = curves.mark_line(interpolate="step-after", strokeWidth=2, aria=False)
    layers.append(line.encode(color=alt.Color("kind:N", scale=colours, legend=legend)))
    marks = [("lateness", one.lateness, 0.5, [1, 0]), ("suggested", one.suggested, 0.3, [4, 3])]
    for name, at, height, dash in marks:
        if at is None or (name == "suggested" and at == one.lateness):
            continue
        delay = at.total_seconds()
        row = {"delay": delay, "text": f"{name} {duration(at)}", "share": height}
        rule = base.data([row]).encode(x=x)
        # At the right of the rule, next to the end of the curves, if there is room.
        side = -1 if delay > (domain[1] / domain[0]) ** 0.8 * domain[0] else 1
        words = rule.mark_text(color=RED, align="left" if side > 0 else "right", dx=5 * side)
        layers.append(rule.mark_rule(color=RED, strokeWidth=1.5, strokeDash=dash))
        layers.append(words.encode(y=y, text="text:N"))
    tips = [alt.Tooltip("kind:N"), alt.Tooltip("delay:Q", title="delay in seconds", format=","),
            alt.Tooltip("share:Q", format=".1%")]  # fmt: skip
    layers.append(curves.mark_square(size=90, opacity=0, aria=False).encode(tooltip=tips))
    said = " · ".join(filter(None, lines))
    return base.panel(layers, inner, 130, f"{one.feed.name}: {one.verdict}", said)


def _quantiles(kind: str, delays: Delays) -> str:
    shares = {"half": delays.median, "99 %": delays.p99, "all": delays.longest}
    said = [f"{name} {duration(delay)}" for name, delay in shares.items() if delay is not None]
    if len(said) < len(shares):
        return f"no delays of {kind} are known" if kind == "points" else ""
    return f"{delays.count:,} {kind}: {', '.join(said)}"


def allowance(
    known: Allowance,
    stores: list[Store],
    plan: Plan | None,
    now: datetime | str | None,
    days: int,
    text: str | None,
    width: int,
) -> Any:
    """Draw a bar for each day, and today's limit."""
    inner, today = base.size(width), known.resets_at.astimezone(UTC) - _DAY
    gone = _gone(plan, now, today)
    # The ledger keeps the count of today only.
    starts = [today - _DAY * back for back in reversed(range(days))] if stores else [today]
    counts = _pages(stores, starts)
    by_feeds = sum(own[today] for own in counts.values())
    ranked = sorted(counts, key=lambda name: (-counts[name].total(), name))
    spent = ", ".join(f"{name} {counts[name].total():,}" for name in ranked[:5])
    if len(ranked) > len(COLOURS):
        ranked, rest = ranked[: len(COLOURS) - 1], ranked[len(COLOURS) - 1 :]
        ranked.append(f"{len(rest):,} other feeds")
        counts[ranked[-1]] = sum((counts[name] for name in rest), Counter())
    looks = {safe(name): (one, one) for name, one in zip(ranked, COLOURS, strict=False)}
    parts = {safe(name): counts[name] for name in ranked}
    others = "other requests" if stores else "counted by the ledger"
    for name, fill, line, count in (
        (others, f"{GREY}aa", GREY, known.used - by_feeds),
        ("planned", f"{BLUE}22", BLUE, (plan and plan.pages) or 0),
        ("reserved for due windows", f"{GREY}11", GREY, (plan and plan.reserve) or 0),
    ):
        if count > 0:
            looks[name], parts[name] = (fill, line), Counter({today: count})
    names = [f"{day:%Y-%m-%d}" for day in starts]
    rows = [
        {"day": name, "part": part, "requests": own[day], "order": place}
        for place, (part, own) in enumerate(parts.items())
        for name, day in zip(names, starts, strict=True)
        if own[day]
    ]
    highest = max(1, *(sum(own[day] for own in parts.values()) for day in starts))
    pace = round(known.used * (_DAY / gone)) if gone is not None and gone >= _HOUR else 0
    axis = alt.Axis(
        title=None, labelAngle=0, labelOverlap=True, ticks=False, domainColor=GREY, grid=False,
        labelExpr=f"datum.label == '{names[-1]}' ? 'today' : slice(datum.label, 5)",
    )  # fmt: skip
    x = alt.X("day:O", sort=names, scale=alt.Scale(domain=names), axis=axis)
    y = alt.Y("requests:Q", axis=base.number_axis("requests", 200, tickMinStep=1))
    bars = base.bars(rows, "part", looks, columns=max(inner // 180, 1)).encode(
        x=x, y=y, order="order:Q", tooltip=["day:N", "part:N", "requests:Q"],
        size=alt.value(min(inner / len(names) * 0.8, 90)),
    )  # fmt: skip
    layers = [bars]
    if len(starts) * 24 <= inner:
        totals = base.data(rows).mark_text(dy=-7, color=GREY)
        text_of = alt.Text("sum(requests):Q", format=",")
        layers.append(totals.encode(x=x, y="sum(requests):Q", text=text_of))
    for at, colour, dash in ((known.limit or 0, RED, [1, 0]), (pace, GREY, [4, 3])):
        if 0 < at <= _FAR * highest:
            rule = base.data([{"at": at}]).encode(y="at:Q")
            layers.append(rule.mark_rule(color=colour, strokeDash=dash, strokeWidth=1.5))
    notes = list(_notes(known, stores, plan, by_feeds, highest))
    notes += [] if gone is None else [_pace(known, today, gone, pace)]
    words = [f"pages in {counted(len(starts), 'day')}: {spent}" if spent else "", *notes]
    head = text or f"Requests by day: {_of(known.used, known.limit)} today"
    return base.finished(base.panel(layers, inner, 200), head, notes, width, words)


def _of(used: int, limit: int | None) -> str:
    return f"{used:,}" if limit is None else f"{used:,} of {limit:,}"


def _pages(stores: list[Store], starts: list[datetime]) -> dict[str, Counter[datetime]]:
    """Count the pages of each feed on each day; feeds of one name in several stores are one."""
    counts: dict[str, Counter[datetime]] = defaultdict(Counter)
    for store in stores:
        for name in store.feeds:
            for at in _doors.page_times(store, name):
                place = (from_microseconds(at) - starts[0]) // _DAY
                if 0 <= place < len(starts):
                    counts[name][starts[place]] += 1
    return counts


def _gone(plan: Plan | None, now: datetime | str | None, today: datetime) -> timedelta | None:
    """Return how much of the day is over; ``None`` if the time is not known."""
    if now is None:
        gone = plan.now - today if plan is not None else -_DAY
        return gone if _NONE <= gone <= _DAY else None
    try:
        at = datetime.fromisoformat(now) if isinstance(now, str) else now
    except ValueError:
        at = datetime.min
    if at.tzinfo is None:
        raise QueryError(f"now={str(now)[:99]!r} is not a time with a zone: 2026-11-20T12:00Z.")
    if not _NONE <= (gone := at - today) <= _DAY:
        day = f"the day that ends {to_minute(today + _DAY)} UTC"
        raise QueryError(
            f"now={to_minute(at.astimezone(UTC))} UTC is not in {day}.",
            hint="Read client.allowance and the clock at the same time.",
        )
    return gone


def _pace(known: Allowance, today: datetime, gone: timedelta, pace: int) -> str:
    if gone < _HOUR:
        return "the day has hardly begun: it has no pace yet"
    said = f"dashed: {_of(pace, known.limit)} at the end of the day, at the pace so far"
    if known.limit is None or not known.used < known.limit < pace:
        return said
    return f"{said}; used up {today + gone * (known.limit / known.used):%H:%M} UTC"


def _notes(
    known: Allowance, stores: list[Store], plan: Plan | None, by_feeds: int, highest: int
) -> Iterable[str]:
    """Write the rest of the allowance, and the unknown numbers."""
    ends = f"the day ends {to_minute(known.resets_at.astimezone(UTC))} UTC"
    if known.limit is None:
        yield f"{ends}; no daily allowance is set"
    else:
        where = "red: " if known.limit <= _FAR * highest else "far above the bars: "
        yield f"{ends}; {where}its limit, {known.limit:,}, of which {known.left or 0:,} are left"
    only = "days before today: only the pages in the stores are known"
    yield only if stores else "no store was given: only today's count is known"
    if known.used < by_feeds:
        yield f"the stores have {by_feeds:,} pages of today, the ledger counted {known.used:,}"
    if plan is not None and plan.pages is None:
        yield "the plan does not know its pages"
    elif plan is not None and plan.pages is not None:
        expected = known.used + plan.pages + plan.reserve
        yield f"expected at the end of the day: {_of(expected, known.limit)}"
