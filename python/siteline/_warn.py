"""Warnings that show the line of the user's own code."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from siteline.errors import SitelineWarning

if TYPE_CHECKING:
    from collections.abc import Iterable


def warn(texts: Iterable[str]) -> None:
    """Warn for each text, at the innermost line that is not siteline's own."""
    if not (texts := list(texts)):
        return
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__")):
        frame = frame.f_back
        level += 1
    for text in texts:
        warnings.warn(text, SitelineWarning, stacklevel=level)


def _is_own(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "siteline"
