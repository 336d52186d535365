"""Renders clients, queries, reads and tables for notebooks: plain HTML and SVG, no scripts.

External text is escaped and truncated. Rendering makes no request.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._counts import counted
from siteline._display import elements as el
from siteline._display import series_html
from siteline._times import duration, from_microseconds, to_microsecond
from siteline.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteline import Feed
    from siteline.page import Page
    from siteline.scan import ScanBase
    from siteline.table import Table
    from siteline.types import Allowance, Query

_ROWS = 5
_DRAWN = 1 << 17
_IDS = ("label", "site_id", "line_id", "machine_id", "device_id", "tag_guid")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
# The range and the interval are written once, in the zone of the table.
_RANGE = re.compile(r"\b(from|to)=\d{4}-[-\dT:.]+Z ?|\b(aggregationIntervalSeconds|pageSize)=\d+ ?")

# The counts of a report that are no part of a usual read.
_FINDINGS = (
    *("revised", "repeated", "outside_range", "off_grid", "minimum_above_maximum"),
    *("value_outside_bounds", "timestamps_truncated", "leap_seconds", "numbers_as_text"),
    *("negative_counts", "values_missing", "cursors_missing"),
)


def client(shown: Any) -> str:
    """Show the service, the subject and the daily allowance."""
    try:
        left = allowance_bar(shown.allowance, shown.tz)
    except StoreError as error:
        left = f'<span style="color:{el.RED}">{el.text(error.args[0], 200)}</span>'
    subject, skew = el.text(shown.subject, 200), _skew(shown.clock_skew)
    rows = [("subject", subject), ("requests today", left), ("clocks", skew)]
    state = ["closed"] if repr(shown).endswith(", closed>") else []
    return el.card(type(shown).__name__, [el.text(shown.base_url, 200), *state], el.pairs(rows))


def allowance(shown: Allowance) -> str:
    """Show the daily allowance."""
    return el.card("Allowance", [], f'<div style="margin-top:4px">{allowance_bar(shown)}</div>')


def query(shown: Query) -> str:
    """Show the parameters of a query."""
    return el.card("Query", [], el.pairs(parameters(shown)))


def scan(shown: ScanBase) -> str:
    """Show the query, and the table if it was read."""
    name = type(shown).__name__
    read, given = shown.partial, el.pairs(parameters(shown.query, _doors.zone(shown)))
    if read is None:
        return el.card(name, ["nothing read yet"], given)
    state = "read" if shown.bookmark is None else "read in part"
    return el.card(name, [state, *_size(read)], given, _content(read))


def table(shown: Table) -> str:
    """Show the origin of a table, its first series as drawings, and its first rows."""
    if shown.kind == "series":
        return series_html.series(shown)
    frame = _doors.handle(shown)
    kind = [] if shown.kind == "points" else [shown.kind]
    if frame.is_in_memory:
        notes = "" if frame.selection() else _notes(shown)
        return el.card("Table", [*kind, *_size(shown)], _provenance(shown), notes, _content(shown))
    # Only the first points of a store are read.
    what, read, is_whole = frame.selection() or ("", "", True)
    first = shown.head(_DRAWN)
    facts = [*kind, counted(len(first), "point") if len(first) < _DRAWN else ""]
    facts += [] if frame.series() else [_doors.series_count(shown)]
    facts += [f"{shown.report.withdrawn:,} withdrawn"] if shown.report.withdrawn else []
    colour = "" if is_whole else f' style="color:{el.AMBER}"'
    zone = _doors.zone(shown)
    texts = (shown.report.store, _local(what, zone), zone)
    source = " · ".join(el.text(one, 400) for one in texts)
    lines = f"{el.muted(source, 'div')}<div{colour}>{el.text(_local(read, zone), 400)}</div>"
    return el.card("Table", filter(None, facts), lines, _content(first))


def page(shown: Page) -> str:
    """Show one page in the form of a table."""
    facts = [counted(len(shown), "point"), f"{shown.report.series:,} series"]
    facts += ["the last"] if shown.bookmark is None else []
    return el.card(
        f"Page {shown.sequence:,}", facts, _provenance(shown), _notes(shown), _content(shown)
    )


def allowance_bar(shown: Allowance, tz: str = "UTC") -> str:
    """Draw the used share of the daily allowance, next to its counts."""
    used = f"{shown.used:,} used"
    tokens = el.muted(f"· {counted(shown.token_requests, 'token request')}")
    if shown.limit is None or shown.left is None:
        return f"{used}; no daily allowance is set {tokens}"
    share = min(1.0, (shown.limit - shown.left) / max(1, shown.limit))
    colour = el.RED if shown.left == 0 else el.AMBER if share >= 0.9 else el.BLUE
    length = f"{max(share * el.WIDTH, 2 if shown.used else 0):.0f}"
    rects = "".join(
        f'<rect width="{width}" height="10" rx="3" fill="{fill}"/>'
        for width, fill in ((el.WIDTH, el.FAINT), (length, colour))
    )
    bar = el.svg(10, f"{share:.0%} of the daily allowance is used", rects)
    until = el.muted(f"until {el.when(shown.resets_at, tz)} {el.text(tz)}")
    return f"{bar} {used} of {shown.limit:,}, <b>{shown.left:,} left</b> {until} {tokens}"


def _skew(skew: float | None) -> str:
    if skew is None:
        return el.muted("compared at the first reply")
    # The service's Date header has whole seconds.
    if abs(skew) < 1:
        return "agree to the second"
    return f"the service is {abs(skew):,.0f} s {'ahead' if skew > 0 else 'behind'}"


def parameters(shown: Query | Feed, tz: str = "UTC") -> list[tuple[str, str]]:
    """Return the parameters of a query or a feed that are given."""
    levels = ("site", "line", "machine", "device", "tag")
    rows = [*((name, getattr(shown, name, ())) for name in levels), *shown.filters.items()]
    listed = [
        (el.text(name), ", ".join(map(el.text, (given,) if isinstance(given, str) else given)))
        for name, given in rows if given
    ]  # fmt: skip
    if series := getattr(shown, "series", ()):
        listed.append(("series", f"{len(series):,}"))
    end = getattr(shown, "end", None)
    if shown.start is not None or end is not None:
        times = f"{el.when(shown.start, tz, '…')} → {el.when(end, tz, '…')} {el.text(tz)}"
        listed.append(("range", times))
    if shown.interval is not None:
        width = duration(shown.interval)
        if shown.start is not None and end is not None:
            buckets = counted(-(-(end - shown.start) // shown.interval), "bucket")
            width += f" {el.muted(f'· {buckets} a series')}"
        listed.append(("interval", width))
    if shown.page_size is not None:
        listed.append(("page size", f"{shown.page_size:,}"))
    return listed


def _size(shown: Table) -> list[str]:
    source = _doors.handle(shown).provenance()
    facts = [counted(len(shown), "point" if shown.kind in ("points", "changes") else "row")]
    if not source:
        return facts
    every = _doors.handle(shown).every
    facts += [_doors.series_count(shown), *([f"{el.text(every)} each"] if every else [])]
    facts += [counted(source["pages"], "page")] if "pages" in source else []
    before = source.get("resumed_after_pages", 0)
    return [*facts, f"without {counted(before, 'earlier page')}"] if before else facts


def _provenance(shown: Table) -> str:
    """Write the origin of points in one line, and the shares of stores in another."""
    source, zone = _doors.handle(shown).provenance(), _doors.zone(shown)
    if not source:  # the expected points of a sandbox
        return ""
    parts = [source.get("store"), source.get("feed"), zone]
    if "host" in source:
        start, end, width = _doors.handle(shown).grid()
        if start is None and end is None:  # a page has only the range of its query
            parts = [source["host"], _local(source["query"], zone), zone]
        else:
            asked = _RANGE.sub("", source["query"]).strip()
            times = (at if at is None else from_microseconds(at) for at in (start, end))
            bounds = (el.when(at, zone, "…") for at in times)
            parts = [source["host"], asked, " → ".join(bounds), zone]
            if width is not None and _doors.handle(shown).every is None:
                parts.append(f"every {duration(timedelta(microseconds=width))}")
        parts.append(f"read {_local(source['read_at'], zone)}")
    line = " · ".join(el.text(part, 300) for part in parts if part)
    through = "".join(el.muted(_share(one, zone), "div") for one in source.get("through", ()))
    return el.muted(line, "div") + through


def _share(share: Mapping[str, Any], zone: str) -> str:
    """Write the settled ranges from a store, and the ranges read from the service."""
    parts = [f"{el.text(share['store'], 200)} · {el.text(share['feed'], 200)}"]
    for name, what in (("from_store", "settled there"), ("from_service", "read now")):
        shown = [f"{_local(start, zone)} to {_local(end, zone)}" for start, end in share[name][:3]]
        more = [f"… {len(share[name]) - 3:,} more"] if len(share[name]) > 3 else []
        if shown:
            parts.append(f"{what}: {el.text(', '.join(shown + more), 300)}")
    return " · ".join(parts)


def _local(written: str, zone: str) -> str:
    """Write the instants in a text of the core in a zone."""
    return _INSTANT.sub(lambda found: el.when(datetime.fromisoformat(found[0]), zone), written)


def _notes(shown: Table) -> str:
    counts = shown.report.to_dict()
    found = {name.replace("_", " "): counts[name] for name in _FINDINGS if counts.get(name)}
    notes = [f"{what}: {count:,}" for what, count in found.items()]
    if unknown := counts.get("unknown_members"):
        more = ", …" if len(unknown) > 5 else ""
        notes.append("unknown members " + ", ".join(map(el.text, unknown[:5])) + more)
    if reason := counts.get("names"):
        notes.append(f"no names: {el.text(reason, 200)}")
    return f"<div>Notes: {' · '.join(notes)}</div>" if notes else ""


def _content(shown: Table) -> str:
    """Draw the series of a table, and write its first rows."""
    try:
        records = list(islice(_doors.rows(shown), _ROWS))
    except OverflowError:
        return el.muted("no preview: Python has no time before the year 1", "div")
    if not records:
        return el.muted("no points" if shown.kind in ("points", "changes") else "no rows", "div")
    drawn = series_html.shares(shown) if shown.kind == "completeness" else ""
    if shown.kind in ("points", "changes", "resampled"):
        drawn = series_html.sparklines(shown)
    # Ids that the first rows share are written once, above them.
    ids = [name for name in _IDS if name in records[0]]
    once = [name for name in ids if all(one[name] == records[0][name] for one in records)]
    shared = " · ".join(f"{name} {el.text(records[0][name], 120)}" for name in once)
    rows: list[dict[str, Any]] = []
    above: dict[str, str] = {}
    for one in records:
        own = _named({name: one[name] for name in ids if name not in once})
        cells = {name: _cell(value) for name, value in one.items() if name not in _IDS}
        rows.append({**(dict.fromkeys(own, "") if own == above else own), **cells})
        above = own
    caption = f'<div style="margin-top:8px">{el.muted(shared)}</div>' if shared else ""
    times = {name: el.LEFT for name, value in records[0].items() if isinstance(value, datetime)}
    table = el.html_table(rows, times, lambda name: el.text(name, 200))
    return drawn + caption + table + el.more(len(shown) - len(records), "row")


def _named(ids: dict[str, Any]) -> dict[str, str]:
    """Write ids, and below a label the others."""
    texts = {name: el.text(value) for name, value in ids.items()}
    if "label" not in texts:
        return texts
    label = texts.pop("label")
    others = " · ".join(f"{name} {value}" for name, value in texts.items())
    return {"label": label + (el.muted(others, "div") if others else "")}


def _cell(value: Any) -> Any:
    """Write a time or other text; numbers stay."""
    if isinstance(value, int | float | None) and not isinstance(value, bool):
        return value
    return to_microsecond(value) if isinstance(value, datetime) else el.text(value)
