"""Measure every row, ours and its peers in turn; print the table."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from speed import store
from speed.measure import measured, table

ROWS = [*store.ROWS]
PEERS = ("siteline", "duckdb", "pyarrow", "pandas")


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="speed", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--out", type=Path, help="where the table goes as well")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in row.name]
    told = table(rows, measured(rows, options.runs))
    versions = ", ".join(f"{name} {version(name)}" for name in PEERS)
    told += f"\n\nPython {platform.python_version()}, {versions}; medians of {options.runs} runs."
    print(told)
    if options.out:
        options.out.write_text(told + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
