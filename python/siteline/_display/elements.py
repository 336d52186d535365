"""The HTML elements of the views.

Each element sets its style, because notebooks have style sheets. Colours are inherited or
translucent, so that they are readable on dark and light pages.
"""

from __future__ import annotations

from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from siteline._counts import counted
from siteline._escape import escaped
from siteline._times import in_zone, to_second, zone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

NONE = "\N{EN DASH}"
WIDTH = 200  # of drawings, in pixels

# Readable on white and black. Colour-blind readers can distinguish blue and amber.
BLUE, AMBER, RED = "#3d8fd1", "#c98a1b", "#d9534f"
FAINT = "rgba(128,128,128,.16)"

# The styles of columns: text, long text, and numbers.
LEFT = "padding:2px 8px 2px 0;text-align:left;border:0;white-space:nowrap;vertical-align:middle"
WRAPPED = LEFT.replace("nowrap", "normal")
RIGHT = LEFT.replace("text-align:left", "text-align:right")
# In a narrow notebook text wraps between words before the table scrolls.
_TEXT = f"{WRAPPED};overflow-wrap:normal"
_HEAD = "font-weight:normal;opacity:.65;"
# Wrapped, so that columns of pivoted tables are not wider than their numbers.
_HEADING = (
    f";{_HEAD}max-width:180px;white-space:normal;overflow-wrap:normal;vertical-align:bottom;"
    "font-family:inherit;font-size:12px"
)
_TABLE = (
    "border-collapse:collapse;border:0;margin:8px 0 0 0;font-size:inherit;"
    "font-variant-numeric:tabular-nums;background:transparent;color:inherit"
)
# Content that is wider than the notebook scrolls.
_FITTING = "max-width:100%;overflow-x:auto"


def card(title: str, facts: Iterable[str], *parts: str) -> str:
    """Return a complete view: a title, facts on the same line, and parts below."""
    rest = "".join(f" {muted(f'· {fact}')}" for fact in facts)
    style = f"font-size:13px;line-height:1.5;color:inherit;overflow-wrap:anywhere;{_FITTING}"
    return f'<div style="{style}"><div><b>{title}</b>{rest}</div>{"".join(parts)}</div>'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values."""
    styles = (f"{LEFT};{_HEAD}", WRAPPED)
    return _table("".join(_row("td", row, styles) for row in rows))


def html_table(
    rows: Iterable[Mapping[str, Any]],
    styles: Mapping[str, str] = MappingProxyType({}),
    head: Callable[[str], str] = str,
) -> str:
    """Return an HTML table. All rows have the same names; without rows it is empty text.

    Text is HTML. Numbers are right-aligned. ``head`` makes the HTML of a name.
    """
    rows = list(rows)
    if not rows:
        return ""
    usual = ((name, _TEXT if isinstance(one, str) else RIGHT) for name, one in rows[0].items())
    looks = [styles.get(name, look) for name, look in usual]
    cells = [[one if isinstance(one, str) else number(one) for one in row.values()] for row in rows]
    top = _row("th", map(head, rows[0]), [style + _HEADING for style in looks])
    return _table(top + "".join(_row("td", row, looks) for row in cells))


def _table(content: str) -> str:
    return f'<div style="{_FITTING}"><table style="{_TABLE}">{content}</table></div>'


def _row(tag: str, contents: Iterable[str], styles: Iterable[str]) -> str:
    cells = zip(contents, styles, strict=True)
    filled = "".join(f'<{tag} style="{style}">{content}</{tag}>' for content, style in cells)
    return f'<tr style="background:transparent">{filled}</tr>'


def more(count: int, noun: str) -> str:
    """Return a line that counts what is not shown."""
    return muted(f"… and {counted(count, f'more {noun}')}", "div") if count > 0 else ""


def svg(height: int, label: str, content: str, width: int = WIDTH) -> str:
    """Return a drawing."""
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}" style="vertical-align:middle">{content}</svg>'
    )


def muted(content: str, tag: str = "span") -> str:
    """Return content in a fainter colour."""
    return f'<{tag} style="opacity:.65">{content}</{tag}>'


def number(value: float | None) -> str:
    """Write a number with six digits, or an integer exactly; a dash for ``None``."""
    if value is None:
        return NONE
    # The sum turns a negative zero into zero.
    return f"{value:,}" if isinstance(value, int) else f"{value + 0.0:,.6g}"


def when(at: datetime | None, tz: str = "UTC", missing: str = NONE) -> str:
    """Write a time to the second in a zone."""
    return missing if at is None else to_second(in_zone(at, zone_of(tz)))


def text(value: object, longest: int = 60) -> str:
    """Truncate external text, and escape unprintable characters and HTML."""
    if value is None:
        return NONE
    content = str(value)
    content = content if len(content) <= longest else f"{content[: longest - 1]}…"
    return escape(escaped(content))
