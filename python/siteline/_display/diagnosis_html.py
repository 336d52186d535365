"""Renders a diagnosis for notebooks: a row for each check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._counts import counted
from siteline._display.elements import LEFT, WRAPPED, card, html_table, muted, text

if TYPE_CHECKING:
    from siteline.types import Check, Diagnosis

_LONGEST = 500
_BOLD = ("fail", "warn")
_TOP, _TOP_WRAPPED = (style.replace("middle", "top") for style in (LEFT, WRAPPED))


def diagnosis(shown: Diagnosis) -> str:
    """Show the status, the finding and the advice of each check."""
    first = shown.first_fail
    state = "nothing failed" if first is None else f"the first fail is {text(first.id)}"
    facts = [counted(len(shown.checks), "check"), state]
    columns = [("", _TOP), ("check", _TOP), ("seen", _TOP_WRAPPED)]
    table = html_table(columns, map(_row, shown.checks))
    return card("Diagnosis", facts, muted(f"sends {text(shown.sends, 200)}", "div"), table)


def _row(check: Check) -> list[str]:
    seen = _lines(check.seen)
    if check.status == "skipped":
        seen = muted(seen, "div")
    if check.do:
        seen += f'<div style="padding-left:12px">{_lines(check.do)}</div>'
    title = f"<div>{text(check.id)}</div>{_muted_title(check)}"
    return [_status(check.status), title, seen]


def _status(status: str) -> str:
    if status in _BOLD:
        return f"<b>{text(status)}</b>"
    return muted(text(status)) if status == "skipped" else text(status)


def _lines(content: str) -> str:
    return "".join(f"<div>{text(line, _LONGEST)}</div>" for line in content.splitlines())


def _muted_title(check: Check) -> str:
    return "" if check.title.casefold() == check.id else muted(text(check.title), "div")
