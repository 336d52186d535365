"""What notebooks show: plain HTML and SVG, no script, no style sheet, nothing from elsewhere.

Colours are inherited or translucent, so that it reads on dark and on light; every text from outside
is escaped and cut. Nothing in here makes a request.
"""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from siteline.errors import QueryError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from siteline import Allowance, Client, Gathered, Page, Query, Scan, Table

    _Series: TypeAlias = tuple[
        tuple[str | None, ...],
        int,
        float | None,
        float | None,
        list[list[tuple[int, float, float]]],
    ]

__all__: list[str] = []

_ROWS = 5
_LONGEST = 60
_NONE = "\N{EN DASH}"
_WIDTH, _HEIGHT, _STRIP = 200, 26, 3
# Colours that stand out from white and from black alike.
_BLUE, _AMBER, _RED = "#3d8fd1", "#c98a1b", "#d9534f"
_FAINT = "rgba(128,128,128,.16)"
_IDS = ("site", "line", "machine", "device", "tag")

# Notebooks bring their own style for tables: each cell says what it wants.
_CELL = "padding:2px 12px 2px 0;text-align:left;border:0;white-space:nowrap;vertical-align:middle"
_RIGHT = _CELL.replace("text-align:left", "text-align:right")
_HEAD = "font-weight:normal;opacity:.65;"
_TABLE = (
    "border-collapse:collapse;border:0;margin:8px 0 0 0;font-size:inherit;"
    "font-variant-numeric:tabular-nums;background:transparent;color:inherit"
)

_ODDITIES = {
    "revised": "revised while reading",
    "repeated": "came twice",
    "outside_range": "outside the range",
    "off_grid": "off the grid",
    "minimum_above_maximum": "with minimum above maximum",
    "value_outside_bounds": "with a value outside its bounds",
    "timestamps_truncated": "with finer timestamps, cut to microseconds",
    "leap_seconds": "at a leap second",
    "numbers_as_text": "numbers that came as text",
    "negative_counts": "with a negative sample count",
    "cursors_missing": "pages without nextCursor",
}


def client(shown: Client, name: str = "Client") -> str:
    """Show where a client reads, as whom, and what is left for today."""
    rows = [
        ("subject", _text(shown.subject, 200)),
        ("requests today", _counted(shown)),
        ("clocks", _skew(shown.clock_skew)),
    ]
    state = ["closed"] if shown._is_closed() else []
    return _card(name, [_text(shown.base_url, 200), *state], _pairs(rows))


def allowance(shown: Allowance) -> str:
    """Show how much of the daily allowance is used."""
    return _card("Allowance", [], f'<div style="margin-top:4px">{_bar(shown)}</div>')


def query(shown: Query) -> str:
    """Show what is asked."""
    return _card("Query", [], _parameters(shown))


def scan(shown: Scan, name: str = "Scan") -> str:
    """Show what is asked, and what was read of it: nothing, or the whole."""
    table_read = shown._known()
    if table_read is None:
        return _card(name, ["nothing read yet"], _parameters(shown.query))
    return _card(name, ["read", *_size(table_read)], _parameters(shown.query), _points(table_read))


def table(shown: Table) -> str:
    """Show where a table comes from, its first series as lines, and its first points."""
    source = shown._provenance()
    return _card("Table", _size(shown), _origin(source), _notes(shown.report), _points(shown))


def gathered(shown: Gathered) -> str:
    """Show what several scans came to together; where that is no one table, each of them."""
    tables = _many(len(shown), "table")
    try:
        whole = shown.table
    except QueryError:
        said = [tables, "apart"]
        return _card("Gathered", said, "".join(f"<div>{_text(one, 200)}</div>" for one in shown))
    parts = (_origin(whole._provenance()), _notes(whole.report), _points(whole))
    return _card("Gathered", [tables, *_size(whole)], *parts)


def page(shown: Page) -> str:
    """Show one page as a table is shown."""
    source = shown._provenance()
    report = shown.report
    said = [_many(len(shown), "point"), f"{report['series']:,} series"]
    said += ["the last"] if shown.bookmark is None else []
    title = f"Page {source['resumed_after_pages'] + 1:,}"
    return _card(title, said, _origin(source), _notes(report), _points(shown))


