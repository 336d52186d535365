"""Renders feeds, stores, syncs and diagnoses for notebooks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._counts import counted
from siteline._display import calendar as cal
from siteline._display import elements as el
from siteline._display.html import allowance_bar, parameters
from siteline._times import duration, to_minute
from siteline.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from siteline import Feed, types
    from siteline.store import Store

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
_COLUMN, _CELL_WIDTH, _CELL_HEIGHT = 16, 14, 13
_THROUGH = ("settled_through", "read_through", "newest")


def feed(shown: Feed) -> str:
    """Show the query of a feed, and its durations."""
    names = ("settle_lag", "overlap", "lateness", "window")
    rows = [(name.replace("_", " "), duration(getattr(shown, name))) for name in names]
    return el.card("Feed", [el.text(shown.name)], el.pairs([*parameters(shown), *rows]))


def store(shown: Store) -> str:
    """Show how far the feeds of a store have been read."""
    try:
        feeds = _doors.overview(shown)
    except ClosedError:
        return el.card("Store", [el.text(shown.path, 200), "closed"])
    facts = [el.text(shown.path, 200), counted(len(feeds), "feed")]
    facts += [el.text(shown.tz)] if feeds else []
    rows = [
        {
            "feed": _named(one["feed"].name, [one[name] for name in _THROUGH], shown.tz),
            "query": _parameters(one["feed"]),
            "sequence": one["sequence"],
        }
        for one in feeds
    ]
    return el.card("Store", facts, el.html_table(rows))


def _named(feed: str, times: Iterable[datetime | None], tz: str = "UTC") -> str:
    """Write the name of a feed, and below it how far it is settled and read."""
    return f"<b>{el.text(feed)}</b>{el.muted(cal.summary(times, tz), 'div')}"


def _parameters(feed: Feed) -> str:
    given = parameters(feed)
    return " · ".join(f"{name} {value}" for name, value in given if name != "range")


def coverage(shown: types.Coverage) -> str:
    """Show the calendar of a coverage: a filled box has points, a hollow one has none."""
    facts = [el.text(shown.feed.name), f"at {el.when(shown.now)} UTC", cal.summary_of(shown)]
    rows = list(cal.calendar_rows(shown).items())
    earlier, width = len(rows) - _CALENDAR_ROWS, (31 if cal.has_days(shown) else 24) * _COLUMN
    more = f"… {earlier} earlier" if earlier > 0 else ""
    marks = [1, 5, 10, 15, 20, 25, 30, 32] if cal.has_days(shown) else [0, 6, 12, 18, 24]
    axis = "".join(
        f'<span style="display:inline-block;width:{(end - start) * _COLUMN}px">'
        f"{start if cal.has_days(shown) else f'{start:02}:00'}</span>"
        for start, end in pairwise(marks)
    )
    drawn = []
    for label, cells in rows[-_CALENDAR_ROWS:]:
        boxes = (_window(shown, at, piece) for at, pieces in cells.items() for piece in pieces)
        svg = el.svg(_CELL_HEIGHT, label, "".join(boxes), width)
        drawn.append({more: el.muted(label), axis: svg})
    lines = "".join(f"<div><b>{el.text(line, 200)}</b></div>" for line in cal.skipped(shown))
    return el.card("Coverage", facts, el.html_table(drawn), _legend(shown), lines)


def _window(shown: types.Coverage, at: datetime, piece: cal.Piece) -> str:
    start, end, window = piece
    read = "never read" if window.read_at is None else f"read {to_minute(window.read_at)}"
    empty = ", no points" if window.empty else ""
    known = "" if window.state == "forgotten" else f", {read}{empty}"
    title = f"{to_minute(window.start)} to {to_minute(window.end)}: {window.state}{known}"
    pixel = (cal.DAY if cal.has_days(shown) else cal.HOUR) / _CELL_WIDTH
    left = cal.column(shown, at) * _COLUMN + (start - at) / pixel
    hollow = bool(window.empty) or window.state == "forgotten"
    return _box(left, max((end - start) / pixel, 1.0), window.state, title, hollow=hollow)


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


def _legend(shown: types.Coverage) -> str:
    parts = []
    for name, span in cal.spans(shown).items():
        state, hollow = ("settled", True) if name == cal.EMPTY else (name, name == "forgotten")
        box = el.svg(_CELL_HEIGHT, name, _box(0, 13, state, name, hollow=hollow), 13)
        label = f"{box} {name} {duration(span)}"
        parts.append(f'<span style="white-space:nowrap;margin-right:14px">{label}</span>')
    return f'<div style="margin-top:6px">{" ".join(parts)}</div>'


def lateness(shown: types.Lateness) -> str:
    """Show the quantiles and the conclusion."""
    kinds = {"points": shown.points, "revisions": shown.revisions}
    rows = [{"": kind, **_quantiles(one)} for kind, one in kinds.items()]
    table = el.html_table(rows, dict.fromkeys(_quantiles(shown.points), el.RIGHT))
    facts = [el.text(shown.feed.name), duration(shown.lateness)]
    return el.card("Lateness", facts, f"<div>{el.text(shown.verdict, 200)}</div>", table)


def _quantiles(one: types.Delays) -> dict[str, Any]:
    delays = {
        "half": one.median, "90 %": one.p90, "95 %": one.p95, "99 %": one.p99, "all": one.longest
    }  # fmt: skip
    texts = {name: at if at is None else duration(at) for name, at in delays.items()}
    return {"count": one.count, "late": one.late, **texts}


def report(shown: types.SyncReport) -> str:
    """Show the counts of each feed, and the tasks that are left."""
    facts = [
        "complete" if shown.complete else "<b>incomplete</b>",
        f"{el.when(shown.now)} UTC",
        counted(shown.pages, "page"),
        counted(shown.requests, "request"),
    ]
    numbers = ("pages", "inserted", "revised", "unchanged", "withdrawn")
    rows = [
        {
            "feed": _named(one.name, [getattr(one, name) for name in _THROUGH]),
            **{name: getattr(one, name) for name in numbers},
        }
        for one in shown.feeds
    ]
    aside = [f"{one.name}: {range}" for one in shown.feeds for range in one.skipped]
    parts = [el.html_table(rows), _spaced(allowance_bar(shown.allowance))]
    parts += [f"<div><b>{el.text(line, 200)}</b></div>" for line in aside[:5]]
    if not shown.complete:
        since = "" if shown.resumes_at is None else f", from {el.when(shown.resumes_at)} UTC on"
        since = ", as max_pages= ended the sync" if shown.ended_by == "max_pages" else since
        parts += [_spaced(f"Still to do{since}:"), _tasks(shown.tasks)]
    return el.card("Sync", facts, *parts)


def plan(shown: types.Plan) -> str:
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
    reserve = f"<div>{counted(shown.reserve, 'page')} reserved for due windows</div>"
    tasks = _tasks(shown.tasks, shown.kind)
    return el.card("Plan", facts, tasks, left, reserve if shown.reserve else "")


def _spaced(content: str) -> str:
    return f'<div style="margin-top:8px">{content}</div>'


def _tasks(tasks: Sequence[types.Task], kind: str = "sync") -> str:
    rows: list[dict[str, Any]] = []
    for task in tasks[:_TASKS]:
        # Tasks of scans have no feed and no reason.
        own = {"feed": el.text(task.feed), "why": _doors.WHY[task.why]} if kind == "sync" else {}
        rows.append({**own, "range": _range(task), "pages": task.pages})
    return el.html_table(rows) + el.more(len(tasks) - len(rows), "chain")


def _range(task: types.Task) -> str:
    return f"{el.when(task.start)} → {el.when(task.end)}"


def diagnosis(shown: types.Diagnosis) -> str:
    """Show the status, the finding and the advice of each check."""
    first = shown.first_fail
    state = "nothing failed" if first is None else f"the first failure is {el.text(first.id)}"
    facts = [counted(len(shown.checks), "check"), state]
    top, wrapped = (style.replace("middle", "top") for style in (el.LEFT, el.WRAPPED))
    styles = {"": top, "check": top, "seen": wrapped}
    table = el.html_table(map(_check, shown.checks), styles)
    sends = el.muted(f"sends {el.text(shown.sends, 200)}", "div")
    return el.card("Diagnosis", facts, sends, table)


def _check(check: types.Check) -> dict[str, str]:
    status, seen = el.text(check.status), _lines(check.seen)
    if check.status in ("fail", "warn"):
        status = f"<b>{status}</b>"
    elif check.status == "skipped":
        status, seen = el.muted(status), el.muted(seen, "div")
    if check.do:
        seen += f'<div style="padding-left:12px">{_lines(check.do)}</div>'
    is_named = check.title.casefold() != check.id
    title = el.muted(el.text(check.title), "div") if is_named else ""
    return {"": status, "check": f"<div>{el.text(check.id)}</div>{title}", "seen": seen}


def _lines(content: str) -> str:
    return "".join(f"<div>{el.text(line, 500)}</div>" for line in content.splitlines())
