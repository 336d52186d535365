"""Counts as text."""

from __future__ import annotations


def counted(count: int, noun: str, *, grouping: str = ",") -> str:
    """Write a count with its noun: ``1 page``, ``2,007 points``."""
    return f"{count:{grouping}} {noun}{'' if count == 1 else 's'}"