def _card(title: str, said: Iterable[str], *parts: str) -> str:
    rest = "".join(f' <span style="opacity:.65">· {one}</span>' for one in said)
    style = "font-size:13px;line-height:1.5;color:inherit;max-width:100%;overflow-x:auto"
    return f'<div style="{style}"><div><b>{title}</b>{rest}</div>{"".join(parts)}</div>'


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f'<tr style="background:transparent"><td style="{_CELL};{_HEAD}">{name}</td>'
        f'<td style="{_CELL}">{value}</td></tr>'
        for name, value in rows
    )
    return f'<table style="{_TABLE}"><tbody>{cells}</tbody></table>'


def _counted(shown: Client) -> str:
    try:
        return _bar(shown.allowance)
    except StoreError as error:
        return f'<span style="color:{_RED}">{_text(error.args[0], 200)}</span>'


def _bar(shown: Allowance) -> str:
    used = f"{shown.used:,} used"
    tokens = f'<span style="opacity:.65">· {_many(shown.token_requests, "token request")}</span>'
    if shown.limit is None or shown.left is None:
        return f"{used}; no daily allowance is set {tokens}"
    share = min(1.0, (shown.limit - shown.left) / max(1, shown.limit))
    colour = _RED if shown.left == 0 else _AMBER if share >= 0.9 else _BLUE
    length = f"{max(share * _WIDTH, 2 if shown.used else 0):.0f}"
    return (
        f"{_svg(10, f'{share:.0%} of the daily allowance is used')}"
        f'<rect width="{_WIDTH}" height="10" rx="3" fill="{_FAINT}"/>'
        f'<rect width="{length}" height="10" rx="3" fill="{colour}"/></svg> '
        f"{used} of {shown.limit:,}, <b>{shown.left:,} left</b> "
        f'<span style="opacity:.65">until {_time(shown.resets_at)} UTC</span> {tokens}'
    )


def _skew(skew: float | None) -> str:
    if skew is None:
        return '<span style="opacity:.65">compared at the first reply</span>'
    # The service names whole seconds.
    if abs(skew) < 1:
        return "agree to the second"
    return f"the service is {abs(skew):,.0f} s {'ahead' if skew > 0 else 'behind'}"


def _parameters(shown: Query) -> str:
    rows = []
    for name, value in (("site", shown.site), ("line", shown.line)):
        if value is not None:
            rows.append((name, _text(value)))
    rows += [(_text(name), ", ".join(map(_text, ids))) for name, ids in shown.filters.items()]
    if shown.start is not None or shown.end is not None:
        rows.append(("range", f"{_time(shown.start)} → {_time(shown.end)} UTC"))
    if shown.interval_seconds is not None:
        rows.append(("interval", _width(shown)))
    if shown.page_size is not None:
        rows.append(("page size", f"{shown.page_size:,}"))
    return _pairs(rows)


