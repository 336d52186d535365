"""Kill syncs into a target, and restart its server; compare it with a `Store` after each."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from target_kills.campaign import Campaign
from target_kills.places import DRIVERS, open_server


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="target_kills", description=__doc__)
    parser.add_argument("--target", required=True, choices=DRIVERS)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kills", type=int, default=200, help="of each seed")
    parser.add_argument("--seed", type=int, default=None, help="this seed alone")
    parser.add_argument("--restart", action="store_true", help="also restart the server")
    options = parser.parse_args()
    seeds = range(options.seeds) if options.seed is None else [options.seed]
    with (
        tempfile.TemporaryDirectory(prefix="siteline-targets-") as folder,
        open_server(options.target) as server,
    ):
        campaign = Campaign(options.target, Path(folder), server, restart=options.restart)
        for seed in seeds:
            started = time.monotonic()
            campaign.seed(seed, options.kills)
            print(f"seed {seed}: {time.monotonic() - started:.0f} s; so far {dict(campaign.done)}")
            print(*campaign.broken, sep="\n", end="", flush=True)
    return bool(campaign.broken)


if __name__ == "__main__":
    sys.exit(main())
