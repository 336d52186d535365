"""Renders clients, queries and reads for notebooks: plain HTML and SVG.

There are no scripts, style sheets or external resources; external text is escaped and truncated.
Rendering makes no request.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._counts import counted
from siteline._display.elements import (
    AMBER,
    BLUE,
    FAINT,
    LEFT,
    RED,
    RIGHT,
    WIDTH,
    card,
    cell,
    html_table,
    instant,
    muted,
    pairs,
    svg,
    text,
)
from siteline._display.sparklines import sparklines
from siteline._times import to_microsecond
from siteline.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from siteline.page import Page
    from siteline.scan import ScanBase
    from siteline.table import Table
    from siteline.types import Allowance, Query, ReadReport, StoreReport

__all__: list[str] = []

_ROWS = 5
_DRAWN = 1 << 17
_IDS_AND_TIME = 6

_FINDINGS = {
    "revised": "revised while reading",
    "repeated": "repeated",
    "outside_range": "outside the range",
    "off_grid": "off the grid",
    "minimum_above_maximum": "with minimum above maximum",
    "value_outside_bounds": "with a value outside its bounds",
    "timestamps_truncated": "with timestamps truncated to microseconds",
    "leap_seconds": "at a leap second",
    "numbers_as_text": "numbers sent as text",
    "negative_counts": "with a negative sample count",
    "values_missing": "without one of the four values",
    "cursors_missing": "pages without nextCursor",
}


def client(shown: Any, name: str = "Client") -> str:
    """Show the service, the subject, and what is left of the daily allowance."""
    rows = [
        ("subject", text(shown.subject, 200)),
        ("requests today", _requests_today(shown)),
        ("clocks", _skew(shown.clock_skew)),
    ]
    state = ["closed"] if repr(shown).endswith(", closed>") else []
    return card(name, [text(shown.base_url, 200), *state], pairs(rows))


def allowance(shown: Allowance) -> str:
    """Show how much of the daily allowance is used."""
    return card("Allowance", [], f'<div style="margin-top:4px">{allowance_bar(shown)}</div>')


def query(shown: Query) -> str:
    """Show the parameters of a query."""
    return card("Query", [], _parameters(shown))


def scan(shown: ScanBase, name: str = "Scan") -> str:
    """Show the query, and the table if it was read."""
    read = shown.partial
    if read is None:
        return card(name, ["nothing read yet"], _parameters(shown.query))
    state = "read" if shown.bookmark is None else "read in part"
    return card(name, [state, *_size(read)], _parameters(shown.query), _points(read))


def table(shown: Table) -> str:
    """Show the origin of a table, its first series as lines, and its first rows."""
    frame = _doors.frame(shown)
    if not frame.is_in_memory:
        return _stored(shown)
    facts = _size(shown)
    if shown.kind not in ("points", "changes"):
        return card("Table", [shown.kind, *facts], _provenance(shown), _first_rows(shown))
    notes = [] if frame.selection() else [_notes(shown.report)]
    return card("Table", facts, _provenance(shown), *notes, _points(shown))


def _stored(shown: Table) -> str:
    """Show the first points of a store, and what of the range has been read."""
    selection = _doors.frame(shown).selection()
    what, read, is_whole = selection or ("", "", True)
    first = shown.head(_DRAWN)
    facts = [text(what, 400), counted(len(first), "point") if len(first) < _DRAWN else ""]
    colour = "" if is_whole else f' style="color:{AMBER}"'
    if withdrawn := shown.report.withdrawn:
        facts.append(f"{withdrawn:,} withdrawn")
    lines = f"<div{colour}>{text(read, 400)}</div>"
    return card("Table", [fact for fact in facts if fact], lines, _points(first))


def page(shown: Page) -> str:
    """Show one page in the form of a table."""
    facts = [counted(len(shown), "point"), f"{shown.report.series:,} series"]
    facts += ["the last"] if shown.bookmark is None else []
    title = f"Page {shown.sequence:,}"
    return card(title, facts, _provenance(shown), _notes(shown.report), _points(shown))


def allowance_bar(shown: Allowance) -> str:
    """Draw the used share of the daily allowance, with the counts beside it."""
    used = f"{shown.used:,} used"
    tokens = muted(f"· {counted(shown.token_requests, 'token request')}")
    if shown.limit is None or shown.left is None:
        return f"{used}; no daily allowance is set {tokens}"
    share = min(1.0, (shown.limit - shown.left) / max(1, shown.limit))
    colour = RED if shown.left == 0 else AMBER if share >= 0.9 else BLUE
    length = f"{max(share * WIDTH, 2 if shown.used else 0):.0f}"
    return (
        f"{svg(10, f'{share:.0%} of the daily allowance is used')}"
        f'<rect width="{WIDTH}" height="10" rx="3" fill="{FAINT}"/>'
        f'<rect width="{length}" height="10" rx="3" fill="{colour}"/></svg> '
        f"{used} of {shown.limit:,}, <b>{shown.left:,} left</b> "
        f"{muted(f'until {to_microsecond(shown.resets_at)} UTC')} {tokens}"
    )


def _requests_today(shown: Any) -> str:
    try:
        return allowance_bar(shown.allowance)
    except StoreError as error:
        return f'<span style="color:{RED}">{text(error.args[0], 200)}</span>'


def _skew(skew: float | None) -> str:
    if skew is None:
        return muted("compared at the first reply")
    # The service's Date header has whole seconds.
    if abs(skew) < 1:
        return "agree to the second"
    return f"the service is {abs(skew):,.0f} s {'ahead' if skew > 0 else 'behind'}"


def _parameters(shown: Query) -> str:
    rows = []
    for name, ids in {"site": shown.site, "line": shown.line, **shown.filters}.items():
        if ids:
            rows.append((text(name), ", ".join(map(text, ids))))
    if shown.start is not None or shown.end is not None:
        rows.append(("range", f"{instant(shown.start)} → {instant(shown.end)} UTC"))
    if shown.interval is not None:
        rows.append(("interval", _interval(shown, shown.interval)))
    if shown.page_size is not None:
        rows.append(("page size", f"{shown.page_size:,}"))
    return pairs(rows)


def _interval(shown: Query, interval: timedelta) -> str:
    """Write the interval exactly, and the number of buckets in the range."""
    seconds = int(interval.total_seconds())
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    unit, size = next((unit, size) for unit, size in units if seconds % size == 0)
    width = f"{seconds // size:,} {unit}"
    if shown.start is None or shown.end is None:
        return width
    buckets = -(-(shown.end - shown.start).total_seconds() // seconds)
    note = f"· {counted(int(buckets), 'bucket')} a series"
    return f"{width} {muted(note)}"


def _size(shown: Table) -> list[str]:
    source = _doors.frame(shown).provenance()
    facts = [counted(len(shown), "point" if shown.kind in ("points", "changes") else "row")]
    if not source:
        return facts
    facts.append(f"{len(_doors.frame(shown).series()):,} series")
    facts += [counted(source["pages"], "page")] if "pages" in source else []
    before = source.get("resumed_after_pages", 0)
    return [*facts, f"without {counted(before, 'earlier page')}"] if before else facts


def _provenance(shown: Table) -> str:
    """Write where and when points were read, and the query; nothing for a sandbox's truth."""
    source = _doors.frame(shown).provenance()
    if not source:
        return ""
    if "host" not in source:
        return muted(f"{text(source['store'], 200)} · {text(source['feed'], 200)}", "div")
    read_at = _short(source["read_at"])
    where = f"{text(source['host'], 200)} · read {read_at} UTC"
    stored = "".join(muted(_share(one), "div") for one in source.get("through", ()))
    return muted(f"{where} · {text(source['query'], 300)}", "div") + stored


