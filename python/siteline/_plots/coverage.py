"""The picture of what many feeds have read: a row for each feed, a cell for each day."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from siteline._counts import counted
from siteline._plots.axis import TIME_AXIS, TimeAxis, clock, microseconds, zone_name
from siteline._plots.calendar_ticks import instants, local
from siteline._plots.drawing import (
    AMBER,
    BLUE,
    GREY,
    RED,
    TITLE_SIZE,
    Drawing,
    text,
)
from siteline._plots.legend import Entry, area, legend
from siteline._plots.texts import fitted, width
from siteline._times import duration

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from siteline.types import Coverage, CoverageWindow

__all__: list[str] = []

_ROW, _CELL, _TOP, _RIGHT = 20, 14, 50, 14
_DAY = timedelta(days=1)
# A cell is at least so wide, and is of more days where a day would be narrower.
_NARROWEST_CELL = 5
EMPTY, ASIDE = "read, empty", "set aside"
# The colour, how opaque the inside of a box is, and whether it has an outline, which is opaque: so
# each differs from the page, light or dark.
_STATES = {
    "settled": (BLUE, 1.0, False),
    "due": (AMBER, 1.0, False),
    "provisional": (BLUE, 0.4, True),
    "unread": (GREY, 0.2, True),
    "forgotten": (GREY, 0.0, True),
    EMPTY: (BLUE, 0.0, True),
    ASIDE: (RED, 0.2, True),
}


class Part(NamedTuple):
    """The time of a feed's day that is in one state, and the length of that day."""

    feed: str
    day: int
    state: str
    length: int
    of: int


class _Days(NamedTuple):
    """The days of a picture: the first, how many, and how many a cell has."""

    bounds: list[int]
    """The beginning of each day, and the end of the last."""
    together: int


