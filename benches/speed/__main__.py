"""Measures every row, siteline and its peers; prints the table."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import siteline

from speed.measure import measured, rows, table
from speed.render import render

REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"


@contextmanager
def harness(target: Path) -> Iterator[None]:
    """Render the pages, generate a key, and start the server for all candidates in a process."""
    pages = target / "bench-pages"
    pages.mkdir(parents=True, exist_ok=True)
    render(pages)
    if not (pages / "key.pem").exists():
        siteline.PrivateKey.generate().save(pages / "key.pem")
    command = [sys.executable, "-m", "speed.server", str(pages)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        os.environ["SPEED_SERVER"] = f"http://127.0.0.1:{int(server.stdout.readline())}"
        os.environ["SPEED_TARGET"] = str(target)
        try:
            yield
        finally:
            server.stdin.close()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="speed", description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names of rows")
    parser.add_argument("--target", type=Path, default=Path("target"), help="folder of builds")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--cpu", action="store_true", help="processor seconds, on a busy machine")
    options = parser.parse_args()
    chosen = rows(options.only, options.cpu)
    with harness(options.target.resolve()):
        text = table(chosen, measured(chosen, options.runs))
    names = [line.split("=")[0].split("[")[0] for line in REQUIREMENTS.read_text().splitlines()]
    versions = ", ".join(f"{name} {version(name)}" for name in ["siteline", *names])
    by = "processor seconds" if options.cpu else "seconds by the clock"
    text += f"\n\nPython {platform.python_version()}, {versions}"
    text += f"; medians of {options.runs} runs, {by}."
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
