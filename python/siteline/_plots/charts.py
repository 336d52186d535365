"""The charts of the public methods and functions."""

from __future__ import annotations

from siteline._plots.feeds import coverage, lateness
from siteline._plots.points import points
from siteline._plots.requests import allowance

__all__ = ["allowance", "coverage", "lateness", "points"]
