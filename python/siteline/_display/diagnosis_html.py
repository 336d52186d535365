"""Renders what the doctor has found for notebooks: a row for each check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._counts import counted
from siteline._display.elements import (
    AMBER,
    LEFT,
    RED,
    WRAPPED,
    card,
    html_table,
    muted,
    text,
)

if TYPE_CHECKING:
    from siteline._display.protocols import Check, Diagnosis

__all__: list[str] = []

_LONGEST = 500
_COLOURS = {"fail": RED, "warn": AMBER}


def diagnosis(shown: Diagnosis) -> str:
    """Show each check: its status, what was seen, and what to do."""
    first = shown.first_fail
    state = "nothing failed" if first is None else f"the first fail is {text(first.id)}"
    facts = [counted(len(shown.checks), "check"), state]
    head = [(name, LEFT) for name in ("", "check", "seen")]
    table = html_table(head, (_row(check) for check in shown.checks))
    return card("Diagnosis", facts, muted(f"sends {text(shown.sends, 200)}", "div"), table)


def _row(check: Check) -> list[tuple[str, str]]:
    seen = _lines(check.seen)
    if check.status == "skipped":
        seen = muted(seen)
    if check.do:
        seen += f'<div style="padding-left:12px">{_lines(check.do)}</div>'
    title = f"{text(check.id)} {muted(text(check.title))}"
    return [(_status(check.status), LEFT), (title, WRAPPED), (seen, WRAPPED)]


def _status(status: str) -> str:
    colour = _COLOURS.get(status)
    if colour is not None:
        return f'<b style="color:{colour}">{text(status)}</b>'
    return muted(text(status)) if status == "skipped" else text(status)


def _lines(content: str) -> str:
    return "<br>".join(text(line, _LONGEST) for line in content.splitlines())