def _width(shown: Query) -> str:
    seconds = shown.interval_seconds or 0
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    unit, size = next((unit, size) for unit, size in units if seconds % size == 0)
    width = f"{seconds // size:,} {unit}"
    if shown.start is None or shown.end is None:
        return width
    buckets = -(-(shown.end - shown.start).total_seconds() // max(1, seconds))
    muted = f"{_many(int(buckets), 'bucket')} a series"
    return f'{width} <span style="opacity:.65">· {muted}</span>'


def _size(shown: Table) -> list[str]:
    report = shown.report
    said = [_many(len(shown), "point")]
    if "series" in report:
        said += [f"{report['series']:,} series", _many(report["pages"], "page")]
    if report.get("resumed_after_pages"):
        said.append(f"after {_many(report['resumed_after_pages'], 'page')} that are not in it")
    return said


def _origin(source: Any) -> str:
    if not source:
        return ""
    where = f"{_text(source['host'], 200)} · read {_time(source['read_at'])} UTC"
    query = source["query"]
    asked = query if isinstance(query, str) else "; ".join(query)
    return f'<div style="opacity:.65">{where} · {_text(asked, 300)}</div>'


def _notes(report: dict[str, Any]) -> str:
    noted = [f"{report[name]:,} {what}" for name, what in _ODDITIES.items() if report.get(name)]
    unknown = report.get("unknown_members") or []
    if unknown:
        more = ", …" if len(unknown) > 5 else ""
        noted.append("unknown members " + ", ".join(map(_text, unknown[:5])) + more)
    return f"<div>Noted: {' · '.join(noted)}</div>" if noted else ""


def _points(shown: Table | Page) -> str:
    if not len(shown):
        return '<div style="opacity:.65">no points</div>'
    return _lines(shown._preview()) + _first(shown)


def _lines(preview: dict[str, Any]) -> str:
    series: Sequence[_Series] = preview["series"]
    ids = [line[0] for line in series]
    # What all of them share is said once; the tag always.
    apart = [n for n in range(5) if n == 4 or len({one[n] for one in ids}) > 1]
    shared = " · ".join(
        f"{_IDS[n]} {_text(ids[0][n])}"
        for n in range(5)
        if n not in apart and ids[0][n] is not None
    )
    axis = (
        f'<div style="width:{_WIDTH}px;font-size:10.5px">'
        f'<span style="float:left">{_time(preview["start"])}</span>'
        f'<span style="float:right">{_time(preview["end"])}</span></div>'
    )
    names = [(_IDS[n], _CELL) for n in apart]
    numbers = [("lowest", _RIGHT), ("highest", _RIGHT), ("points", _RIGHT)]
    head = _row("th", [*names, (axis, _CELL), *numbers], _HEAD)
    rows = [
        _row(
            "td",
            [
                *((_text(line_ids[n]), _CELL) for n in apart),
                (_line(stretches), _CELL),
                (_number(low), _RIGHT),
                (_number(high), _RIGHT),
                (f"{points:,}", _RIGHT),
            ],
        )
        for line_ids, points, low, high, stretches in series
    ]
    more = '<div style="opacity:.65">… and more series</div>' if preview["more"] else ""
    caption = f'<div style="margin-top:8px">{shared}</div>' if shared else ""
    return f'{caption}<table style="{_TABLE}">{head}{"".join(rows)}</table>{more}'


def _line(stretches: list[list[tuple[int, float, float]]]) -> str:
    ground = _HEIGHT - _STRIP
    line, strip = [], []
    for stretch in stretches:
        ends = [
            (x, f"{(1 - share) * (ground - 4) + 2:.1f}")
            for x, low, high in stretch
            for share in ((low,) if low == high else (low, high))
        ]
        # A point alone is drawn as a dot, by its round ends.
        ends += [ends[0]] if len(ends) == 1 else []
        line.append("M" + "L".join(f"{x + 0.5} {y}" for x, y in ends))
        first, last = stretch[0][0], stretch[-1][0]
        strip.append(f"M{first} {_HEIGHT - 1}H{max(last, first) + 1}")
    return (
        f"{_svg(_HEIGHT, 'values over time; below them, where there are points')}"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="2" fill="{_FAINT}"/>'
        f'<path d="{"".join(line)}" fill="none" stroke="{_BLUE}" stroke-width="1.4" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
        f'<path d="{"".join(strip)}" fill="none" stroke="{_BLUE}" stroke-opacity=".5" '
        'stroke-width="2"/></svg>'
    )


def _first(shown: Table | Page) -> str:
    records = list(islice(shown.records(), _ROWS))
    ids = 5
    styles = [_CELL if n <= ids else _RIGHT for n in range(len(records[0]))]
    head = _row("th", zip(map(_text, records[0]), styles, strict=True), _HEAD)
    rows = (_row("td", zip(map(_cell, one.values()), styles, strict=True)) for one in records)
    rest = len(shown) - len(records)
    more = f'<div style="opacity:.65">… and {_many(rest, "more point")}</div>' if rest else ""
    return f'<table style="{_TABLE}">{head}{"".join(rows)}</table>{more}'


def _row(tag: str, cells: Iterable[tuple[str, str]], extra: str = "") -> str:
    filled = "".join(f'<{tag} style="{style};{extra}">{cell}</{tag}>' for cell, style in cells)
    return f'<tr style="background:transparent">{filled}</tr>'


def _svg(height: int, label: str) -> str:
    return (
        f'<svg width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{label}" style="vertical-align:middle">'
    )


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return _number(value)
    return _time(value) if hasattr(value, "isoformat") else _text(value)


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:,.6g}"


def _time(at: datetime | None) -> str:
    if at is None:
        return "…"
    text = at.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")
    return f"{text}.{at.microsecond:06d}".rstrip("0") if at.microsecond else text


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _text(value: object, longest: int = _LONGEST) -> str:
    """Cut, with what has no shape of its own spelt out, and escaped."""
    if value is None:
        return _NONE
    text = str(value)
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    spelt = (one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
    return escape("".join(spelt))
