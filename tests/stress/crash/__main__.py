"""Kill a sync, let its system calls fail, take its power away; then check the store."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from crash.campaign import Campaign, Result
from crash.plants import WIDE
from crash.power_trials import PowerTrials


def table(results: list[Result]) -> str:
    lines = [
        "| what goes wrong | trials | interrupted | pages committed | broken |",
        "|---|--:|--:|--:|--:|",
    ]
    for result in results:
        cells = (result.name, result.trials, result.interrupted, result.pages, len(result.broken))
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="crash", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="time limit of the whole run")
    parser.add_argument("--kills", type=int, default=1_000, help="kills at random moments")
    parser.add_argument("--step", type=int, default=1, help="let every n-th system call fail")
    parser.add_argument("--wide-kills", type=int, default=60, help="of these on the wide plant")
    parser.add_argument(
        "--wide-calls", type=int, default=20, help="calls that fail there, each way"
    )
    parser.add_argument("--seed", type=int, default=None, help="seed of moments and data")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    until = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory(prefix="siteline-crash-") as folder:
        power = PowerTrials(Path(folder).resolve(), seed, step=options.step)
        results = [*power.syncs(), power.backup()]
        results += [power.save(overwrite=overwrite) for overwrite in (False, True)]
        power.close()
        wide = Campaign(Path(folder).resolve(), seed, until, WIDE)
        results += [*wide.some_calls(options.wide_calls), wide.random_kills(options.wide_kills)]
        campaign = Campaign(Path(folder).resolve(), seed, until)
        results += [*campaign.every_call(options.step), campaign.random_kills(options.kills)]
    text = f"{table(results)}\n\nWide plant: {dict(wide.reached)}."
    print(text)
    broken = [f"{result.name}: {failure}" for result in results for failure in result.broken]
    broken += [f"wide plant: no {state}" for state in wide.missing()]
    for failure in broken[:20]:
        print(failure)
    cut = [result for result in results if result.trials < result.wanted]
    for result in cut:
        print(f"{result.name}: {result.wanted - result.trials} trials left out for lack of time")
    if options.out:
        options.out.write_text(f"seed {seed}\n\n{text}\n", encoding="utf-8")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
