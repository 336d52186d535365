"""The HTML elements of the drawings.

Notebooks have their own style sheets, so each element sets its style. Colours are inherited or
translucent, so that they are readable on dark and on light pages.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline._times import to_microsecond

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

__all__: list[str] = []

NONE = "\N{EN DASH}"
WIDTH = 200
"""The width of a drawing within a table, in pixels."""

# Colours with contrast to white and to black.
BLUE, AMBER, RED = "#3d8fd1", "#c98a1b", "#d9534f"
FAINT = "rgba(128,128,128,.16)"

LEFT = "padding:2px 12px 2px 0;text-align:left;border:0;white-space:nowrap;vertical-align:middle"
"""The style of a cell of text."""
WRAPPED = LEFT.replace("nowrap", "normal")
"""The style of a cell of long text."""
RIGHT = LEFT.replace("text-align:left", "text-align:right")
"""The style of a cell of numbers."""
_HEAD = "font-weight:normal;opacity:.65;"
_TABLE = (
    "border-collapse:collapse;border:0;margin:8px 0 0 0;font-size:inherit;"
    "font-variant-numeric:tabular-nums;background:transparent;color:inherit"
)
_LONGEST = 60
# At most as wide as the notebook; what is wider scrolls in its box.
_FITTING = "max-width:100%;overflow-x:auto"


def card(title: str, facts: Iterable[str], *parts: str) -> str:
    """Return a complete drawing: a title, facts on the same line, and parts below."""
    rest = "".join(f" {muted(f'· {fact}')}" for fact in facts)
    style = "font-size:13px;line-height:1.5;color:inherit;overflow-wrap:anywhere"
    style = f"{style};{_FITTING}"
    return f'<div style="{style}"><div><b>{title}</b>{rest}</div>{"".join(parts)}</div>'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values."""
    cells = "".join(
        f'<tr style="background:transparent"><td style="{LEFT};{_HEAD}">{name}</td>'
        f'<td style="{WRAPPED}">{value}</td></tr>'
        for name, value in rows
    )
    return scrolling(f'<table style="{_TABLE}"><tbody>{cells}</tbody></table>')


def html_table(head: Iterable[tuple[str, str]], rows: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return a table; a cell is a content and a style (:data:`LEFT` or :data:`RIGHT`)."""
    body = "".join(_row("td", row) for row in rows)
    return scrolling(f'<table style="{_TABLE}">{_row("th", head, _HEAD)}{body}</table>')


def scrolling(content: str) -> str:
    """Return a box that scrolls where its content is wider than the notebook."""
    return f'<div style="{_FITTING}">{content}</div>'


def _row(tag: str, cells: Iterable[tuple[str, str]], extra: str = "") -> str:
    filled = "".join(
        f'<{tag} style="{style};{extra}">{content}</{tag}>' for content, style in cells
    )
    return f'<tr style="background:transparent">{filled}</tr>'


def svg(height: int, label: str) -> str:
    """Return the start tag of a drawing :data:`WIDTH` pixels wide; the caller closes it."""
    return (
        f'<svg width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{label}" style="vertical-align:middle">'
    )


def muted(content: str, tag: str = "span") -> str:
    """Return content in a fainter colour."""
    return f'<{tag} style="opacity:.65">{content}</{tag}>'


def cell(value: Any) -> str:
    """Write a value of a record: a number, a time or text."""
    if isinstance(value, float):
        return number(value)
    return to_microsecond(value) if hasattr(value, "isoformat") else text(value)


def number(value: float | None) -> str:
    """Write a number with six digits; a dash for ``None``."""
    return NONE if value is None else f"{value:,.6g}"


def instant(at: datetime | None) -> str:
    """Write a bound of a range; an ellipsis where it is open."""
    return "…" if at is None else to_microsecond(at)


def text(value: object, longest: int = _LONGEST) -> str:
    """Truncates external text, escapes unprintable characters, and escapes the result for HTML."""
    if value is None:
        return NONE
    content = str(value)
    content = content if len(content) <= longest else f"{content[: longest - 1]}…"
    return escape(escaped(content))
