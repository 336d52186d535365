"""The chart of the requests of each day: which feeds sent them, and today's limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import altair as alt

from siteline import _doors
from siteline._counts import counted
from siteline._plots import base
from siteline._plots.base import BLUE, COLOURS, GREY, RED, safe
from siteline._times import from_microseconds, to_minute
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteline.store import Store
    from siteline.types import Allowance, Plan

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
# A limit that is further above the bars would make them too low to be compared.
_FAR = 10


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
    inner, ends = base.size(width), known.resets_at.astimezone(UTC)
    today = ends - _DAY
    gone = _gone(plan, now, today)
    # The ledger keeps the count of today only.
    starts = [today - _DAY * back for back in reversed(range(days))] if stores else [today]
    counts = _pages(stores, starts)
    by_feeds = sum(own[today] for own in counts.values())
    ranked = sorted(counts, key=lambda name: (-sum(counts[name].values()), name))
    spent = [f"{name} {sum(counts[name].values()):,}" for name in ranked[:5]]
    if len(ranked) > len(COLOURS):
        ranked, rest = ranked[: len(COLOURS) - 1], ranked[len(COLOURS) - 1 :]
        ranked.append(f"{len(rest):,} other feeds")
        counts[ranked[-1]] = sum((counts[name] for name in rest), Counter())
    looks = {safe(name): (one, one) for name, one in zip(ranked, COLOURS, strict=False)}
    parts = {safe(name): counts[name] for name in ranked}
    planned, reserve = (plan.pages or 0, plan.reserve) if plan is not None else (0, 0)
    others = "other requests" if stores else "counted by the ledger"
    for name, fill, line, count in (
        (others, f"{GREY}aa", GREY, known.used - by_feeds),
        ("planned", f"{BLUE}22", BLUE, planned),
        ("reserved for due windows", f"{GREY}11", GREY, reserve),
    ):
        if count > 0:
            looks[name], parts[name] = (fill, line), Counter({today: count})
    rows = [
        {"day": f"{day:%Y-%m-%d}", "part": name, "requests": own[day], "order": place}
        for place, (name, own) in enumerate(parts.items()) for day in starts if own[day]
    ]  # fmt: skip
    totals = {f"{day:%Y-%m-%d}": sum(own[day] for own in parts.values()) for day in starts}
    names, highest = list(totals), max(1, *totals.values())
    pace = round(known.used * (_DAY / gone)) if gone is not None and gone >= _HOUR else 0
    axis = alt.Axis(
        title=None, labelAngle=0, labelOverlap=True, ticks=False, domainColor=GREY, grid=False,
        labelExpr=f"datum.label == '{names[-1]}' ? 'today' : slice(datum.label, 5)",
    )  # fmt: skip
    x = alt.X("day:O", sort=names, scale=alt.Scale(domain=names), axis=axis)
    y = alt.Y("requests:Q", axis=base.number_axis("requests", 200, tickMinStep=1))
    wide = min(inner / len(names) * 0.8, 90)
    bars = base.data(rows).mark_bar(strokeWidth=1, aria=False, width=wide).encode(
        x=x, y=y, order="order:Q", tooltip=["day:N", "part:N", "requests:Q"],
        **base.filled("part:N", looks, columns=max(inner // 180, 1)),
    )  # fmt: skip
    layers = [bars]
    if len(starts) * 24 <= inner:
        numbers = base.data([{"day": day, "total": one} for day, one in totals.items() if one])
        numbers = numbers.mark_text(dy=-7, color=GREY).encode(x=x, y="total:Q")
        layers.append(numbers.encode(text=alt.Text("total:Q", format=",")))
    for at, colour, dash in ((known.limit or 0, RED, [1, 0]), (pace, GREY, [4, 3])):
        if 0 < at <= _FAR * highest:
            rule = base.data([{"at": at}]).encode(y="at:Q")
            layers.append(rule.mark_rule(color=colour, strokeDash=dash, strokeWidth=1.5))
    notes = list(_notes(known, stores, plan, by_feeds, highest))
    notes += [] if gone is None else [_pace(known, today, gone, pace)]
    words = [f"pages in {counted(len(starts), 'day')}: {', '.join(spent)}" if spent else "", *notes]
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
        return gone if timedelta(0) <= gone <= _DAY else None
    try:
        at = datetime.fromisoformat(now) if isinstance(now, str) else now
    except ValueError:
        at = datetime.min
    if at.tzinfo is None:
        raise QueryError(f"now={str(now)[:99]!r} is not a time with a zone: 2026-11-20T12:00Z.")
    if not timedelta(0) <= (gone := at - today) <= _DAY:
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
    if not stores:
        yield "no store was given: only today's count is known"
    else:
        yield "days before today: only the pages in the stores are known"
    if known.used < by_feeds:
        yield f"the stores have {by_feeds:,} pages of today, the ledger counted {known.used:,}"
    if plan is not None and plan.pages is None:
        yield "the plan does not know its pages"
    elif plan is not None:
        expected = known.used + (plan.pages or 0) + plan.reserve
        yield f"expected at the end of the day: {_of(expected, known.limit)}"