def _share(share: Mapping[str, Any]) -> str:
    """Write what of a range a store had settled, and what was read from the service."""
    parts = [f"{text(share['store'], 200)} · {text(share['feed'], 200)}"]
    for name, what in (("from_store", "settled there"), ("from_service", "read now")):
        shown = [f"{_short(start)} to {_short(end)}" for start, end in share[name][:3]]
        more = [f"… {len(share[name]) - 3:,} more"] if len(share[name]) > 3 else []
        if shown:
            parts.append(f"{what}: {', '.join(shown + more)}")
    return " · ".join(parts)


def _short(instant: str) -> str:
    """Write an instant of ISO 8601 in UTC as a date and, unless it is midnight, a time."""
    return text(instant.removesuffix("Z").replace("T", " ").removesuffix(" 00:00:00"), 40)


def _notes(report: ReadReport | StoreReport) -> str:
    counts = report.to_dict()
    notes = [f"{counts[name]:,} {what}" for name, what in _FINDINGS.items() if counts.get(name)]
    if unknown := counts.get("unknown_members"):
        more = ", …" if len(unknown) > 5 else ""
        notes.append("unknown members " + ", ".join(map(text, unknown[:5])) + more)
    return f"<div>Notes: {' · '.join(notes)}</div>" if notes else ""


def _points(shown: Table) -> str:
    if not len(shown):
        return muted("no points", "div")
    return sparklines(_doors.frame(shown).preview()) + _first_rows(shown)


def _first_rows(shown: Table) -> str:
    if not len(shown):
        return muted("no rows", "div")
    records = list(islice(_doors.rows(shown), _ROWS))
    styles = [LEFT if n < _IDS_AND_TIME else RIGHT for n in range(len(records[0]))]
    head = zip(map(text, records[0]), styles, strict=True)
    rows = (zip(map(cell, one.values()), styles, strict=True) for one in records)
    rest = len(shown) - len(records)
    more = muted(f"… and {counted(rest, 'more row')}", "div") if rest else ""
    return html_table(head, rows) + more
