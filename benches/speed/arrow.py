"""A chain into Arrow, and pages into columns without a wire: beside loops in Rust.

Those are a package of their own, ``benches/core``.
"""

from __future__ import annotations

import json
import resource
import subprocess
from typing import Any

from speed.played import Figures, Played, base_url, built, folder, ours, timed


def siteline(pages: str) -> Played:
    """Ours."""
    import pyarrow  # noqa: F401 - imports are not timed

    _, scan = ours()
    table, figures = timed(lambda: scan(pages).to_arrow())
    return Played(figures, lambda: table)


def bare(pages: str) -> Played:
    """The same HTTP stack, sonic-rs straight into columns, and nothing else."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = _core("bare", base_url(), pages)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # All of the process, as it is not asked for its own.
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    about = {
        "rows": told["points"],
        "sum of value": told["sum_value"],
        "nulls of value": told["nulls"],
    }
    return Played({"seconds": told["seconds"], "cpu": cpu}, lambda: about)


def alone(pages: str) -> Figures:
    """Decoding alone, on one core, in GB/s: ours, and sonic-rs with typed structs."""
    told = _core("alone", str(folder()), pages)
    return {name: float(told[name]) for name in ("siteline", "sonic")}


def _core(*command: str) -> Any:
    program = built() / "bench-core" / "release" / command[0]
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program.name} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
