"""Reads of the plant by Spark: into how many partitions they are cut, and what these cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import siteline
from siteline.spark._partitions import Density, parts

from scale.plant import SINCE, TAGS, Cut

DAYS = 14
BY = ("1h", "6h", "1d")


@dataclass(frozen=True)
class Cost:
    """What one query of a cut costs."""

    partitions: int
    pages: int
    uncut: int
    """Its pages without partitions."""
    largest: float
    """The points of its largest partition, which a task holds."""


def cost(cut: Cut, page_size: int, by: str) -> Cost:
    """Cut a query for buckets of a minute as `siteline.spark` does; nothing is requested."""
    density = Density(float(cut.lines * TAGS), float(page_size))
    with siteline.Sandbox() as sandbox, sandbox.client() as client:
        scan = client.data(
            start=SINCE, end=SINCE + timedelta(days=DAYS), interval="1m", page_size=page_size
        )
        found = parts(scan, density, by)
    minutes = max((part.end - part.start) / timedelta(minutes=1) for part in found)
    return Cost(
        partitions=len(found),
        pages=sum(part.pages for part in found),
        uncut=density.pages(DAYS * 1_440),
        largest=minutes * density.rate,
    )
