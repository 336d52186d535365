"""The results as a table."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from torture.scenarios import PACKAGES, Scenario


@dataclass
class Result:
    """The outcome of all runs of one scenario with one package."""

    runs: int = 0
    worst: float | None = None
    faults: Counter[str] = field(default_factory=Counter)
    """The faults of failed runs, and how often each occurred."""

    @property
    def failures(self) -> int:
        """The number of failed runs."""
        return self.faults.total()

    def record(self, reaction: float | None) -> None:
        """Count a run that passed."""
        self.runs += 1
        if reaction is not None:
            self.worst = max(reaction, self.worst or 0.0)

    def record_fault(self, fault: str) -> None:
        """Count a run that failed."""
        self.runs += 1
        # Remove the numbers that differ from run to run.
        plain = re.sub(r"\d+\.\d+|0x[0-9a-f]+", "#", fault)
        lines = [line.strip() for line in plain.splitlines() if line.strip()]
        first, last = lines[0], lines[-1]
        self.faults[first if first == last else f"{first} … {last}"] += 1


Results = dict[tuple[str, str], Result]


def render(scenarios: tuple[Scenario, ...], results: Results) -> str:
    """A Markdown table: a line per scenario, a cell per other package."""
    own, *peers = PACKAGES
    peer_heads = "".join(f" {peer} |" for peer in peers)
    lines = [
        f"| scenario | limit ms | runs | failed | worst ms |{peer_heads}",
        "|---|--:|--:|--:|--:|" + "---|" * len(peers),
    ]
    for scenario in scenarios:
        limit = f"{scenario.limit * 1000:.0f}" if scenario.limit < 60 else ""
        result = results.get((scenario.name, own), Result())
        cells = f"{result.runs} | {result.failures} | {_worst(result)}"
        others = "".join(
            f" {_peer(scenario, peer, results.get((scenario.name, peer)))} |" for peer in peers
        )
        lines.append(f"| {scenario.name} | {limit} | {cells} |{others}")
    return "\n".join(lines)


def _worst(result: Result) -> str:
    return "" if result.worst is None else f"{result.worst:.0f}"


def _peer(scenario: Scenario, peer: str, result: Result | None) -> str:
    if peer not in scenario.packages:
        return "-"
    if result is None or not result.runs:
        return "no time left"
    worst = _worst(result)
    return f"{result.failures} of {result.runs} failed" + (f", {worst} ms" if worst else "")


def faults(results: Results) -> str:
    """The faults of failed runs, a line for each kind."""
    return "\n".join(
        f"{package}, {scenario}: {count}x {fault[:300]}"
        for (scenario, package), result in results.items()
        for fault, count in result.faults.most_common(3)
    )
