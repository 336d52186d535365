"""Runs for some minutes. ``python -m foreign_sqlite --minutes 10``."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from foreign_sqlite.run import run


def main() -> None:
    """Runs the stress test and prints its counts."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--minutes", type=float, default=10)
    minutes = reader.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder:
        done = run(Path(folder), 1_000_000, time.time() + 60 * minutes, looks=3)
    print(f"{done.syncs:,} syncs and {done.looks:,} looks from outside: nothing is lost")


if __name__ == "__main__":
    main()
