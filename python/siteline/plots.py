"""Altair charts: points over time, coverage, lateness, the allowance.

The caller may change, combine and save the charts of this module, ``table.plot()``,
``coverage.plot()`` and ``lateness.plot()``. They need ``siteline[plot]``. ``chart.save()`` writes
PNG, SVG and PDF without a network, and with ``inline=True`` also HTML that needs none. Text and
background have the colours of the Altair theme: ``alt.theme.enable("dark")``.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from siteline import _doors, _plots
from siteline._keywords import strict
from siteline._plots import AMBER, BLUE, COLOURS, GREY, RED, alt, safe
from siteline._times import duration, from_microseconds, in_zone, to_minute, to_second, zone_of
from siteline.errors import QueryError
from siteline.frames import zone_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from siteline.store import Store
    from siteline.types import Allowance, Coverage, CoverageWindow, Lateness, Plan

__all__ = ["allowance", "coverage", "lateness"]

_STATES = {
    "settled": BLUE, "due": AMBER, "provisional": f"{BLUE}66", "unread": f"{GREY}33",
    "forgotten": f"{GREY}00", "read, empty": f"{BLUE}00", "skipped": f"{RED}33",
}  # fmt: skip
_TICKS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000, 31_536_000)
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
# A limit that is further above the bars would make them too low to be compared.
_FAR = 10


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
        title, width: Its title, and its width in pixels, from 300 to 4,000.
        rows: The most feeds. The chart says how many more there are.

    Raises:
        QueryError: There is no feed, or a value is wrong.

    >>> now = sandbox.clock.now()
    >>> chart = siteline.plots.coverage([store.coverage(name, now=now) for name in store.feeds])
    >>> chart.title.text
    'Coverage of line-2'
    """
    head, shown, more = _feeds("Coverage", coverages, "settled_through", rows, "rows")
    tz, names = zone_name(tz), [safe(one.feed.name) for one in shown]
    zone, labels = zone_of(tz), min(max(map(len, names)) * 6, width // 4)
    inner = _plots.size(width) + 50 - labels
    totals: dict[str, timedelta] = defaultdict(timedelta)
    spans: list[dict[str, Any]] = []
    for one, name in zip(shown, names, strict=True):
        for state, same in groupby(one, _state):
            first, *_, last = [*same] * 2
            totals[state] += last.end - first.start
            ends = {"from": _plots.clock(first.start, zone), "to": _plots.clock(last.end, zone)}
            spans.append({"feed": name, "state": state, **ends})

    def written(at: datetime | None) -> str:
        return to_second(in_zone(at, zone)) if at else "nothing"

    now = max(one.now for one in shown)
    bounds = [span[end] for span in spans for end in ("from", "to")] or [_plots.clock(now, zone)]
    looks = {state: look for state, look in _STATES.items() if state in totals}
    # The sum of the times of several feeds has no meaning.
    keys = {state: state if shown[1:] else f"{state} {duration(totals[state])}" for state in looks}
    label = f"{json.dumps(keys)}[datum.label]"
    bars = _plots.bars(spans, "state", looks, labelExpr=label, columns=inner // 150)
    when = {name: _plots.WHEN.format(end) for name, end in (("start", "from"), ("end", "to"))}
    axis = alt.Axis(title=None, domain=False, ticks=False, labelLimit=width // 4)
    bars = bars.transform_calculate(**when).encode(
        x=_plots.time_x("from", min(bounds), max(bounds), inner), x2="to:T",
        y=alt.Y("feed:N", axis=axis, sort=names),
        tooltip=[f"{name}:N" for name in ("feed", "state", *when)],
    )  # fmt: skip
    chart: alt.LayerChart = _plots.zoomed([_plots.panel([bars], inner, alt.Step(22))], spans)
    settled = [f"{one.feed.name} {written(one.settled_through)}" for one in shown]
    said = f"settled through: {' · '.join(settled[:3])}{' …' * (len(settled) > 3)}"
    notes = [f"at {written(now)} {tz}", said, more]
    return _plots.finished(chart, title or head, notes, width, ", ".join(keys.values()))


def _state(window: CoverageWindow) -> str:
    if window.skipped_until is not None:
        return "skipped"
    return "read, empty" if window.empty and window.state != "forgotten" else window.state


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
        title, width: Its title, and its width in pixels, from 300 to 4,000.
        panels: The most feeds. The chart says how many more there are.

    Raises:
        QueryError: There is no feed, or a value is wrong.

    >>> siteline.plots.lateness(store.lateness("line-2")).title.text
    'Lateness of line-2'
    """
    head, shown, more = _feeds("Lateness", latenesses, "verdict", panels, "panels")
    curves = [
        [{"kind": kind, "delay": delay, "share": share}
         for kind in ("points", "revisions") for delay, share in _doors.curve(getattr(one, kind))]
        for one in shown
    ]  # fmt: skip
    delays = [at.total_seconds() for one in shown for at in (one.lateness, one.looked) if at]
    delays += [row["delay"] for rows in curves for row in rows]
    least = max(min([60.0, *delays]), 1.0)
    domain, inner = [least, max([*delays, 60 * least]) * 1.25], _plots.size(width)
    drawn = [
        _curves(one, rows, domain, inner, is_last=one is shown[-1])
        for one, rows in zip(shown, curves, strict=True)
    ]
    chart: alt.VConcatChart = alt.vconcat(*drawn, spacing=12)
    chart = chart.resolve_scale(x="shared", color="shared")
    said = "share that had arrived, by the time since the end of its bucket; estimated from reads"
    words = (f"{one.feed.name}: {one.verdict}" for one in shown)
    return _plots.finished(chart, title or head, [said, more], width, *words)


def _curves(
    one: Lateness, rows: list[dict[str, Any]], domain: list[float], inner: int, *, is_last: bool
) -> Any:
    """Draw the curves of a feed, its lateness, and the time after which nothing was read again."""
    ticks = {at: duration(timedelta(seconds=at)) for at in _TICKS if domain[0] <= at <= domain[1]}
    axis = alt.Axis(
        title=None, values=list(ticks), labelExpr=f"{json.dumps(ticks)}[datum.value]",
        labels=is_last, ticks=is_last, **_plots.GRID,
    )  # fmt: skip
    x = alt.X("delay:Q", axis=axis, scale=alt.Scale(type="log", domain=domain, nice=False))
    percent = _plots.number_axis(None, 130, format=".0%")
    y = alt.Y("share:Q", axis=percent, scale=alt.Scale(domain=[0, 1]))
    layers, meanings = [], []
    if one.looked is not None:
        meanings.append(f"grey: not read again after {duration(one.looked)}")
        after = _plots.data([{"delay": one.looked.total_seconds(), "end": domain[1]}])
        layers.append(after.mark_rect(color=f"{GREY}33").encode(x=x, x2="end:Q"))
    curves = _plots.data(rows).encode(x=x, y=y)
    line = curves.mark_line(interpolate="step-after", strokeWidth=2, aria=False)
    layers.append(line.encode(color=_plots.line_colours("kind:N", ["points", "revisions"])))
    marks = {one.suggested: ("dashed: suggested", [4, 3]), one.lateness: ("red: lateness", [1, 0])}
    for at, (name, dash) in marks.items():
        if at is not None:
            meanings.append(f"{name} {duration(at)}")
            rule = _plots.data([{"delay": at.total_seconds()}]).encode(x=x)
            layers.append(rule.mark_rule(color=RED, strokeWidth=1.5, strokeDash=dash))
    tips = [alt.Tooltip("kind:N"), alt.Tooltip("delay:Q", title="delay in seconds", format=","),
            alt.Tooltip("share:Q", format=".1%")]  # fmt: skip
    layers.append(curves.mark_square(size=90, opacity=0, aria=False).encode(tooltip=tips))
    head = f"{one.feed.name}: {one.verdict}"
    return _plots.panel(layers, inner, 130, head, " · ".join(reversed(meanings)))


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
        now: The time, by default ``plan.now``, for the pace: the count at the end of the day if the
            rest of the day is like its beginning. The first hour of the day has no pace.
        days: The number of days, from 1 to 366.
        title, width: Its title, and its width in pixels, from 300 to 4,000.

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
    if not 1 <= days <= 366:
        raise QueryError(f"days={days!r} is not a number of days from 1 to 366.")
    inner, today = _plots.size(width), allowance.resets_at.astimezone(UTC) - _DAY
    pace, said = _pace(allowance, today, plan.now if now is None and plan else _time(now, today))
    given = _listed(stores, "feeds")
    # The ledger keeps the count of today only.
    starts = [today - _DAY * back for back in reversed(range(days if given else 1))]
    counts = _pages(given, starts)
    ranked = sorted(counts, key=lambda name: (-counts[name].total(), name))
    shown, rest = ranked[: len(COLOURS) - 1], ranked[len(COLOURS) - 1 :]
    others = allowance.used - sum(own[today] for own in counts.values())
    pages, reserve = (plan.pages or 0, plan.reserve) if plan else (0, 0)
    parts = [
        *((safe(name), colour, counts[name]) for name, colour in zip(shown, COLOURS, strict=False)),
        (
            f"{len(rest):,} other feeds",
            COLOURS[-1],
            sum((counts[name] for name in rest), Counter()),
        ),
        ("other requests" if given else "requests", f"{GREY}aa", Counter({today: others})),
        ("planned", f"{BLUE}22", Counter({today: pages})),
        ("reserved for due windows", f"{GREY}11", Counter({today: reserve})),
    ]
    rows = [
        {"day": f"{day:%Y-%m-%d}", "part": name, "requests": own[day], "order": place}
        for place, (name, _, own) in enumerate(parts)
        for day in starts
        if own[day] > 0
    ]
    highest = max(1, *(sum(own[day] for *_, own in parts) for day in starts))

    def is_near(height: int) -> bool:
        return 0 < height <= _FAR * highest

    names = [f"{day:%Y-%m-%d}" for day in starts]
    axis = alt.Axis(
        title=None, labelAngle=0, labelOverlap=True, ticks=False, domainColor=GREY, grid=False,
        labelExpr=f"datum.label == '{names[-1]}' ? 'today' : slice(datum.label, 5)",
    )  # fmt: skip
    x = alt.X("day:O", sort=names, scale=alt.Scale(domain=names), axis=axis)
    y = alt.Y("requests:Q", axis=_plots.number_axis("requests", 200, tickMinStep=1))
    drawn = {row["part"] for row in rows}
    looks = {name: look for name, look, _ in parts if name in drawn}
    layers = [
        _plots.bars(rows, "part", looks, columns=inner // 180).encode(
            x=x, y=y, order="order:Q", tooltip=["day:N", "part:N", "requests:Q"],
            size=alt.value(min(inner / len(names) * 0.8, 90)),
        )
    ]  # fmt: skip
    if len(starts) * 24 <= inner:
        totals = _plots.data(rows).mark_text(dy=-7, color=GREY)
        text = alt.Text("sum(requests):Q", format=",")
        layers.append(totals.encode(x=x, y="sum(requests):Q", text=text))
    for height, colour, dash in ((allowance.limit or 0, RED, [1, 0]), (pace, GREY, [4, 3])):
        if is_near(height):
            rule = _plots.data([{"at": height}]).encode(y="at:Q")
            layers.append(rule.mark_rule(color=colour, strokeDash=dash, strokeWidth=1.5))
    left = "no daily allowance is set"
    if allowance.limit is not None:
        limit = "limit (red)" if is_near(allowance.limit) else "limit"
        left = f"{limit} {allowance.limit:,}, of which {allowance.left or 0:,} are left"
    notes = [f"the day ends {to_minute(today + _DAY)} UTC; {left}", said]
    if plan:
        expected = _of(allowance.used + pages + reserve, allowance.limit)
        is_known = plan.pages is not None
        notes.append(
            f"with the plan: {expected}" if is_known else "the plan does not know its pages"
        )
    head = title or f"Requests by day: {_of(allowance.used, allowance.limit)} today"
    chart: alt.LayerChart = _plots.panel(layers, inner, 200)
    return _plots.finished(chart, head, notes, width)


def _pages(stores: list[Store], starts: list[datetime]) -> dict[str, Counter[datetime]]:
    """Count the pages of each feed on each day; feeds of one name in several stores are one."""
    counts: dict[str, Counter[datetime]] = defaultdict(Counter)
    for store in stores:
        for name in store.feeds:
            for at in _doors.handle(store).page_times(name):
                place = (from_microseconds(at) - starts[0]) // _DAY
                if 0 <= place < len(starts):
                    counts[name][starts[place]] += 1
    return counts


def _time(now: datetime | str | None, today: datetime) -> datetime | None:
    try:
        at = datetime.fromisoformat(now) if isinstance(now, str) else now
    except ValueError:
        at = datetime.min
    if at is not None and not (getattr(at, "tzinfo", None) and today <= at <= today + _DAY):
        day = f"{to_minute(today)} to {to_minute(today + _DAY)} UTC"
        raise QueryError(f"now={str(now)[:99]!r} is no time with a zone in this day, {day}.")
    return at


def _pace(known: Allowance, today: datetime, now: datetime | None) -> tuple[int, str]:
    """Return the count at the end of the day, and a note; 0 if it is not known."""
    if now is None or not _HOUR <= now - today <= _DAY:
        return 0, ""
    pace = round(known.used * (_DAY / (now - today)))
    said = f"dashed: {_of(pace, known.limit)} at the end of the day, at the pace so far"
    if known.limit is not None and known.used < known.limit < pace:
        end = today + (now - today) * (known.limit / known.used)
        said += f"; used up {end:%H:%M} UTC"
    return pace, said


def _of(used: int, limit: int | None) -> str:
    return f"{used:,}" if limit is None else f"{used:,} of {limit:,}"


def _listed(given: Any, attribute: str) -> list[Any]:
    return [given] if hasattr(given, attribute) else list(given)


def _feeds(
    what: str, given: Any, attribute: str, most: int, option: str
) -> tuple[str, Sequence[Any], str]:
    """Return the title of a chart of feeds, its records, and a note that counts the others."""
    listed = _listed(given, attribute)
    if not listed:
        raise QueryError("nothing was given: a chart needs at least one feed.")
    name = listed[0].feed.name if len(listed) == 1 else f"{len(listed):,} feeds"
    return f"{what} of {name}", *_plots.first(listed, most, option)
