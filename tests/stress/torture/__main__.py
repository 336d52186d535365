"""Run every scenario, siteline first, within the given time; print the table."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from pathlib import Path

from torture.harness import Fault, Harness, Limits
from torture.scenarios import PACKAGES, SCENARIOS, Scenario
from torture.table import Result, Results, faults, render

PEER_RUNS = 8
"""The number of runs of each scenario with another package."""
MAX_FAILURES = 3
"""Stop running another package after this many failures: each may take the full timeout."""
TIMEOUT = 60.0


def run(scenario: Scenario, package: str, until: float) -> Result:
    """Run a scenario as often as it specifies, or until the time limit."""
    result = Result()
    is_peer = package != PACKAGES[0]
    timeout = scenario.peer_timeout if is_peer else TIMEOUT
    phases = random.Random(scenario.name)
    for number in range(min(scenario.runs, PEER_RUNS) if is_peer else scenario.runs):
        if time.monotonic() > until or (is_peer and result.failures >= MAX_FAILURES):
            break
        limits = Limits(scenario.limit, timeout)
        harness = Harness(sys.executable, package, limits, phase=phases.uniform(0, 0.1))
        try:
            result.record(scenario.run(harness, number))
        except (Fault, TimeoutError) as fault:
            result.record_fault(str(fault))
    return result


def main() -> int:
    """Run the scenarios."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="time limit of the whole run")
    parser.add_argument("--only", default="", help="scenarios with this in their name")
    parser.add_argument("--packages", nargs="*", default=PACKAGES, choices=PACKAGES)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    # Exit by an exception, which ends the interpreters that this process started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # The last run may begin just before the limit.
    until = time.monotonic() + options.minutes * 60 - TIMEOUT / 2
    scenarios = tuple(scenario for scenario in SCENARIOS if options.only in scenario.name)
    results: Results = {}
    for package in options.packages:
        for scenario in scenarios:
            if package not in scenario.packages:
                continue
            result = results[scenario.name, package] = run(scenario, package, until)
            worst = "" if result.worst is None else f", worst {result.worst:.1f} ms"
            summary = f"{result.failures} of {result.runs} failed{worst}"
            print(f"{package}: {scenario.name}: {summary}", file=sys.stderr, flush=True)
    table = render(scenarios, results)
    print(table)
    failures = faults(results)
    if failures:
        print("\nFailed runs:\n" + failures)
    if options.out:
        options.out.write_text(f"{table}\n\n{failures}\n", encoding="utf-8")
    return any(
        result.failures for (_, package), result in results.items() if package == PACKAGES[0]
    )


if __name__ == "__main__":
    sys.exit(main())
