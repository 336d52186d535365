"""The results as a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from torture.scenarios import PACKAGES, Scenario


@dataclass
class Result:
    """What came of the runs of one scenario with one package."""

    runs: int = 0
    worst: float | None = None
    faults: Counter[str] = field(default_factory=Counter)
    """What was seen instead, and how often."""

    @property
    def failures(self) -> int:
        """How many runs failed."""
        return self.faults.total()

    def note(self, reaction: float | None) -> None:
        """Count a run that went well."""
        self.runs += 1
        if reaction is not None:
            self.worst = max(reaction, self.worst or 0.0)

    def note_fault(self, fault: str) -> None:
        """Count a run that failed."""
        self.runs += 1
        lines = [line.strip() for line in fault.splitlines() if line.strip()]
        first, last = lines[0], lines[-1]
        self.faults[first if first == last else f"{first} … {last}"] += 1


Results = dict[tuple[str, str], Result]


def render(scenarios: tuple[Scenario, ...], results: Results) -> str:
    """A Markdown table: a line for each scenario, runs, failures and worst time of each package."""
    head = "".join(f" {package}: runs | failed | worst ms |" for package in PACKAGES)
    lines = [f"| scenario | limit ms |{head}", "|---|--:|" + "--:|--:|--:|" * len(PACKAGES)]
    for scenario in scenarios:
        limit = f"{scenario.limit * 1000:.0f}" if scenario.limit < 60 else ""
        cells = "".join(
            _cells(scenario, package, results.get((scenario.name, package))) for package in PACKAGES
        )
        lines.append(f"| {scenario.name} | {limit} |{cells}")
    return "\n".join(lines)


def _cells(scenario: Scenario, package: str, result: Result | None) -> str:
    if package not in scenario.packages:
        return " - | - | - |"
    if result is None or not result.runs:
        return " not run | | |"
    worst = "" if result.worst is None else f"{result.worst:.1f}"
    if result.failures == result.runs:
        worst = ""
    return f" {result.runs} | {result.failures} | {worst} |"


def faults(results: Results) -> str:
    """What the failed runs showed, a line for each kind."""
    return "\n".join(
        f"{package}, {scenario}: {count}x {fault[:300]}"
        for (scenario, package), result in results.items()
        for fault, count in result.faults.most_common(2)
    )
