"""Renders feeds, stores and syncs for notebooks: plain HTML and SVG, as in ``html``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline import _doors
from siteline._counts import counted
from siteline._display import coverage_svg
from siteline._display.calendar import skipped
from siteline._display.elements import (
    LEFT,
    NONE,
    RIGHT,
    card,
    html_table,
    muted,
    pairs,
    scrolling,
    text,
)
from siteline._display.html import allowance_bar
from siteline._times import duration, to_microsecond
from siteline.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from siteline import Feed
    from siteline.store import Store
    from siteline.types import Coverage, Delays, Lateness, Plan, SyncReport, Task

__all__: list[str] = []

_ROWS = 5
_TASKS = 12


def feed(shown: Feed) -> str:
    """Show the query of a feed, and its durations."""
    rows = [
        ("query", text(_doors.asks(shown), 300)),
        ("start", f"{to_microsecond(shown.start)} UTC"),
    ]
    names = ("settle_lag", "overlap", "lateness", "window")
    rows += [(name.replace("_", " "), duration(getattr(shown, name))) for name in names]
    return card("Feed", [text(shown.name)], pairs(rows))


def store(shown: Store) -> str:
    """Show the path of a store, and how far its feeds have been read."""
    try:
        feeds = _doors.overview(shown)
    except ClosedError:
        return card("Store", [text(shown.path, 200), "closed"])
    facts = [text(shown.path, 200), counted(len(feeds), "feed")]
    if not feeds:
        return card("Store", facts)
    rows = [
        [
            (f"<b>{text(one['feed'].name)}</b>", LEFT),
            (text(_doors.asks(one["feed"]), 100), LEFT),
            (_through(one["settled_through"]), LEFT),
            (_through(one["read_through"]), LEFT),
            (_through(one["newest"]), LEFT),
            (f"{one['sequence']:,}", RIGHT),
        ]
        for one in feeds
    ]
    names = ["feed", "query", "settled through", "read through", "newest"]
    head = [*((name, LEFT) for name in names), ("sequence", RIGHT)]
    return card("Store", facts, html_table(head, rows))


def coverage(shown: Coverage) -> str:
    """Show the calendar of a coverage."""
    facts = [text(shown.feed.name), f"at {to_microsecond(shown.now)} UTC"]
    drawing = scrolling(coverage_svg.svg(shown))
    lines = "".join(f"<div><b>{text(line, 200)}</b></div>" for line in skipped(shown))
    return card("Coverage", facts, f'<div style="margin-top:6px">{drawing}</div>', lines)


def lateness(shown: Lateness) -> str:
    """Show the quantiles and the conclusion."""
    names = ["", "count", "late", "half", "90 %", "95 %", "99 %", "all"]
    head = [(name, RIGHT if name else LEFT) for name in names]
    rows = [
        [(name, LEFT), *_quantiles(one)]
        for name, one in (("points", shown.points), ("revisions", shown.revisions))
    ]
    facts = [text(shown.feed.name), duration(shown.lateness)]
    return card("Lateness", facts, f"<div>{text(shown.verdict, 200)}</div>", html_table(head, rows))


def _quantiles(one: Delays) -> list[tuple[str, str]]:
    counts = [(f"{one.count:,}", RIGHT), (f"{one.late:,}", RIGHT)]
    delays = (one.median, one.p90, one.p95, one.p99, one.longest)
    return [*counts, *((NONE if delay is None else duration(delay), RIGHT) for delay in delays)]


def report(shown: SyncReport) -> str:
    """Show what a sync did for each feed, and what is left to read."""
    facts = [
        "complete" if shown.complete else "<b>incomplete</b>",
        f"{to_microsecond(shown.now)} UTC",
        counted(shown.pages, "page"),
        counted(shown.requests, "request"),
    ]
    numbers = ("pages", "inserted", "revised", "unchanged", "withdrawn")
    rows = [
        [
            (f"<b>{text(one.name)}</b>", LEFT),
            *((f"{getattr(one, name):,}", RIGHT) for name in numbers),
            (_through(one.settled_through), LEFT),
            (_through(one.read_through), LEFT),
            (_through(one.newest), LEFT),
        ]
        for one in shown.feeds
    ]
    head = [("feed", LEFT), *((name, RIGHT) for name in numbers)]
    head += [("settled through", LEFT), ("read through", LEFT), ("newest", LEFT)]
    left = f'<div style="margin-top:8px">{allowance_bar(shown.allowance)}</div>'
    aside = [f"{one.name}: {range}" for one in shown.feeds for range in one.skipped]
    left += "".join(f"<div><b>{text(line, 200)}</b></div>" for line in aside[:5])
    if shown.complete:
        return card("Sync", facts, html_table(head, rows), left)
    when = "" if shown.resumes_at is None else f", from {to_microsecond(shown.resumes_at)} UTC on"
    when = ", as max_pages= ended the sync" if shown.ended_by == "max_pages" else when
    rest = f'<div style="margin-top:8px">Still to do{when}:</div>{_tasks(shown.tasks)}'
    return card("Sync", facts, html_table(head, rows), left, rest)


def plan(shown: Plan) -> str:
    """Show what would be read, and whether the allowance is enough."""
    aside = [f"{counted(shown.skipped, 'range')} skipped"] if shown.skipped else []
    if not shown.tasks:
        return card("Plan", ["nothing to read", *aside, f"{to_microsecond(shown.now)} UTC"])
    pages = "pages unknown" if shown.pages is None else counted(shown.pages, "page")
    fits = {True: "within the allowance", False: "<b>over the allowance</b>", None: ""}[shown.fits]
    facts = [counted(len(shown.tasks), "chain"), pages, *([fits] if fits else []), *aside]
    left = f'<div style="margin-top:8px">{allowance_bar(shown.allowance)}</div>'
    if shown.kind == "scan" and len(shown.tasks) == 1:
        task = shown.tasks[0]
        source = f", estimated from the feed {text(task.feed)}" if task.feed else ""
        return card("Plan", facts, f"<div>{_range(task)} UTC{source}</div>", left)
    reserve = ""
    if shown.reserve:
        reserve = f"<div>{counted(shown.reserve, 'page')} reserved for due windows</div>"
    return card("Plan", facts, _tasks(shown.tasks, shown.kind), left, reserve)


def _tasks(tasks: Sequence[Task], kind: str = "sync") -> str:
    # Tasks of scans have neither a feed nor a reason.
    rows = [
        [
            *([(text(task.feed) or NONE, LEFT), (task.why, LEFT)] if kind == "sync" else []),
            (_range(task), LEFT),
            (NONE if task.pages is None else f"{task.pages:,}", RIGHT),
        ]
        for task in tasks[:_TASKS]
    ]
    rest = len(tasks) - len(rows)
    more = muted(f"… and {counted(rest, 'more chain')}", "div") if rest else ""
    names = ["feed", "why", "range"] if kind == "sync" else ["range"]
    head = [*((name, LEFT) for name in names), ("pages", RIGHT)]
    return html_table(head, rows) + more


def _range(task: Task) -> str:
    return f"{to_microsecond(task.start)} → {to_microsecond(task.end)}"


def _through(at: datetime | None) -> str:
    return NONE if at is None else to_microsecond(at)
