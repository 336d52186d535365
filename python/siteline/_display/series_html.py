"""Renders series for notebooks: tables of them, discovery, and small drawings of their points.

There is no script: the search of the browser finds what is shown, and opens what is folded.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._counts import counted
from siteline._display import elements as el
from siteline._times import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteline.table import Table
    from siteline.types import Discovery

# More series are folded, and still more are only counted.
_OPEN, _SHOWN = 60, 1_000
_PLACES = 8  # of members that are not recognised
_GROUP = "margin:6px 0 0 0"
_HEIGHT = 26
_PRESENCE = 3  # the height of the lowest pixels, which mark the times with points
_DRAWN = 8
_LEVELS = ("site", "line", "machine", "device", "tag")
_BACKGROUND = f'<rect width="{el.WIDTH}" height="{_HEIGHT}" rx="2" fill="{el.FAINT}"/>'


def series(shown: Table, title: str = "Table", facts: Sequence[str] = ()) -> str:
    """Draw the first series, and the number of the others."""
    report, count = shown.report, len(shown)
    facts = [*facts, _doors.series_count(shown)]
    facts += ["listed by discovery"] if report.listed else ["not listed by discovery"]
    facts += ["the body has a cursor: perhaps a part"] if report.not_ended else []
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in islice(shown.records(), _SHOWN):
        groups.setdefault(row["path"].rpartition(" / ")[0], []).append(
            row | {"unit": row["unit"] or ""}
        )
    parts = [_group(name, found, is_open=count <= _OPEN) for name, found in groups.items()]
    if count > _SHOWN:
        more = f'{count - _SHOWN:,} more: find("...", line="...")'
        parts.append(f'<div style="{_GROUP}">{el.muted(el.text(more))}</div>')
    if unknown := report.not_recognised:
        places = ", ".join(unknown[:_PLACES]) + (", …" if len(unknown) > _PLACES else "")
        line = el.text(f"not recognised in the discovery body: {places}", 400)
        parts.append(f'<div style="{_GROUP};white-space:normal">{el.muted(line)}</div>')
    return el.card(title, facts, *parts)


def discovery(shown: Discovery) -> str:
    """Draw the series that siteline finds in a discovery body."""
    return series(_doors.series_of(shown), "Discovery", [counted(len(shown.raw), "byte")])


def _group(name: str, rows: list[dict[str, Any]], *, is_open: bool) -> str:
    title = f"{el.text(name or 'no path')} {el.muted(f'{len(rows):,} series')}"
    longest = {"label": 120, "unit": 60, "tag_guid": 60}
    cells = ({name: el.text(row[name], most) for name, most in longest.items()} for row in rows)
    table = el.html_table(cells, {"tag_guid": f"{el.LEFT};font-family:monospace"})
    folded = " open" if is_open else ""
    return f'<details style="{_GROUP}"{folded}><summary>{title}</summary>{table}</details>'


def sparklines(shown: Table) -> str:
    """Draw the first series of a table of points as lines."""
    preview = _doors.handle(shown).preview()
    axis = _axis(shown, *map(from_microseconds, preview["range"]))
    rows = []
    for line in preview["series"]:
        lowest, highest = line["values"] or (None, None)
        numbers = {"lowest": lowest, "highest": highest, "points": line["points"]}
        rows.append({axis: _line(line["stretches"]), **numbers})
    return _named(shown, [line["ids"] for line in preview["series"]], rows)


def shares(shown: Table) -> str:
    """Draw the first series of a completeness: missing buckets amber, unread ones grey."""
    ids, rows = [], []
    for one, group in islice(groupby(_doors.rows(shown), _ids), _DRAWN):
        periods = list(group)
        axis = _axis(shown, periods[0]["timestamp"], periods[-1]["timestamp"])
        buckets, missing, unread, expected = (
            sum(period[name] or 0 for period in periods)
            for name in ("buckets", "missing", "unread", "expected")
        )
        share = {
            "share": f"{buckets / max(1, expected):.1%}",
            "buckets": f"{buckets:,} of {expected:,}",
        }
        ids.append(one)
        rows.append({axis: _bars(periods), **share, "missing": missing, "unread": unread})
    return _named(shown, ids, rows)


def _axis(shown: Table, *ends: Any) -> str:
    start, end = (el.when(at, _doors.zone(shown)) for at in ends)
    return (
        f'<div style="width:{el.WIDTH}px;font-size:10.5px;white-space:nowrap">'
        f'<span style="float:left">{start}</span><span style="float:right">{end}</span></div>'
    )


def _ids(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())[: len(_LEVELS)]


def _named(shown: Table, ids: Sequence[tuple[Any, ...]], rows: Iterable[dict[str, Any]]) -> str:
    """Return a table of series with their labels, or with the ids in which they differ."""
    labels = _doors.labels(shown)
    # The tag is always written; other ids only if the series differ in them.
    levels = [n for n in range(len(_LEVELS)) if n == 4 or len({one[n] for one in ids}) > 1]
    if labels is None:
        labels = {one: " / ".join(str(one[n]) for n in levels) for one in ids}
        head = " / ".join(_LEVELS[n] for n in levels)
    else:
        head = "label"
    named = zip(ids, rows, strict=True)
    body = [{head: el.text(labels.get(one), 120), **row} for one, row in named]
    rest = len(_doors.handle(shown).series()) - len(ids)
    more = el.muted(f"… and {rest:,} more series", "div") if rest > 0 else ""
    return el.html_table(body, {"share": el.RIGHT, "buckets": el.RIGHT}) + more


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
    bars = {el.BLUE: "", el.AMBER: ""}
    for place in range(0, len(periods), each):
        part = periods[place : place + each]
        expected = sum(one["expected"] or 0 for one in part)
        top = float(_HEIGHT)
        for colour, name in ((el.BLUE, "buckets"), (el.AMBER, "missing")):
            height = _HEIGHT * sum(one[name] or 0 for one in part) / max(1, expected)
            top -= height
            if height:
                left = f"M{place / each * step:.1f} {top:.1f}"
                bars[colour] += f"{left}h{width:.1f}v{height:.1f}h-{width:.1f}z"
    paths = (
        f'<path d="{path}" fill="{colour}" shape-rendering="crispEdges"/>'
        for colour, path in bars.items()
        if path
    )
    label = "share of buckets over time; missing ones are amber"
    return el.svg(_HEIGHT, label, _BACKGROUND + "".join(paths))
