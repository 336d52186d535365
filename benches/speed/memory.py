"""Memory of reading a chain of any length page by page, without keeping a page."""

from __future__ import annotations

from speed.outcome import Outcome, timed
from speed.service import ours


def siteline(pages: str) -> Outcome:
    """siteline."""
    _, scan = ours()
    points, figures = timed(lambda: sum(len(page) for page in scan(pages).pages()))
    return Outcome(figures | {"megabytes": figures["bytes"] / 1e6}, lambda: {"rows": points})
