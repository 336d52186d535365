"""The outcome of a candidate: what was measured of it, and what it made, to be compared."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Figures = dict[str, float]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Outcome:
    """What one run of a candidate gave."""

    figures: Figures
    product: Callable[[], Any]
    """The frame, table, records or summary; called only where it is compared."""


def timed(work: Callable[[], Made]) -> tuple[Made, Figures]:
    """Do it: its seconds by the clock and those of the processor (of all threads), and the bytes by
    which memory peaked over the start.
    """
    gc.collect()
    # The peak begins anew; Linux alone can do this.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start = _kilobytes("VmRSS")
    begun, busy = time.perf_counter(), time.process_time()
    product = work()
    figures = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - busy}
    return product, figures | {"bytes": (_kilobytes("VmHWM") - start) * 1024}


def framed(work: Callable[[], Any]) -> Outcome:
    """The same for a pandas frame, whose memory is the measure of the peak."""
    frame, figures = timed(work)
    size = float(frame.memory_usage(index=False).sum())
    return Outcome(figures | {"frames": figures["bytes"] / size}, lambda: frame)


def _kilobytes(what: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1])
    raise RuntimeError(f"no {what} here")
