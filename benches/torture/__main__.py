"""Play every scenario, siteline first, within the time there is; print the table."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from pathlib import Path

from torture.scenarios import PACKAGES, SCENARIOS, Scenario
from torture.stage import Fault, Limits, Stage
from torture.table import Result, Results, faults, render

PEER_RUNS = 8
"""Enough to see what another package does."""
ENOUGH_FAILURES = 3
"""After so many another package need not be tried further: each may cost the whole patience."""
PATIENCE = 60.0


def play(scenario: Scenario, package: str, until: float) -> Result:
    """Run a scenario as often as it asks for, and as time allows."""
    result = Result()
    is_peer = package != PACKAGES[0]
    patience = scenario.peer_patience if is_peer else PATIENCE
    chance = random.Random(scenario.name)
    for number in range(min(scenario.runs, PEER_RUNS) if is_peer else scenario.runs):
        if time.monotonic() > until or (is_peer and result.failures >= ENOUGH_FAILURES):
            break
        limits = Limits(scenario.limit, patience)
        stage = Stage(sys.executable, package, limits, phase=chance.uniform(0, 0.1))
        try:
            result.note(scenario.run(stage, number))
        except (Fault, TimeoutError) as fault:
            result.note_fault(str(fault))
    return result


def main() -> int:
    """Play."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="the time there is in all")
    parser.add_argument("--only", default="", help="scenarios with this in their name")
    parser.add_argument("--packages", nargs="*", default=PACKAGES, choices=PACKAGES)
    parser.add_argument("--out", type=Path, help="where the table goes as well")
    options = parser.parse_args()
    # What is on stage ends with us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # The last play may have begun just before.
    until = time.monotonic() + options.minutes * 60 - PATIENCE / 2
    scenarios = tuple(scenario for scenario in SCENARIOS if options.only in scenario.name)
    results: Results = {}
    for package in options.packages:
        for scenario in scenarios:
            if package not in scenario.packages:
                continue
            result = results[scenario.name, package] = play(scenario, package, until)
            worst = "" if result.worst is None else f", worst {result.worst:.1f} ms"
            told = f"{result.failures} of {result.runs} failed{worst}"
            print(f"{package}: {scenario.name}: {told}", file=sys.stderr, flush=True)
    table = render(scenarios, results)
    print(table)
    seen = faults(results)
    if seen:
        print("\nWhat the failed runs showed:\n" + seen)
    if options.out:
        options.out.write_text(f"{table}\n\n{seen}\n", encoding="utf-8")
    return any(
        result.failures for (_, package), result in results.items() if package == PACKAGES[0]
    )


if __name__ == "__main__":
    sys.exit(main())
