"""What notebooks show of feeds, stores and syncs: as :mod:`siteline.html`, plain and inert."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from siteline import coverage_picture
from siteline.errors import ClosedError
from siteline.html import (
    _CELL,
    _HEAD,
    _NONE,
    _RIGHT,
    _TABLE,
    _bar,
    _card,
    _cell,
    _lines,
    _many,
    _pairs,
    _row,
    _text,
    _time,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from siteline import Coverage, Feed, Lateness, Plan, Points, Store, SyncReport
    from siteline.lateness import Delays
    from siteline.sync import Task

__all__: list[str] = []

_ROWS = 5
_TASKS = 12


def feed(shown: Feed) -> str:
    """Show what a feed asks, and how it is kept right."""
    rows = [("asks", _text(shown._asks(), 300)), ("since", f"{_time(shown.since)} UTC")]
    names = ("settle_lag", "overlap", "lateness", "window")
    rows += [(name.replace("_", " "), _span(getattr(shown, name))) for name in names]
    return _card("Feed", [_text(shown.name)], _pairs(rows))


def store(shown: Store) -> str:
    """Show where a store is, and how far its feeds have been read."""
    try:
        known = shown._overview()
    except ClosedError:
        return _card("Store", [_text(shown.path, 200), "closed"])
    said = [_text(shown.path, 200), _many(len(known), "feed")]
    if not known:
        return _card("Store", said)
    rows = [
        [
            (f"<b>{_text(one.name)}</b>", _CELL),
            (_text(one._asks(), 100), _CELL),
            (_end(settled), _CELL),
            (_end(read), _CELL),
            (f"{sequence:,}", _RIGHT),
        ]
        for one, settled, read, sequence in known
    ]
    names = ["feed", "asks", "settled through", "read through"]
    head = [*((name, _CELL) for name in names), ("sequence", _RIGHT)]
    return _card("Store", said, _table(head, rows))


def points(shown: Points) -> str:
    """Show the first points as lines, and a few as rows."""
    said, preview, records, rows, more = shown._preview()
    if not rows:
        return _card("Points", [_text(said, 200), "no points"])
    first = list(islice(records, _ROWS))
    styles = [_RIGHT if isinstance(one, (int, float)) else _CELL for one in first[0].values()]
    head = list(zip(map(_text, first[0]), styles, strict=True))
    body = [list(zip(map(_cell, one.values()), styles, strict=True)) for one in first]
    size = f"the first {_many(rows, 'point')} of more" if more else _many(rows, "point")
    return _card("Points", [_text(said, 200), size], _lines(preview), _table(head, body))


def coverage(shown: Coverage) -> str:
    """Show the picture."""
    said = [_text(shown.feed.name), f"at {_time(shown.now)} UTC"]
    picture = coverage_picture.drawn(shown)
    return _card("Coverage", said, f'<div style="margin-top:6px">{picture}</div>')


def lateness(shown: Lateness) -> str:
    """Show the quantiles and the verdict."""
    names = ["", "count", "half", "90 %", "99 %", "all"]
    head = [(name, _RIGHT if name else _CELL) for name in names]
    rows = [
        [(name, _CELL), *_quantiles(one)]
        for name, one in (("late points", shown.points), ("revisions", shown.revisions))
    ]
    said = [_text(shown.feed.name), _span(shown.lateness)]
    return _card("Lateness", said, f"<div>{_text(shown.verdict, 200)}</div>", _table(head, rows))


def _quantiles(one: Delays) -> list[tuple[str, str]]:
    spans = [(span or _NONE, _RIGHT) for span in one._spans()]
    return [(f"{one.count:,}", _RIGHT), *spans]


def report(shown: SyncReport) -> str:
    """Show what a sync did, feed by feed, and what is left."""
    said = ["complete" if shown.complete else "<b>incomplete</b>", f"{_time(shown.now)} UTC"]
    said += [_many(shown.pages, "page"), _many(shown.requests, "request")]
    numbers = ("pages", "inserted", "revised", "unchanged", "flagged")
    rows = [
        [
            (f"<b>{_text(one.name)}</b>", _CELL),
            *((f"{getattr(one, name):,}", _RIGHT) for name in numbers),
            (_end(one.settled_through), _CELL),
            (_end(one.read_through), _CELL),
        ]
        for one in shown.feeds.values()
    ]
    head = [("feed", _CELL), *((name, _RIGHT) for name in numbers)]
    head += [("settled through", _CELL), ("read through", _CELL)]
    left = f'<div style="margin-top:8px">{_bar(shown.allowance)}</div>'
    if shown.complete:
        return _card("Sync", said, _table(head, rows), left)
    when = "" if shown.resumes_at is None else f" from {_time(shown.resumes_at)} UTC on"
    todo = f'<div style="margin-top:8px">Still to do{when}:</div>{_tasks(shown.todo)}'
    return _card("Sync", said, _table(head, rows), left, todo)


def plan(shown: Plan) -> str:
    """Show what would be read, and whether the allowance is enough."""
    if not shown.tasks:
        return _card("Plan", ["nothing to read", f"{_time(shown.now)} UTC"])
    pages = "pages not known yet" if shown.pages is None else _many(shown.pages, "page")
    fits = {True: "enough is left", False: "<b>not enough is left</b>", None: ""}[shown.fits]
    said = [_many(len(shown.tasks), "chain"), pages, *([fits] if fits else [])]
    left = f'<div style="margin-top:8px">{_bar(shown.allowance)}</div>'
    held = ""
    if shown.reserve:
        held = f"<div>{_many(shown.reserve, 'page')} held back for what becomes due</div>"
    if shown.kind == "scan" and len(shown.tasks) == 1:
        task = shown.tasks[0]
        seen = f", as the feed {_text(task.feed)} has shown" if task.feed else ""
        scope = f"<div>{_time(task.start)} → {_time(task.end)} UTC{seen}</div>"
        return _card("Plan", said, scope, left)
    return _card("Plan", said, _tasks(shown.tasks, shown.kind), left, held)


def _tasks(tasks: tuple[Task, ...], kind: str = "sync") -> str:
    # Scans have no names, and none is more urgent than the other.
    rows = [
        [
            *([(_text(task.feed) or _NONE, _CELL), (task.why, _CELL)] if kind == "sync" else []),
            (f"{_time(task.start)} → {_time(task.end)}", _CELL),
            (_NONE if task.pages is None else f"{task.pages:,}", _RIGHT),
        ]
        for task in tasks[:_TASKS]
    ]
    rest = len(tasks) - len(rows)
    more = f'<div style="opacity:.65">… and {_many(rest, "more chain")}</div>' if rest else ""
    names = ["feed", "why", "range"] if kind == "sync" else ["range"]
    head = [*((name, _CELL) for name in names), ("pages", _RIGHT)]
    return _table(head, rows) + more


def _table(head: Iterable[tuple[str, str]], rows: Iterable[Iterable[tuple[str, str]]]) -> str:
    body = "".join(_row("td", row) for row in rows)
    return f'<table style="{_TABLE}">{_row("th", head, _HEAD)}{body}</table>'


def _end(at: object) -> str:
    return _NONE if at is None else _cell(at)


def _span(length: timedelta) -> str:
    seconds = length.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:g} s"
