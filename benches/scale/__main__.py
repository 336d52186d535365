"""Print the tables of docs/scale.md: ``python -m scale [--only requests readings ...]``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import siteline

from scale import costs, partitions
from scale.allowance import fill_days
from scale.count import (
    COARSE,
    COARSE_NIGHTLY,
    HOURLY,
    NIGHTLY,
    ONCE,
    READINGS,
    Counts,
    Reading,
    counted,
)
from scale.plant import CUTS, LINES, PAGE_SIZES, TAGS, Cut

ALLOWANCES = (5_000, 50_000, 500_000)
WIDE = CUTS[2]
HOURS = (72, 72, 12)
"""Hours for which a store grows, for each cut but the widest."""
# Small pages of a site are left out: each request has as many points as for 100 lines.
SIZES = [
    (cut, page_size)
    for cut in CUTS
    for page_size in PAGE_SIZES
    if cut is not CUTS[-1] or page_size > PAGE_SIZES[0]
]
count = cache(counted)


def requests() -> Iterator[tuple[str, ...]]:
    """Requests of the plant: of the first fill, and of a day by class."""
    yield ("a feed for", "page_size", "runs", "first fill", "edge", "settle", "a day")
    for cut, page_size in SIZES:
        for reading in (HOURLY, NIGHTLY):
            counts = count(cut, page_size, reading)
            yield (cut.name, f"{page_size:,}", reading.name, *_of_plant(cut, counts))


def _of_plant(cut: Cut, counts: Counts) -> tuple[str, ...]:
    _refuse_other_classes(counts)
    figures = (counts.fill, counts.day["edge"], counts.day["settle"], counts.total)
    return tuple(f"{figure * cut.feeds:,.0f}" for figure in figures)


def _refuse_other_classes(counts: Counts) -> None:
    if counts.day.keys() - {"edge", "settle"}:
        raise RuntimeError(f"a day has other chains: {counts.day}")


def readings() -> Iterator[tuple[str, ...]]:
    """What fewer reads save: requests of a day, and how often a point is read."""
    yield ("runs", "a line, 10,000", "100 lines, 50,000", "a point is read", "reserve")
    for reading in READINGS:
        line, wide = (
            count(cut, size, reading) for cut, size in ((CUTS[0], 10_000), (WIDE, 50_000))
        )
        requests = [
            f"{counts.total * cut.feeds:,}" for counts, cut in ((line, CUTS[0]), (wide, WIDE))
        ]
        yield (reading.name, *requests, f"{wide.reads:.2f}", f"{wide.reserve * WIDE.feeds:,}")


def allowances() -> Iterator[tuple[str, ...]]:
    """Whether an allowance is enough, and how many days the first fill takes."""
    yield ("a feed for", "page_size", "runs", *(f"{allowance:,}" for allowance in ALLOWANCES))
    rows = [(cut, size, reading) for cut, size in SIZES for reading in (HOURLY, NIGHTLY)]
    rows += [(WIDE, 50_000, reading) for reading in (ONCE, COARSE, COARSE_NIGHTLY)]
    for cut, page_size, reading in rows:
        days = [_days(cut, page_size, reading, allowance) for allowance in ALLOWANCES]
        yield (cut.name, f"{page_size:,}", reading.name, *days)


def _days(cut: Cut, page_size: int, reading: Reading, allowance: int) -> str:
    counts = count(cut, page_size, reading)
    a_day = counts.total * cut.feeds
    if a_day > allowance:
        return "no"
    if a_day + counts.fill * cut.feeds <= allowance:
        return "1"
    days = fill_days(cut, page_size, reading, allowance)
    return "no" if days is None else f"{days}"


def seconds() -> Iterator[tuple[str, ...]]:
    """Processor seconds and memory of a run, without the time of the service."""
    yield (
        "a feed for",
        "page_size",
        "a page holds",
        "a page",
        "points a second",
        "a run",
        "memory",
    )
    for cut, page_size in SIZES:
        yield (cut.name, f"{page_size:,}", *_seconds(cut, page_size))


def _seconds(cut: Cut, page_size: int) -> tuple[str, ...]:
    index = CUTS.index(cut)
    figures = costs.measured(costs.Job(index, costs.FEEDS[index], costs.MINUTES[index], page_size))
    a_page = figures["cpu"] / figures["pages"]
    run = count(cut, page_size, HOURLY).day["edge"] / HOURLY.runs * cut.feeds
    return (
        f"{figures['points'] / figures['pages']:,.0f}",
        f"{a_page * 1e3:.2f} ms",
        f"{figures['points'] / figures['cpu'] / 1e6:.2f} M",
        f"{a_page * run:,.0f} s",
        f"{figures['megabytes']:.0f} MB",
    )


def whole() -> Iterator[tuple[str, ...]]:
    """The plant with a feed for each line, all of it: one run an hour after the first."""
    job = costs.Job(0, LINES, 60, 10_000, 8)
    figures = costs.measured(job)
    yield ("feeds", "pages", "points", "planning", "a run", "processor", "memory")
    yield (
        f"{LINES:,}",
        f"{figures['pages']:,}",
        f"{figures['points'] / 1e6:.0f} M",
        f"{figures['planning']:.2f} s",
        f"{figures['seconds']:.0f} s",
        f"{figures['cpu']:.0f} s",
        f"{figures['megabytes']:.0f} MB",
    )


def growth() -> Iterator[tuple[str, ...]]:
    """Bytes of the store for each point, and of the plant's points."""
    yield ("a feed for", "a point", "a day", "a year")
    sizes = [(cut.name, costs.growth(cut, hours)) for cut, hours in zip(CUTS, HOURS, strict=False)]
    sizes.append(("the sandbox's site", costs.growth_with_revisions(HOURS[0])))
    for name, size in sizes:
        day = size * LINES * TAGS * 1_440
        a_year = f"{day * 365 / 1e12:.1f} TB"
        yield (name, f"{size:.1f} bytes", f"{day / 1e9:.1f} GB", a_year)


def spark() -> Iterator[tuple[str, ...]]:
    """Two weeks of the plant, read once by Spark: a query for each cut, each in partitions."""
    yield ("a query for", "page_size", "by", "partitions", "requests", "uncut", "a task holds")
    for cut, page_size in SIZES:
        for by in partitions.BY if page_size > PAGE_SIZES[0] else ():
            cost = partitions.cost(cut, page_size, by)
            figures = (cost.partitions, cost.pages, cost.uncut)
            of_plant = (f"{figure * cut.feeds:,}" for figure in figures)
            held = f"{cost.largest / 1e6:.2f} M points"
            yield (cut.name, f"{page_size:,}", by, *of_plant, held)


TABLES: dict[str, Callable[[], Iterator[tuple[str, ...]]]] = {
    "requests": requests,
    "readings": readings,
    "allowances": allowances,
    "seconds": seconds,
    "whole": whole,
    "growth": growth,
    "spark": spark,
}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scale", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    options = parser.parse_args()
    texts = []
    for name in options.only:
        lines = [f"{TABLES[name].__doc__}\n"]
        for number, row in enumerate(TABLES[name]()):
            lines.append(f"| {' | '.join(row)} |")
            # A table takes minutes: its rows are shown as they come.
            print(lines[-1], file=sys.stderr, flush=True)
            if number == 0:
                lines.append("|---|" + "--:|" * (len(row) - 1))
        texts.append("\n".join(lines))
    texts.append(
        f"siteline {siteline.__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} processors."
    )
    text = "\n\n".join(texts)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
