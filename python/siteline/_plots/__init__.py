"""Builds the Altair charts of :mod:`siteline.plots`; imports Altair and NumPy when one is made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def load() -> Any:
    """Import the functions that draw, or name the extra that they need."""
    try:
        from siteline._plots import feeds, points
    except ModuleNotFoundError as error:
        from siteline.frames import missing

        raise missing(error, str(error.name), "a chart", "plot") from None
    return SimpleNamespace(**{**vars(feeds), **vars(points)})
