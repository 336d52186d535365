"""Renders feeds, stores and syncs for notebooks: plain HTML and SVG, as in ``html``."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from siteline import _doors
from siteline._counts import counted
from siteline._display import elements as el
from siteline._display.calendar import (
    DAY,
    Piece,
    Row,
    calendar_rows,
    cells,
    empty_time,
    skipped,
    summary,
)
from siteline._display.html import allowance_bar, parameters
from siteline._times import duration, to_minute
from siteline.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from siteline import Feed
    from siteline.store import Store
    from siteline.types import Coverage, Delays, Lateness, Plan, SyncReport, Task

_TASKS = 12
_CALENDAR_ROWS = 36
_FILL = {
    "settled": (el.BLUE, 1.0),
    "due": (el.AMBER, 1.0),
    "provisional": (el.BLUE, 0.45),
    "unread": ("#808080", 0.3),
    "forgotten": ("#808080", 0.45),
}
# In pixels: the distance of cells, and their size.
_COLUMN, _CELL_WIDTH, _CELL_HEIGHT = 17, 15, 13
_THROUGH = ("settled_through", "read_through", "newest")
_THROUGH_COLUMNS = [(name.replace("_", " "), el.LEFT) for name in _THROUGH]


def feed(shown: Feed) -> str:
    """Show the query of a feed, and its durations."""
    names = ("settle_lag", "overlap", "lateness", "window")
    rows = [(name.replace("_", " "), duration(getattr(shown, name))) for name in names]
    return el.card("Feed", [el.text(shown.name)], el.pairs([*parameters(shown), *rows]))


def store(shown: Store) -> str:
    """Show the path of a store, and how far its feeds have been read."""
    try:
        feeds = _doors.overview(shown)
    except ClosedError:
        return el.card("Store", [el.text(shown.path, 200), "closed"])
    facts = [el.text(shown.path, 200), counted(len(feeds), "feed")]
    if not feeds:
        return el.card("Store", facts)
    rows = [
        [
            f"<b>{el.text(one['feed'].name)}</b>",
            _parameters(one["feed"]),
            *(el.when(one[name], shown.tz) for name in _THROUGH),
            f"{one['sequence']:,}",
        ]
        for one in feeds
    ]
    columns = [("feed", el.LEFT), ("query", el.LEFT), *_THROUGH_COLUMNS, ("sequence", el.RIGHT)]
    return el.card("Store", [*facts, el.text(shown.tz)], el.html_table(columns, rows))


def _parameters(feed: Feed) -> str:
    given = parameters(feed)
    return " · ".join(f"{name} {value}" for name, value in given if name != "range")


def coverage(shown: Coverage) -> str:
    """Show the calendar of a coverage: a filled box has points, a hollow one has none."""
    facts = [el.text(shown.feed.name), f"at {el.when(shown.now)} UTC", summary(shown)]
    rows = calendar_rows(shown)
    earlier, rows = len(rows) - _CALENDAR_ROWS, rows[-_CALENDAR_ROWS:]
    boxes: dict[str, list[str]] = {row.label: [] for row in rows}
    for row, at, pieces in cells(shown, rows):
        boxes[row.label] += (_window(row, at, piece) for piece in pieces)
    days = not rows or rows[0].cell == DAY
    width = (31 if days else 24) * _COLUMN
    drawn = [
        [el.muted(label), el.svg(_CELL_HEIGHT, label, "".join(row), width)]
        for label, row in boxes.items()
    ]
    more = f"… {earlier} earlier" if earlier > 0 else ""
    table = el.html_table([(more, el.LEFT), (_axis(days=days), el.LEFT)], drawn)
    lines = "".join(f"<div><b>{el.text(line, 200)}</b></div>" for line in skipped(shown))
    return el.card("Coverage", facts, table, _legend(shown), lines)


def _axis(*, days: bool) -> str:
    marks = [1, 5, 10, 15, 20, 25, 30, 32] if days else [0, 6, 12, 18, 24]
    return "".join(
        f'<span style="display:inline-block;width:{(end - start) * _COLUMN}px">'
        f"{start if days else f'{start:02}:00'}</span>"
        for start, end in pairwise(marks)
    )


def _window(row: Row, at: datetime, piece: Piece) -> str:
    start, end, window = piece
    read = "never read" if window.read_at is None else f"read {to_minute(window.read_at)}"
    empty = ", no points" if window.empty else ""
    known = "" if window.state == "forgotten" else f", {read}{empty}"
    title = f"{to_minute(window.start)} to {to_minute(window.end)}: {window.state}{known}"
    left = (at - row.start) / row.cell * _COLUMN + (start - at) / row.cell * _CELL_WIDTH
    width = max((end - start) / row.cell * _CELL_WIDTH, 1.0)
    hollow = bool(window.empty) or window.state == "forgotten"
    return _box(left, width, window.state, title, hollow=hollow)


def _box(x: float, width: float, state: str, title: str, *, hollow: bool) -> str:
    colour, opacity = _FILL[state]
    size = f'x="{x:.2f}" y="0" width="{width:.2f}" height="{_CELL_HEIGHT}"'
    fill = f'fill="{colour}" fill-opacity="{opacity}"'
    if hollow:
        # The outline is inside, so that the box is as large as a filled one.
        height = _CELL_HEIGHT - 1.5
        size = f'x="{x + 0.75:.2f}" y=".75" width="{max(width - 1.5, 0.5):.2f}" height="{height}"'
        fill = f'fill="none" stroke="{colour}" stroke-opacity="{opacity}" stroke-width="1.5"'
    return f'<rect {size} rx="2" {fill}><title>{title}</title></rect>'


def _legend(shown: Coverage) -> str:
    entries: list[tuple[str, timedelta, str, bool]] = [
        (state, span, state, state == "forgotten") for state, span in shown.spans.items()
    ]
    entries.append(("read, empty", empty_time(shown), "settled", True))
    parts = (
        f'<span style="white-space:nowrap;margin-right:14px">'
        f"{el.svg(_CELL_HEIGHT, name, _box(0, 13, state, name, hollow=hollow), 13)} "
        f"{name} {duration(span)}</span>"
        for name, span, state, hollow in entries
        if span
    )
    return f'<div style="margin-top:6px">{" ".join(parts)}</div>'


def lateness(shown: Lateness) -> str:
    """Show the quantiles and the conclusion."""
    names = ["count", "late", "half", "90 %", "95 %", "99 %", "all"]
    rows = [["points", *_quantiles(shown.points)], ["revisions", *_quantiles(shown.revisions)]]
    table = el.html_table([("", el.LEFT), *((name, el.RIGHT) for name in names)], rows)
    facts = [el.text(shown.feed.name), duration(shown.lateness)]
    return el.card("Lateness", facts, f"<div>{el.text(shown.verdict, 200)}</div>", table)


def _quantiles(one: Delays) -> list[str]:
    delays = (one.median, one.p90, one.p95, one.p99, one.longest)
    texts = (el.NONE if delay is None else duration(delay) for delay in delays)
    return [f"{one.count:,}", f"{one.late:,}", *texts]


def report(shown: SyncReport) -> str:
    """Show the counts of each feed, and the tasks that are left."""
    facts = [
        "complete" if shown.complete else "<b>incomplete</b>",
        f"{el.when(shown.now)} UTC",
        counted(shown.pages, "page"),
        counted(shown.requests, "request"),
    ]
    numbers = ("pages", "inserted", "revised", "unchanged", "withdrawn")
    rows = [
        [
            f"<b>{el.text(one.name)}</b>",
            *(f"{getattr(one, name):,}" for name in numbers),
            *(el.when(getattr(one, name)) for name in _THROUGH),
        ]
        for one in shown.feeds
    ]
    columns = [("feed", el.LEFT), *((name, el.RIGHT) for name in numbers), *_THROUGH_COLUMNS]
    aside = [f"{one.name}: {range}" for one in shown.feeds for range in one.skipped]
    parts = [el.html_table(columns, rows), _spaced(allowance_bar(shown.allowance))]
    parts += [f"<div><b>{el.text(line, 200)}</b></div>" for line in aside[:5]]
    if not shown.complete:
        since = "" if shown.resumes_at is None else f", from {el.when(shown.resumes_at)} UTC on"
        since = ", as max_pages= ended the sync" if shown.ended_by == "max_pages" else since
        parts += [_spaced(f"Still to do{since}:"), _tasks(shown.tasks)]
    return el.card("Sync", facts, *parts)


def plan(shown: Plan) -> str:
    """Show what would be read, and whether the allowance is enough."""
    aside = [f"{counted(shown.skipped, 'range')} skipped"] if shown.skipped else []
    if not shown.tasks:
        return el.card("Plan", ["nothing to read", *aside, f"{el.when(shown.now)} UTC"])
    pages = "pages unknown" if shown.pages is None else counted(shown.pages, "page")
    fits = {True: ["within the allowance"], False: ["<b>over the allowance</b>"], None: []}
    facts = [counted(len(shown.tasks), "chain"), pages, *fits[shown.fits], *aside]
    left = _spaced(allowance_bar(shown.allowance))
    if shown.kind == "scan" and len(shown.tasks) == 1:
        task = shown.tasks[0]
        source = f", estimated from the feed {el.text(task.feed)}" if task.feed else ""
        return el.card("Plan", facts, f"<div>{_range(task)} UTC{source}</div>", left)
    reserve = ""
    if shown.reserve:
        reserve = f"<div>{counted(shown.reserve, 'page')} reserved for due windows</div>"
    return el.card("Plan", facts, _tasks(shown.tasks, shown.kind), left, reserve)


def _spaced(content: str) -> str:
    return f'<div style="margin-top:8px">{content}</div>'


def _tasks(tasks: Sequence[Task], kind: str = "sync") -> str:
    # Tasks of scans have no feed and no reason.
    rows = [
        [
            *([el.text(task.feed) or el.NONE, task.why] if kind == "sync" else []),
            _range(task),
            el.NONE if task.pages is None else f"{task.pages:,}",
        ]
        for task in tasks[:_TASKS]
    ]
    rest = len(tasks) - len(rows)
    more = el.muted(f"… and {counted(rest, 'more chain')}", "div") if rest else ""
    names = ["feed", "why", "range"] if kind == "sync" else ["range"]
    return el.html_table([*((name, el.LEFT) for name in names), ("pages", el.RIGHT)], rows) + more


def _range(task: Task) -> str:
    return f"{el.when(task.start)} → {el.when(task.end)}"
