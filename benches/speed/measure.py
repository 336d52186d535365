"""Contestants side by side: each run in a process of its own, in turn, and the medians."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from speed.alike import Told, difference

PATIENCE = 900.0
FEW = 3
Seen = dict[str, dict[str, list[float]]]
"""What was measured: contestant -> figure -> one for each run."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure of ours, beside a peer's where there is one."""

    name: str
    figure: str
    ours: str
    """Who is measured, as ``module:function`` of this package."""
    peer: str | None = None
    unit: str = "s"
    bar: float | None = None
    """What the ratio, or the figure where there is no peer, may be at most."""
    at_least: bool = False
    """The bar is a least, not a most."""
    peer_figure: str | None = None
    """Which figure of the peer's, where it has another name."""
    slow: tuple[str, ...] = ()
    """Who of them takes so long that it is played :data:`FEW` times."""
    compared: bool = False
    """Both must have made the same before they are timed."""

    def _medians(self, seen: Seen) -> tuple[float | None, float | None]:
        ours = median(seen, self.ours, self.figure)
        return ours, median(seen, self.peer, self.peer_figure or self.figure)

    def verdict(self, seen: Seen) -> float | None:
        """The ratio of ours to the peer's, or ours alone."""
        ours, peer = self._medians(seen)
        if self.peer is None or ours is None:
            return ours
        return None if peer is None else ours / peer

    def falls_short(self, seen: Seen) -> bool:
        """Whether the bar is missed."""
        verdict = self.verdict(seen)
        if self.bar is None or verdict is None:
            return False
        return verdict < self.bar if self.at_least else verdict > self.bar

    def line(self, seen: Seen) -> str:
        """The row as Markdown."""
        ours, peer = self._medians(seen)
        verdict = self.verdict(seen)
        bar = (
            "" if self.bar is None else f"{'at least' if self.at_least else 'at most'} {self.bar:g}"
        )
        cells = (
            self.name,
            self._cell(ours, self.ours, seen),
            self._cell(peer, self.peer, seen),
            "" if self.peer is None or verdict is None else f"{verdict:.3f}",
            bar,
            "falls short" if self.falls_short(seen) else "",
        )
        return "| " + " | ".join(cells) + " |"

    def _cell(self, figure: float | None, who: str | None, seen: Seen) -> str:
        if figure is None or who is None:
            return ""
        runs = len(next(iter(seen[who].values())))
        return f"{figure:.3g} {self.unit}".rstrip() + (
            f" ({runs} runs)" if who in self.slow else ""
        )


def median(seen: Seen, who: str | None, figure: str) -> float | None:
    """The middle of what was seen of one of them."""
    figures = seen.get(who or "", {}).get(figure)
    return statistics.median(figures) if figures else None


def run(contestant: str, *options: str) -> dict[str, Any]:
    """Play one contestant in a fresh process; it prints a line of JSON."""
    command = [sys.executable, "-m", "speed.play", *options, contestant]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise RuntimeError(f"{contestant} failed:\n{done.stderr[-2000:]}")
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def compare(rows: list[Row]) -> None:
    """Ours and the peer of each row make the same, or nothing is timed."""
    known: dict[str, Told] = {}
    for row in rows:
        if not row.compared or row.peer is None:
            continue
        for who in (row.ours, row.peer):
            if who not in known:
                known[who] = run(who, "--told")
        ours, peer = known[row.ours], known[row.peer]
        differs = difference(ours, peer)
        if differs:
            raise RuntimeError(f"{row.ours} and {row.peer} differ in {differs}")
        told = ", ".join(name for name in ours if name in peer and not name.startswith("rows by"))
        print(f"the same: {row.ours} and {row.peer}: {told}", file=sys.stderr, flush=True)


def measured(rows: list[Row], runs: int) -> Seen:
    """All contestants in turn, ``runs`` times: A B A B; the slow ones less often."""
    contestants = dict.fromkeys(
        who for row in rows for who in (row.ours, row.peer) if who is not None
    )
    slow = {who for row in rows for who in row.slow}
    # As far apart as can be, so that they see the machine as the others do.
    few = {round(at * (runs - 1) / (FEW - 1)) for at in range(FEW)}
    seen: Seen = {who: {} for who in contestants}
    for number in range(runs):
        for who in contestants:
            if who in slow and number not in few:
                continue
            for figure, value in run(who).items():
                seen[who].setdefault(figure, []).append(value)
            print(f"run {number + 1} of {runs}: {who}", file=sys.stderr, flush=True)
    return seen


def table(rows: list[Row], seen: Seen) -> str:
    """A Markdown table."""
    head = ["| what | siteline | beside it | ratio | bar | |", "|---|--:|--:|--:|--:|---|"]
    return "\n".join([*head, *(row.line(seen) for row in rows)])
