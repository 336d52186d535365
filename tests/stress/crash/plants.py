"""The plants that are synced: the data of the service, and the feeds that read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import siteline
from siteline.testing import Variant

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

SITE = "S1"
START = "2026-11-02T00:00:00Z"
SINCE = "2026-11-01T00:00:00Z"
INTERVAL = "15m"
BUCKET = 15
"""Minutes."""
DAYS = 12
"""The extent of a plant that is loaded."""


@dataclass(frozen=True)
class Plant:
    name: str
    lines: tuple[str, ...]
    page_size: int
    overlap: str
    lateness: str
    advance: range
    """Hours between two runs."""
    before_calls: tuple[int, ...]
    """Hours after each run before the one with failing system calls."""
    concurrency: tuple[int, ...] = (1,)
    """Requests that a run may have under way; a run takes one of these."""
    kills_per_store: int = 40
    """Kills of one store before it is compared with the truth and replaced by a new one."""
    series: int = 0
    """The number for each line. 0: the sandbox generates the series."""

    def feeds(self) -> list[dict[str, Any]]:
        return [
            {
                "name": line.lower().replace("l", "line-"),
                "site": SITE,
                "line": line,
                "interval": INTERVAL,
                "start": SINCE,
                "page_size": self.page_size,
                "overlap": self.overlap,
                "lateness": self.lateness,
            }
            for line in self.lines
        ]

    def start(self, seed: int) -> siteline.Sandbox:
        if not self.series:
            return siteline.Sandbox(seed=seed, now=START, token_rate=1_000_000)
        sandbox = siteline.Sandbox(
            seed=seed, now=START, token_rate=1_000_000, variant=Variant(order="time")
        )
        points = loaded_points(self, seed)
        sandbox.load(points, bucket=INTERVAL)
        # These points were there for some hours.
        after = timedelta(hours=1 + seed % 3)
        for row in points.iloc[:: len(points) // 150].to_dict("records"):
            sandbox.withdraw(
                row["timestamp"],
                at=row["available_at"] + after,
                line=row["line_id"],
                machine=row["machine_id"],
                tag=row["tag_guid"],
            )
        return sandbox

    def rows(self, table: siteline.Table) -> list[Any]:
        """The points of a query in the order of the service, given those by series, then time."""
        rows = list(table.records(named=True))
        return sorted(rows, key=lambda row: row[5]) if self.series else rows


def loaded_points(plant: Plant, seed: int) -> pd.DataFrame:
    """Points of every bucket but few; some are late, some are revised, by less than a day."""
    import numpy as np
    import pandas as pd

    generator = np.random.default_rng(seed)
    buckets, series = DAYS * 24 * 60 // BUCKET, plant.series * len(plant.lines)
    times = pd.date_range(SINCE, periods=buckets, freq=f"{BUCKET}min", unit="us")
    number = np.repeat(np.arange(series), buckets)
    points = pd.DataFrame({"timestamp": times.take(np.tile(np.arange(buckets), series))})
    points["line_id"] = np.array(plant.lines, dtype=object)[number // plant.series]
    points["machine_id"] = np.array([f"M{n // 6}" for n in range(series)], dtype=object)[number]
    points["tag_guid"] = np.array([f"T{n}" for n in range(series)], dtype=object)[number]
    points["sample_count"] = generator.integers(1, 91, len(points))
    known = points["timestamp"] + pd.Timedelta(minutes=BUCKET + 1)
    late = np.where(generator.random(len(points)) < 0.04, _hours(generator, len(points)), 0)
    points["available_at"] = known + pd.to_timedelta(late, unit="min")
    points = points[generator.random(len(points)) > 0.02]
    revised = points[generator.random(len(points)) < 0.03]
    after = pd.to_timedelta(1 + _hours(generator, len(revised)), unit="min")
    # Together less than a day: a settled window has the last value.
    revised = revised.assign(available_at=revised["available_at"] + after)
    both = pd.concat([points, revised], ignore_index=True)
    return both.assign(value=generator.normal(50, 5, len(both)).round(3))


def _hours(generator: np.random.Generator, count: int) -> Any:
    return generator.integers(1, 600, count)


NARROW = Plant("narrow", ("L1",), 40, "6h", "2d", range(1, 5), (3,))
"""Pages with many points of each of six series."""

WIDE = Plant(
    "wide",
    ("L1", "L2", "L3"),
    330,
    "90m",
    "1d",
    range(6, 25),
    (48, 7),
    concurrency=(1, 2, 8),
    kills_per_store=10,
    series=66,
)
"""Pages with five points of each of 66 series: the store keeps them as recent points, until they
are moved into blocks (`crates/core/src/store/recent.rs`)."""