def picture(
    given: list[Coverage], zone: tzinfo, title: str | None, full: int, rows: int
) -> tuple[Drawing, list[Part]]:
    """Draw the coverages, and return what was drawn."""
    shown = given[:rows]
    names = [one.feed.name for one in shown]
    sides = [_reached(one, zone) for one in shown]
    left = min(max(map(width, names), default=0) + 12, full * 0.3)
    right = full - max(map(width, [*sides, "settled through"])) - 12
    bounds = _midnights(shown, zone)
    together = max(1, -(-_NARROWEST_CELL * (len(bounds) - 1) // max(int(right - left), 1)))
    days = _Days(bounds, together)
    parts = [part for one in shown for part in _parts(one, days)]
    axis = TimeAxis(bounds[0], bounds[-1], left, right, zone)
    title = title or f"Coverage of {names[0] if len(given) == 1 else f'{len(given):,} feeds'}"
    body = [
        text(0, 14, fitted(title, full, TITLE_SIZE), size=TITLE_SIZE, bold=True),
        _subtitle(shown, days, zone, full),
        text(full, 33, "settled through", anchor="end", faint=True),
    ]
    for place, (one, name, side) in enumerate(zip(shown, names, sides, strict=True)):
        y = _TOP + place * _ROW
        body.append(text(left - 8, y + 11, fitted(name, left - 12), anchor="end"))
        body.append(_row(one, days, axis, y))
        body.append(text(full, y + 11, side, anchor="end", faint=True))
    bottom: float = _TOP + len(shown) * _ROW
    body.append(axis.labels(bottom - 4, axis.ticks(), full))
    drawn, bottom = legend(_entries(parts), 0, bottom + TIME_AXIS + 12, full)
    body.append(drawn)
    notes = _notes(len(given) - len(shown), rows)
    for note in notes:
        bottom += 17
        body.append(text(0, bottom, fitted(note, full), faint=True))
    drawing = Drawing(full, bottom + 8, title, _describe(shown, parts, notes, zone), "".join(body))
    return drawing, parts


def _reached(one: Coverage, zone: tzinfo) -> str:
    through = one.settled_through
    return "nothing" if through is None else clock(microseconds(through), zone)


def _midnights(shown: list[Coverage], zone: tzinfo) -> list[int]:
    """Return where the days of the zone begin, from the first window to the end of the last."""
    windows = [window for one in shown for window in one]
    first = min((window.start for window in windows), default=min(one.now for one in shown))
    last = max((window.end for window in windows), default=first)
    start, end = microseconds(first), microseconds(last)
    day = local(start, zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    bounds: list[int] = []
    while not bounds or bounds[-1] < max(end, start + 1):
        bounds += _beginning(day, zone)
        day += _DAY
    while len(bounds) > 2 and bounds[1] <= start:
        bounds.pop(0)
    return bounds


def _beginning(day: datetime, zone: tzinfo) -> list[int]:
    """Return when a day begins: midnight, or the first quarter of an hour that its clock has."""
    for quarters in range(96):
        if found := instants(day + timedelta(minutes=15 * quarters), zone):
            return found[:1]
    return []


def _parts(one: Coverage, days: _Days) -> list[Part]:
    """Add up the time in each state, for each day."""
    lengths: dict[tuple[int, str], int] = defaultdict(int)
    place = 0
    for window in one:
        start, end = microseconds(window.start), microseconds(window.end)
        while days.bounds[place + 1] <= start:
            place += 1
        at = place
        while at + 1 < len(days.bounds) and days.bounds[at] < end:
            inside = min(end, days.bounds[at + 1]) - max(start, days.bounds[at])
            lengths[at, _state(window)] += inside
            at += 1
    return [
        Part(
            one.feed.name, days.bounds[at], state, length, days.bounds[at + 1] - days.bounds[at]
        )
        for (at, state), length in sorted(lengths.items())
    ]  # fmt: skip


def _state(window: CoverageWindow) -> str:
    if window.skipped_until is not None:
        return ASIDE
    return EMPTY if window.empty and window.state != "forgotten" else window.state


def _row(one: Coverage, days: _Days, axis: TimeAxis, y: float) -> str:
    """Draw the cells of a feed: each part of a day from its start to its end."""
    places: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    ends = set(days.bounds)
    for start, end, state in _pieces(one, days):
        x = axis.x(start)
        wide = axis.x(end) - x
        # A gap between two cells, where they are not too narrow for it.
        wide -= 1 if end in ends and wide > 3 else 0
        places[state].append((x, y, max(wide, 0.5), _CELL))
    drawn = []
    for state, found in places.items():
        colour, opacity, outlined = _STATES[state]
        drawn.append(area(found, colour, opacity, outlined=outlined))
    return "".join(drawn)


def _pieces(one: Coverage, days: _Days) -> list[tuple[int, int, str]]:
    """Return the stretches of one state within each cell, in order of time."""
    cells = [*days.bounds[: -1 : days.together], days.bounds[-1]]
    pieces: list[tuple[int, int, str]] = []
    place = 0
    for window in one:
        start, end = microseconds(window.start), microseconds(window.end)
        state = _state(window)
        while cells[place + 1] <= start:
            place += 1
        at = place
        while at + 1 < len(cells) and cells[at] < end:
            first, last = max(start, cells[at]), min(end, cells[at + 1])
            at += 1
            if pieces and pieces[-1][1:] == (first, state) and first not in cells:
                pieces[-1] = (pieces[-1][0], last, state)
            else:
                pieces.append((first, last, state))
    return pieces


def _subtitle(shown: list[Coverage], days: _Days, zone: tzinfo, full: int) -> str:
    at = max(one.now for one in shown)
    cell = "a day" if days.together == 1 else f"{days.together} days"
    said = f"at {clock(microseconds(at), zone)} · a cell is {cell} · {zone_name(zone)}"
    return text(0, 33, fitted(said, full - width("settled through") - 20), faint=True)


def _entries(parts: list[Part]) -> list[Entry]:
    """Name the states that are there, with the time in each."""
    totals = _totals(parts)
    return [
        Entry(f"{state} {totals[state]}", "outlined" if outlined else "area", colour, opacity)
        for state, (colour, opacity, outlined) in _STATES.items()
        if state in totals
    ]


def _totals(parts: list[Part]) -> dict[str, str]:
    """Add up the time in each state, as text."""
    totals: dict[str, int] = defaultdict(int)
    for part in parts:
        totals[part.state] += part.length
    return {
        state: duration(timedelta(microseconds=totals[state])) for state in _STATES if totals[state]
    }


def _notes(not_shown: int, rows: int) -> list[str]:
    if not not_shown:
        return []
    are = "is" if not_shown == 1 else "are"
    return [f"… and {counted(not_shown, 'more feed')} {are} not shown (rows={rows})"]


def _describe(shown: list[Coverage], parts: list[Part], notes: list[str], zone: tzinfo) -> str:
    said = [f"{state} {total}" for state, total in _totals(parts).items()]
    reached = [f"{one.feed.name} is settled through {_reached(one, zone)}" for one in shown[:5]]
    windows = [window for one in shown for window in one]
    aside = sum(window.skipped_until is not None for window in windows)
    reached += [f"{counted(aside, 'range')} set aside"] if aside else []
    total = ", ".join(said) or "no time yet"
    return ". ".join([f"In all: {total}", *reached, *notes]) + "."
