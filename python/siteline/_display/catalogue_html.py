"""Renders a catalogue for notebooks: its series by what they are in.

There is no script: the search of the browser finds what is shown, and opens what is folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline._display.elements import LEFT, card, html_table, muted, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteline._display.protocols import SeriesInfo

__all__: list[str] = []

_OPEN = 60
"""Series up to which no group is folded."""
_SHOWN = 1_000
_TOLD = 8
"""Places that are not recognised."""
_GROUP = "margin:6px 0 0 0"
_ID = f"{LEFT};font-family:monospace"


def catalogue(shown: Sequence[SeriesInfo], report: Mapping[str, Any]) -> str:
    """Draw the first series; how many more there are is said."""
    rows = shown[:_SHOWN]
    listed = sum(row.listed for row in shown)
    facts = [f"{len(shown):,} series"]
    facts += [f"{listed} listed by discovery"] if listed else ["discovery names none"]
    facts += [f"{len(shown) - listed} seen in data alone"] if len(shown) > listed else []
    facts += ["the body has a cursor: perhaps a part"] if report["not_ended"] else []
    groups: dict[str, list[SeriesInfo]] = {}
    for row in rows:
        groups.setdefault(row.path.rpartition(" / ")[0], []).append(row)
    parts = [_group(name, found, is_open=len(shown) <= _OPEN) for name, found in groups.items()]
    if len(shown) > len(rows):
        more = f'{len(shown) - len(rows):,} more: catalogue.find("...", line="...")'
        parts.append(f'<div style="{_GROUP}">{muted(text(more))}</div>')
    if unknown := report["not_recognised"]:
        told = ", ".join(unknown[:_TOLD]) + (", …" if len(unknown) > _TOLD else "")
        line = text(f"not recognised in the discovery body: {told}", 400)
        parts.append(f'<div style="{_GROUP};white-space:normal">{muted(line)}</div>')
    return card("Catalogue", facts, *parts)


def _group(name: str, rows: list[SeriesInfo], *, is_open: bool) -> str:
    title = f"{text(name or 'no path')} {muted(f'{len(rows):,} series')}"
    head = [(one, LEFT) for one in ("label", "unit", "tag_guid")]
    cells = [
        [(text(row.label), LEFT), (text(row.unit or ""), LEFT), (text(row.tag_guid), _ID)]
        for row in rows
    ]
    folded = " open" if is_open else ""
    return (
        f'<details style="{_GROUP}"{folded}><summary>{title}</summary>{html_table(head, cells)}'
        "</details>"
    )
