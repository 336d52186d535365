"""A chain into Arrow, and pages from memory into columns, compared with loops in Rust.

The loops are a separate package: ``benches/core``.
"""

from __future__ import annotations

import json
import resource
from typing import Any

from speed.outcome import Figures, Outcome, timed
from speed.service import base_url, built, ours, output


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
    return Outcome({"seconds": printed.pop("seconds"), "cpu": cpu}, lambda: printed)


def alone(pages: str) -> Figures:
    """Decoding alone, on one core, in GB/s: siteline, and sonic-rs with typed structs."""
    printed = _core("alone", str(built() / "bench-pages" / pages))
    return {"speed": printed["siteline"], "peer": printed["sonic"]}


def _core(*arguments: str) -> Any:
    program = built() / "bench-core" / "release" / "siteline-bench"
    return json.loads(output(program, *arguments).splitlines()[-1])
