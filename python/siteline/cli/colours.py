"""Colours for a terminal: the status of a check or sync, warnings and failures."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

_RED, _GREEN, _YELLOW, _DIM = "31", "32", "33", "2"
_COLOURS = {
    **{"ok": _GREEN, "Sync complete": _GREEN},
    **{"warn": _YELLOW, "Sync incomplete": _YELLOW, "siteline: warning:": _YELLOW},
    **{"fail": _RED, "siteline:": _RED, "skipped": _DIM},
}
_BEGINNING = re.compile(
    r"^(?:(?:ok|warn|fail|skipped)(?=  )|Sync (?:in)?complete\b|siteline:(?: warning:)?)",
    re.MULTILINE,
)


def painted(text: str, stream: TextIO | None) -> str:
    """Returns the text with colours, if the stream is a terminal that shows them."""
    if not _shows_colours(stream):
        return text
    return _BEGINNING.sub(lambda found: f"\x1b[{_COLOURS[found[0]]}m{found[0]}\x1b[0m", text)


def _shows_colours(stream: TextIO | None) -> bool:
    from siteline.cli.output import is_terminal

    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    # The old console of Windows would show the escape sequences.
    return is_terminal(stream) and (sys.platform != "win32" or "WT_SESSION" in os.environ)
