"""A chain into Arrow, and pages from memory into columns, compared with loops in Rust.

The loops are a separate package: ``benches/core``.
"""

from __future__ import annotations

import json
import resource
import subprocess
from typing import Any

from speed.outcome import Figures, Outcome, timed
from speed.service import base_url, built, folder, ours


def siteline(pages: str) -> Outcome:
    """siteline."""
    import pyarrow  # noqa: F401 - imports are not timed

    _, scan = ours()
    table, figures = timed(lambda: scan(pages).to_arrow())
    return Outcome(figures, lambda: table)


def bare(pages: str) -> Outcome:
    """The same HTTP stack, sonic-rs directly into columns, and nothing else."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = _core("bare", base_url(), pages)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of the complete process: it does not report its own.
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    about = {
        "rows": printed["points"],
        "sum of value": printed["sum_value"],
        "nulls of value": printed["nulls"],
    }
    return Outcome({"seconds": printed["seconds"], "cpu": cpu}, lambda: about)


def alone(pages: str) -> Figures:
    """Decoding alone, on one core, in GB/s: siteline, and sonic-rs with typed structs."""
    printed = _core("alone", str(folder()), pages)
    return {name: float(printed[name]) for name in ("siteline", "sonic")}


def _core(*command: str) -> Any:
    program = built() / "bench-core" / "release" / command[0]
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program.name} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
