"""Page by page through a chain of any length, none kept: what it takes over the start."""

from __future__ import annotations

from speed.outcome import Outcome, timed
from speed.service import ours


def siteline(pages: str) -> Outcome:
    """Ours."""
    _, scan = ours()
    points, figures = timed(lambda: sum(len(page) for page in scan(pages).pages()))
    return Outcome(figures | {"megabytes": figures["bytes"] / 1e6}, lambda: {"rows": points})
