"""The HTML elements of the views.

Notebooks have their own style sheets, so each element sets its style. Colours are inherited or
translucent, so that they are readable on dark and on light pages.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline._times import in_zone, to_microsecond, to_second, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

NONE = "\N{EN DASH}"
WIDTH = 200
"""The width of a drawing within a table, in pixels."""

# Colours with contrast to white and to black. Colour-blind readers can distinguish blue and amber.
BLUE, AMBER, RED = "#3d8fd1", "#c98a1b", "#d9534f"
FAINT = "rgba(128,128,128,.16)"

LEFT = "padding:2px 12px 2px 0;text-align:left;border:0;white-space:nowrap;vertical-align:middle"
"""The style of a column of text."""
WRAPPED = LEFT.replace("nowrap", "normal")
"""The style of a column of long text."""
RIGHT = LEFT.replace("text-align:left", "text-align:right")
"""The style of a column of numbers."""
_HEAD = "font-weight:normal;opacity:.65;"
# Labels of pivoted tables are wrapped, so that the columns are not wider than their numbers.
_HEADING = (
    f";{_HEAD}max-width:180px;white-space:normal;overflow-wrap:normal;vertical-align:bottom;"
    "font-family:inherit"
)
_TABLE = (
    "border-collapse:collapse;border:0;margin:8px 0 0 0;font-size:inherit;"
    "font-variant-numeric:tabular-nums;background:transparent;color:inherit"
)
_LONGEST = 60
# At most as wide as the notebook; wider content scrolls in its box.
_FITTING = "max-width:100%;overflow-x:auto"


def card(title: str, facts: Iterable[str], *parts: str) -> str:
    """Return a complete view: a title, facts on the same line, and parts below."""
    rest = "".join(f" {muted(f'· {fact}')}" for fact in facts)
    style = f"font-size:13px;line-height:1.5;color:inherit;overflow-wrap:anywhere;{_FITTING}"
    return f'<div style="{style}"><div><b>{title}</b>{rest}</div>{"".join(parts)}</div>'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values."""
    cells = "".join(
        f'<tr style="background:transparent"><td style="{LEFT};{_HEAD}">{name}</td>'
        f'<td style="{WRAPPED}">{value}</td></tr>'
        for name, value in rows
    )
    return scrolling(f'<table style="{_TABLE}"><tbody>{cells}</tbody></table>')


def html_table(columns: Iterable[tuple[str, str]], rows: Iterable[Iterable[str]]) -> str:
    """Return a table with the name and style of each column, and the contents of each row."""
    names, styles = zip(*columns, strict=True)
    head = _row("th", names, [style + _HEADING for style in styles])
    body = "".join(_row("td", row, styles) for row in rows)
    return scrolling(f'<table style="{_TABLE}">{head}{body}</table>')


def scrolling(content: str) -> str:
    """Return a box that scrolls if its content is wider than the notebook."""
    return f'<div style="{_FITTING}">{content}</div>'


def _row(tag: str, contents: Iterable[str], styles: Iterable[str]) -> str:
    cells = zip(contents, styles, strict=True)
    filled = "".join(f'<{tag} style="{style}">{content}</{tag}>' for content, style in cells)
    return f'<tr style="background:transparent">{filled}</tr>'


def svg(height: int, label: str, content: str, width: int = WIDTH) -> str:
    """Return a drawing."""
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}" style="vertical-align:middle">{content}</svg>'
    )


def axis(start: str, end: str) -> str:
    """Return the ends of the axis above drawings."""
    return (
        f'<div style="width:{WIDTH}px;font-size:10.5px;white-space:nowrap">'
        f'<span style="float:left">{start}</span><span style="float:right">{end}</span></div>'
    )


def muted(content: str, tag: str = "span") -> str:
    """Return content in a fainter colour."""
    return f'<{tag} style="opacity:.65">{content}</{tag}>'


def cell(value: Any) -> str:
    """Write a value of a row: a number, a time or text."""
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return number(value)
    return to_microsecond(value) if hasattr(value, "isoformat") else text(value)


def number(value: float | None) -> str:
    """Write a number with six digits, or an integer exactly; a dash for ``None``."""
    if value is None:
        return NONE
    # A negative zero is written like a zero.
    return f"{value:,}" if isinstance(value, int) else f"{value + 0.0:,.6g}"


def when(at: datetime | None, tz: str = "UTC", missing: str = NONE) -> str:
    """Write a time to the second in a zone."""
    return missing if at is None else to_second(in_zone(at, zone_of(tz)))


def text(value: object, longest: int = _LONGEST) -> str:
    """Truncates external text, escapes unprintable characters, and escapes the result for HTML."""
    if value is None:
        return NONE
    content = str(value)
    content = content if len(content) <= longest else f"{content[: longest - 1]}…"
    return escape(escaped(content))
