"""Renders series for notebooks, grouped by the levels above them: tables and discovery.

There is no script: the search of the browser finds what is shown, and opens what is folded.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._counts import counted
from siteline._display.elements import LEFT, card, html_table, muted, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteline.table import Table
    from siteline.types import Discovery

_OPEN = 60
"""Series up to which no group is folded."""
_SHOWN = 1_000
_PLACES = 8
"""Members that are not recognised."""
_GROUP = "margin:6px 0 0 0"
_ID = f"{LEFT};font-family:monospace"


def series(shown: Table, title: str = "Table", facts: Sequence[str] = ()) -> str:
    """Draw the first series, and the number of the others."""
    report, count = shown.report, len(shown)
    facts = [*facts, _doors.series_count(shown)]
    facts += ["listed by discovery"] if report.listed else ["not listed by discovery"]
    facts += ["the body has a cursor: perhaps a part"] if report.not_ended else []
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in islice(shown.records(), _SHOWN):
        groups.setdefault(row["path"].rpartition(" / ")[0], []).append(row)
    parts = [_group(name, found, is_open=count <= _OPEN) for name, found in groups.items()]
    if count > _SHOWN:
        more = f'{count - _SHOWN:,} more: find("...", line="...")'
        parts.append(f'<div style="{_GROUP}">{muted(text(more))}</div>')
    if unknown := report.not_recognised:
        places = ", ".join(unknown[:_PLACES]) + (", …" if len(unknown) > _PLACES else "")
        line = text(f"not recognised in the discovery body: {places}", 400)
        parts.append(f'<div style="{_GROUP};white-space:normal">{muted(line)}</div>')
    return card(title, facts, *parts)


def discovery(shown: Discovery) -> str:
    """Draw the series that siteline finds in a discovery body."""
    return series(_doors.series_of(shown), "Discovery", [counted(len(shown.raw), "byte")])


def _group(name: str, rows: list[dict[str, Any]], *, is_open: bool) -> str:
    title = f"{text(name or 'no path')} {muted(f'{len(rows):,} series')}"
    columns = [("label", LEFT), ("unit", LEFT), ("tag_guid", _ID)]
    cells = [
        [text(row["label"], 120), text(row["unit"] or ""), text(row["tag_guid"])] for row in rows
    ]
    folded = " open" if is_open else ""
    return (
        f'<details style="{_GROUP}"{folded}><summary>{title}</summary>{html_table(columns, cells)}'
        "</details>"
    )
