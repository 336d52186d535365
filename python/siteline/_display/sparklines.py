"""Series as small drawings: a table row for each, with its label and its numbers."""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._display import elements as el
from siteline._times import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteline.table import Table

_HEIGHT = 26
# The height of the lowest pixels, which mark the times with points.
_PRESENCE = 3
_SERIES = 8
_LEVELS = ("site", "line", "machine", "device", "tag")
_BACKGROUND = f'<rect width="{el.WIDTH}" height="{_HEIGHT}" rx="2" fill="{el.FAINT}"/>'


def sparklines(shown: Table) -> str:
    """Draw the first series of a table of points as lines."""
    preview = _doors.frame(shown).preview()
    series = preview["series"]
    tz = _doors.zone(shown)
    start, end = (el.when(from_microseconds(bound), tz) for bound in preview["range"])
    rows = [
        [
            _line(line["stretches"]),
            *(el.number(value) for value in line["values"] or (None, None)),
            f"{line['points']:,}",
        ]
        for line in series
    ]
    columns = [
        (el.axis(start, end), el.LEFT),
        *((one, el.RIGHT) for one in ("lowest", "highest", "points")),
    ]
    return _named(shown, [line["ids"] for line in series], columns, rows)


def shares(shown: Table) -> str:
    """Draw the first series of a completeness: missing buckets amber, unread ones grey."""
    ids, rows, start, end = [], [], None, None
    names = ("buckets", "missing", "unread", "expected")
    for one, group in islice(groupby(_doors.rows(shown), _ids), _SERIES):
        periods = list(group)
        start, end = periods[0]["timestamp"], periods[-1]["timestamp"]
        sums = [sum(period[name] or 0 for period in periods) for name in names]
        ids.append(one)
        rows.append([_bars(periods), f"{sums[0] / max(1, sums[-1]):.1%}", *map(el.number, sums)])
    ends = [el.when(at, _doors.zone(shown)) for at in (start, end)]
    columns = [
        (el.axis(*ends), el.LEFT),
        ("share", el.RIGHT),
        *((name, el.RIGHT) for name in names),
    ]
    return _named(shown, ids, columns, rows)


def _ids(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(list(row.values())[: len(_LEVELS)])


def _named(
    shown: Table,
    ids: Sequence[tuple[Any, ...]],
    columns: list[tuple[str, str]],
    rows: Iterable[list[str]],
) -> str:
    """Return a table of series with their labels, or with the ids in which they differ."""
    labels = _doors.labels(shown)
    if labels is not None:
        names = [("label", el.LEFT)]
        first = [[el.text(labels.get(one), 120)] for one in ids]
    else:
        # The tag always has a column; other ids only if the series differ in them.
        levels = [n for n in range(len(_LEVELS)) if n == 4 or len({one[n] for one in ids}) > 1]
        names = [(_LEVELS[n], el.LEFT) for n in levels]
        first = [[el.text(one[n]) for n in levels] for one in ids]
    body = [[*name, *row] for name, row in zip(first, rows, strict=True)]
    rest = len(_doors.frame(shown).series()) - len(ids)
    more = el.muted(f"… and {rest:,} more series", "div") if rest > 0 else ""
    return el.html_table([*names, *columns], body) + more


def _line(stretches: list[list[dict[str, float]]]) -> str:
    height = _HEIGHT - _PRESENCE
    line, presence = [], []
    for stretch in stretches:
        ends = [
            (pixel["x"], f"{(1 - share) * (height - 4) + 2:.1f}")
            for pixel in stretch
            for share in dict.fromkeys((pixel["low"], pixel["high"]))
        ]
        # A single point is drawn as a dot, by the round ends of the line.
        ends += [ends[0]] if len(ends) == 1 else []
        line.append("M" + "L".join(f"{x + 0.5} {y}" for x, y in ends))
        first, last = stretch[0]["x"], stretch[-1]["x"]
        presence.append(f"M{first} {_HEIGHT - 1}H{max(last, first) + 1}")
    return el.svg(
        _HEIGHT,
        "values over time; below them, the times with points",
        f'{_BACKGROUND}<path d="{"".join(line)}" fill="none" stroke="{el.BLUE}" stroke-width="1.4" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
        f'<path d="{"".join(presence)}" fill="none" stroke="{el.BLUE}" stroke-opacity=".5" '
        'stroke-width="2"/>',
    )


def _bars(periods: list[dict[str, Any]]) -> str:
    """Draw a bar for each period, or for several if there are more periods than pixels."""
    each = -(-len(periods) // el.WIDTH)
    step = el.WIDTH * each / len(periods)
    width = step - 1 if step > 4 else step
    bars: dict[str, list[str]] = {el.BLUE: [], el.AMBER: []}
    for place in range(0, len(periods), each):
        part = periods[place : place + each]
        expected = sum(one["expected"] or 0 for one in part)
        top = float(_HEIGHT)
        for colour, name in ((el.BLUE, "buckets"), (el.AMBER, "missing")):
            height = _HEIGHT * sum(one[name] or 0 for one in part) / max(1, expected)
            top -= height
            if height:
                left = f"M{place / each * step:.1f} {top:.1f}"
                bars[colour].append(f"{left}h{width:.1f}v{height:.1f}h-{width:.1f}z")
    paths = (
        f'<path d="{"".join(one)}" fill="{colour}" shape-rendering="crispEdges"/>'
        for colour, one in bars.items()
        if one
    )
    label = "share of buckets over time; missing ones are amber"
    return el.svg(_HEIGHT, label, _BACKGROUND + "".join(paths))
