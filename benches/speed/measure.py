"""Measures candidates: each run in its own process, in turn; medians of the runs."""

from __future__ import annotations

import csv
import json
import os
import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speed.outcome import Figures
from speed.service import output
from speed.summary import Summary, difference

FEW = 3
SLOW = ("arrow:alone", "store:", "targets:")
"""Candidates that run only :data:`FEW` times."""
Samples = dict[str, list[Figures]]
"""The measurements: candidate -> the figures of each run."""


@dataclass(frozen=True)
class Row:
    """One row of the table: a figure of siteline, and of a peer if the row has one."""

    name: str
    ours: str
    """The candidate, as ``module:function:argument`` of this package."""
    peer: str
    figure: str
    unit: str
    bar: str
    """The limit of the ratio, or of the figure if there is no peer; ``> 1`` is a minimum."""

    def line(self, samples: Samples) -> str:
        """The row as Markdown."""
        ours, first = self._cell(samples, self.ours, self.figure)
        # A candidate that is its own peer measures both.
        figure = "peer" if self.peer == self.ours else self.figure
        peer, second = self._cell(samples, self.peer, figure) if self.peer else ("", 1.0)
        verdict, limit = first / second, float(self.bar.lstrip("> "))
        at_least = self.bar.startswith(">")
        missed = verdict < limit if at_least else verdict > limit
        ratio = f"{verdict:.3f}" if self.peer else ""
        bar = f"at {'least' if at_least else 'most'} {limit:g}"
        cells = (self.name, ours, peer, ratio, bar, "falls short" if missed else "")
        return f"| {' | '.join(cells)} |"

    def _cell(self, samples: Samples, who: str, figure: str) -> tuple[str, float]:
        if figure == "cpu" and figure not in samples[who][0]:
            figure = "seconds"
        median = statistics.median(each[figure] for each in samples[who])
        runs = f" ({len(samples[who])} runs)" if who.startswith(SLOW) else ""
        return f"{median:.3g} {self.unit}".rstrip() + runs, median


def rows(only: list[str], cpu: bool) -> list[Row]:
    """The rows with one of these texts in their names; ``cpu``: their processor seconds."""
    with Path(__file__).with_name("rows.csv").open(encoding="utf-8", newline="") as file:
        chosen = [Row(*map(str.strip, line)) for line in list(csv.reader(file, delimiter="|"))[1:]]
    chosen = [row for row in chosen if any(part in row.name for part in only)]
    other = "a store of 5 M" if os.environ.get("SITELINE_LONG") else "a store of 50 M"
    chosen = [row for row in chosen if other not in row.name]
    if cpu:
        return [replace(row, figure="cpu") if row.figure == "seconds" else row for row in chosen]
    return chosen


def run(candidate: str, *options: str) -> tuple[Figures, Summary]:
    """Run one candidate in a new process, which prints a line of JSON."""
    command = (sys.executable, "-m", "speed.candidate", *options, candidate)
    outcome: Any = json.loads(output(*command, timeout=900).splitlines()[-1])
    return outcome[0], outcome[1]


def compare(rows: list[Row], summaries: dict[str, Summary]) -> None:
    """Check that siteline and the peer of each row have the same result."""
    for row in rows:
        ours, peer = summaries[row.ours], summaries.get(row.peer, {})
        if not row.peer or not (ours or peer):
            continue
        if differs := difference(ours, peer):
            raise RuntimeError(f"{row.ours} and {row.peer} differ in {differs}")
        names = ", ".join(name for name in ours if name in peer and not name.startswith("rows by"))
        print(f"the same: {row.ours} and {row.peer}: {names}", file=sys.stderr, flush=True)


def measured(rows: list[Row], runs: int) -> Samples:
    """Run all candidates in sequence, ``runs`` times: A B A B; the slow ones less often.

    The results of the first runs are compared, after they have been timed.
    """
    samples: Samples = {who: [] for row in rows for who in (row.ours, row.peer) if who}
    # Spread over the complete measurement, so that they run under the same load as the others.
    few = {round(at * (runs - 1) / (FEW - 1)) for at in range(FEW)}
    for number in range(runs):
        summaries = {}
        for who, figures in samples.items():
            if who.startswith(SLOW) and number not in few:
                continue
            measured, summaries[who] = run(who, *([] if number else ["--summary"]))
            figures.append(measured)
            print(f"run {number + 1} of {runs}: {who}", file=sys.stderr, flush=True)
        if number == 0:
            compare(rows, summaries)
    return samples


def table(rows: list[Row], samples: Samples) -> str:
    """A Markdown table."""
    head = ["| what | siteline | peer | ratio | goal | |", "|---|--:|--:|--:|--:|---|"]
    return "\n".join([*head, *(row.line(samples) for row in rows)])
