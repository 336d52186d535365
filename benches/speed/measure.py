"""Measure candidates: each run in its own process, one after the other; medians of the runs."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from speed.summary import Summary, difference

TIMEOUT = 900.0
FEW = 3
Samples = dict[str, dict[str, list[float]]]
"""The measurements: candidate -> figure -> a value for each run."""


@dataclass(frozen=True)
class Row:
    """One row of the table: a figure of siteline, and of a peer if the row has one."""

    name: str
    figure: str
    ours: str
    """The candidate, as ``module:function`` of this package."""
    peer: str | None = None
    unit: str = "s"
    bar: float | None = None
    """The limit of the ratio, or of the figure if there is no peer."""
    at_least: bool = False
    """The limit is a minimum."""
    peer_figure: str | None = None
    """The peer's figure, if it has another name."""
    slow: tuple[str, ...] = ()
    """Slow candidates, which run only :data:`FEW` times."""
    compared: bool = False
    """Whether the results of both are compared before they are timed."""

    def _medians(self, samples: Samples) -> tuple[float | None, float | None]:
        ours = median(samples, self.ours, self.figure)
        return ours, median(samples, self.peer, self.peer_figure or self.figure)

    def verdict(self, samples: Samples) -> float | None:
        """The ratio of siteline's figure to the peer's, or siteline's alone."""
        ours, peer = self._medians(samples)
        if self.peer is None or ours is None:
            return ours
        return None if peer is None else ours / peer

    def falls_short(self, samples: Samples) -> bool:
        """Whether the limit is missed."""
        verdict = self.verdict(samples)
        if self.bar is None or verdict is None:
            return False
        return verdict < self.bar if self.at_least else verdict > self.bar

    def line(self, samples: Samples) -> str:
        """The row as Markdown."""
        ours, peer = self._medians(samples)
        verdict = self.verdict(samples)
        bar = (
            "" if self.bar is None else f"{'at least' if self.at_least else 'at most'} {self.bar:g}"
        )
        cells = (
            self.name,
            self._cell(ours, self.ours, samples),
            self._cell(peer, self.peer, samples),
            "" if self.peer is None or verdict is None else f"{verdict:.3f}",
            bar,
            "falls short" if self.falls_short(samples) else "",
        )
        return "| " + " | ".join(cells) + " |"

    def _cell(self, figure: float | None, who: str | None, samples: Samples) -> str:
        if figure is None or who is None:
            return ""
        runs = len(next(iter(samples[who].values())))
        return f"{figure:.3g} {self.unit}".rstrip() + (
            f" ({runs} runs)" if who in self.slow else ""
        )


def median(samples: Samples, who: str | None, figure: str) -> float | None:
    """The median of a candidate's figure."""
    figures = samples.get(who or "", {}).get(figure)
    return statistics.median(figures) if figures else None


def run(candidate: str, *options: str) -> dict[str, Any]:
    """Run one candidate in a new process, which prints a line of JSON."""
    command = [sys.executable, "-m", "speed.candidate", *options, candidate]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"{candidate} failed:\n{done.stderr[-2000:]}")
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def compare(rows: list[Row]) -> None:
    """Check that siteline and the peer of each row give the same result."""
    known: dict[str, Summary] = {}
    for row in rows:
        if not row.compared or row.peer is None:
            continue
        for who in (row.ours, row.peer):
            if who not in known:
                known[who] = run(who, "--summary")
        ours, peer = known[row.ours], known[row.peer]
        differs = difference(ours, peer)
        if differs:
            raise RuntimeError(f"{row.ours} and {row.peer} differ in {differs}")
        names = ", ".join(name for name in ours if name in peer and not name.startswith("rows by"))
        print(f"the same: {row.ours} and {row.peer}: {names}", file=sys.stderr, flush=True)


def measured(rows: list[Row], runs: int) -> Samples:
    """Run all candidates in sequence, ``runs`` times: A B A B; the slow ones less often."""
    candidates = dict.fromkeys(
        who for row in rows for who in (row.ours, row.peer) if who is not None
    )
    slow = {who for row in rows for who in row.slow}
    # Spread over the complete measurement, so that they run under the same load as the others.
    few = {round(at * (runs - 1) / (FEW - 1)) for at in range(FEW)}
    samples: Samples = {who: {} for who in candidates}
    for number in range(runs):
        for who in candidates:
            if who in slow and number not in few:
                continue
            for figure, value in run(who).items():
                samples[who].setdefault(figure, []).append(value)
            print(f"run {number + 1} of {runs}: {who}", file=sys.stderr, flush=True)
    return samples


def table(rows: list[Row], samples: Samples) -> str:
    """A Markdown table."""
    head = ["| what | siteline | beside it | ratio | bar | |", "|---|--:|--:|--:|--:|---|"]
    return "\n".join([*head, *(row.line(samples) for row in rows)])
