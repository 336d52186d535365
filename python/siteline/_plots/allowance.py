"""The picture of the allowance: the requests of the last days, and who spent them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline import _doors
from siteline._plots.axis import baseline, number_axis, room_for
from siteline._plots.drawing import (
    GREY,
    RED,
    SERIES,
    TITLE_SIZE,
    Drawing,
    number,
    stroke,
    text,
)
from siteline._plots.legend import Entry, area, legend
from siteline._plots.numbers import scale
from siteline._plots.pace import Pace, pace
from siteline._plots.texts import fitted, width
from siteline._times import from_microseconds, to_minute

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from siteline.store import Store
    from siteline.types import Allowance, Plan

__all__: list[str] = []

_RIGHT, _TOP, _HEIGHT = 14, 48, 200
_DAY = timedelta(days=1)
_FAR = 4
OTHER, PLANNED, RESERVED = "not by these feeds", "planned", "reserved for due windows"
PACE = "at the pace so far"

_BEFORE = "days before today: the pages that the stores have; what else was sent is not known"


class Part(NamedTuple):
    """The requests of a day that are of one kind."""

    day: datetime
    part: str
    kind: str
    requests: int


class _Look(NamedTuple):
    colour: str
    opacity: float
    outlined: bool


def picture(
    known: Allowance, stores: list[Store], plan: Plan | None, now: datetime | None, days: int,
    title: str | None, full: int,
) -> tuple[Drawing, list[Part]]:  # fmt: skip
    """Draw the bars of the days, and return what they are made of."""
    found = None if now is None else pace(known, now)
    today = known.resets_at.astimezone(UTC) - _DAY
    # The ledger keeps the count of today alone.
    starts = [today - _DAY * back for back in reversed(range(days))] if stores else [today]
    parts = _read(stores, starts)
    by_feeds = sum(part.requests for part in parts if part.day == today)
    if known.used > by_feeds:
        what = OTHER if stores else "counted by the ledger"
        parts.append(Part(today, what, "other", known.used - by_feeds))
    if plan is not None:
        parts += [Part(today, PLANNED, "planned", plan.pages)] if plan.pages else []
        parts += [Part(today, RESERVED, "reserved", plan.reserve)] if plan.reserve else []
    title = title or f"Requests by day: {_of(known.used, known.limit)} today"
    notes = _notes(known, bool(stores), plan, by_feeds)
    if now is not None:
        notes.append(_told(known, found))
    body, bottom = _draw(title, known, parts, starts, found, full)
    for note in notes:
        bottom += 17
        body += text(0, bottom, fitted(note, full), faint=True)
    drawing = Drawing(full, bottom + 8, title, _describe(known, parts, starts, notes), body)
    if found is not None and found.at_end > known.used:
        parts.append(Part(today, PACE, "pace", found.at_end - known.used))
    return drawing, parts


def _of(used: int, limit: int | None) -> str:
    return f"{used:,}" if limit is None else f"{used:,} of {limit:,}"


def _read(stores: list[Store], starts: list[datetime]) -> list[Part]:
    """Count the pages of each feed on each day; feeds of one name in several stores are one."""
    counts: Counter[tuple[int, str]] = Counter()
    for store in stores:
        for name in store.feeds:
            for at in _doors.page_times(store, name):
                place = (from_microseconds(at) - starts[0]) // _DAY
                if 0 <= place < len(starts):
                    counts[place, name] += 1
    return [Part(starts[place], name, "read", n) for (place, name), n in sorted(counts.items())]


def _looks(parts: list[Part]) -> tuple[dict[str, _Look], dict[str, str]]:
    """Give each part its look; the feeds that spent least share one."""
    totals: Counter[str] = Counter()
    for part in parts:
        if part.kind == "read":
            totals[part.part] += part.requests
    ranked = sorted(totals, key=lambda name: (-totals[name], name))
    own = ranked if len(ranked) <= len(SERIES) else ranked[: len(SERIES) - 1]
    rest = f"{len(ranked) - len(own):,} other feeds"
    group = {name: name if name in own else rest for name in ranked}
    names = [*own, rest] if len(own) < len(ranked) else own
    looks = {name: _Look(colour, 1.0, False) for name, colour in zip(names, SERIES, strict=False)}
    kinds = {part.part: part.kind for part in parts}
    shapes = {"other": _Look(GREY, 0.6, False), "planned": _Look(SERIES[0], 0.15, True),
              "reserved": _Look(GREY, 0.1, True)}  # fmt: skip
    for name, kind in kinds.items():
        if kind != "read":
            looks[name], group[name] = shapes[kind], name
    return looks, group


def _draw(
    title: str,
    known: Allowance,
    parts: list[Part],
    starts: list[datetime],
    found: Pace | None,
    full: int,
) -> tuple[str, float]:
    looks, group = _looks(parts)
    stacks: dict[datetime, Counter[str]] = {start: Counter() for start in starts}
    for part in parts:
        stacks[part.day][group[part.part]] += part.requests
    highest = max([*(sum(stack.values()) for stack in stacks.values()), 1])
    # A limit or a pace far above the bars would leave them too low to be told apart.
    is_above = known.limit is not None and known.limit > _FAR * highest
    highest = highest if is_above else max(highest, known.limit or 0)
    at_end = 0 if found is None else found.at_end
    is_pace_above = at_end > _FAR * highest
    numbers = scale(0, highest if is_pace_above else max(highest, at_end), 6, whole=True)
    left, right = room_for([numbers]), full - _RIGHT
    entries = [
        Entry(name, "outlined" if look.outlined else "area", look.colour, look.opacity)
        for name, look in looks.items()
    ]
    if known.limit is not None:
        limit = f"today's limit, {known.limit:,}"
        entries.append(Entry(f"{limit}, far above" if is_above else limit, "line", RED))
    if at_end:
        line = f"today {PACE}, {at_end:,}"
        entries.append(Entry(f"{line}, far above" if is_pace_above else line, "dashes", GREY))
    head, last = legend(entries, 0, 36, full)
    top = last + 40
    bottom = top + _HEIGHT
    body = [
        text(0, 14, fitted(title, full, TITLE_SIZE), size=TITLE_SIZE, bold=True),
        head,
        number_axis(numbers, left, right, top, bottom),
    ]
    each = (right - left) / len(starts)
    wide = min(each * 0.7, 90)
    # Where the line of the pace is, if it is drawn.
    pace_at = None if is_pace_above or not at_end else bottom - numbers.share(at_end) * _HEIGHT
    for place, start in enumerate(starts):
        x = left + each * (place + 0.5) - wide / 2
        line_at = pace_at if place + 1 == len(starts) else None
        body.append(_bar(stacks[start], looks, x, wide, bottom, _HEIGHT / numbers.high, line_at))
    if known.limit is not None and not is_above:
        y = number(bottom - numbers.share(known.limit) * _HEIGHT)
        body.append(stroke(f"M{number(left)} {y}H{number(right)}", RED, 1.6))
    if pace_at is not None:
        # Across today's bar, and beyond it where a day is narrow.
        y, x = number(pace_at), right - each / 2
        half = min(max(wide / 2, 8) + 6, each / 2 + _RIGHT)
        body.append(stroke(f"M{number(x - half)} {y}H{number(x + half)}", GREY, 1.8, dashes="4 3"))
    body.append(baseline(left, right, bottom))
    body.append(_days(starts, left, each, bottom, full))
    ends = f"the day ends {to_minute(known.resets_at.astimezone(UTC))} UTC"
    body.append(text(right, top - 22, ends, anchor="end", faint=True))
    return "".join(body), bottom + 34


def _bar(
    stack: Counter[str],
    looks: Mapping[str, _Look],
    x: float,
    wide: float,
    bottom: float,
    unit: float,
    line_at: float | None,
) -> str:
    drawn: list[str] = []
    y = bottom
    for name, (colour, opacity, outlined) in looks.items():
        if stack[name]:
            height = stack[name] * unit
            y -= height
            drawn.append(area([(x, y, wide, height)], colour, opacity, outlined=outlined))
    total = f"{sum(stack.values()):,}"
    # Above the bar, where it is not wider than the day, and above a line that would cross it.
    if stack and width(total) + 6 < wide / 0.7:
        y = line_at if line_at is not None and y - 18 < line_at < y else y
        drawn.append(text(x + wide / 2, y - 5, total, anchor="middle"))
    return "".join(drawn)


def _days(starts: list[datetime], left: float, each: float, bottom: float, full: int) -> str:
    """Write the days below their bars, those that have room."""
    drawn: list[str] = []
    used = 0.0
    for place in reversed(range(len(starts))):
        x = left + each * (place + 0.5)
        label = "today" if place + 1 == len(starts) else f"{starts[place]:%m-%d}"
        half = width(label) / 2
        if (not drawn or x + half + 8 <= used) and x - half >= 0 and x + half <= full:
            drawn.append(text(x, bottom + 17, label, anchor="middle"))
            used = x - half
    return "".join(drawn)


def _notes(known: Allowance, has_stores: bool, plan: Plan | None, by_feeds: int) -> list[str]:
    notes = []
    if known.limit is None:
        notes.append("no daily allowance is set: what is left is not known")
    else:
        notes.append(f"{known.left or 0:,} left today")
    if not has_stores:
        notes.append("no store was given: the days before today, and who spent, are not known")
    else:
        notes.append(_BEFORE)
    if known.used < by_feeds:
        notes.append(
            f"the stores have {by_feeds:,} pages of today, the ledger counted {known.used:,}"
        )
    if plan is None:
        notes.append("no plan was given: nothing is projected")
    elif plan.pages is None:
        notes.append("the plan does not know its pages: nothing is projected")
    else:
        expected = known.used + plan.pages + plan.reserve
        notes.append(f"expected at the end of the day: {_of(expected, known.limit)}")
    return notes


def _told(known: Allowance, found: Pace | None) -> str:
    """Say the pace in a line."""
    if found is None:
        return "the day has hardly begun: it has no pace yet"
    said = f"{PACE} {_of(found.at_end, known.limit)} at the end of the day"
    return said if found.spent_at is None else f"{said}: used up {found.spent_at:%H:%M} UTC"


def _describe(known: Allowance, parts: list[Part], starts: list[datetime], notes: list[str]) -> str:
    totals: Counter[str] = Counter()
    for part in parts:
        if part.kind == "read":
            totals[part.part] += part.requests
    ranked = sorted(totals.items(), key=lambda one: (-one[1], one[0]))
    said = [f"The day ends {to_minute(known.resets_at.astimezone(UTC))} UTC"]
    if ranked:
        spent = ", ".join(f"{name} {count:,}" for name, count in ranked[:5])
        more = f" and {len(ranked) - 5:,} more feeds" if len(ranked) > 5 else ""
        said.append(f"Pages read in {len(starts):,} days: {spent}{more}")
    today = [part for part in parts if part.kind == "other"]
    said += [f"Today {part.requests:,} {part.part}" for part in today]
    return ". ".join(one[:1].upper() + one[1:] for one in [*said, *notes]) + "."
