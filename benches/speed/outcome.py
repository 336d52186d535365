"""The outcome of a candidate: its measurements, and its result for comparison."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Figures = dict[str, float]
Product = TypeVar("Product")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run of a candidate."""

    figures: Figures
    product: Callable[[], Any]
    """Returns the frame, table, records or summary; called only for a comparison."""


def timed(work: Callable[[], Product]) -> tuple[Product, Figures]:
    """Run ``work``; its wall-clock seconds, its processor seconds (of all threads), and the bytes
    of peak memory above the start.
    """
    gc.collect()
    # Reset the peak; only Linux supports this.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start = _kilobytes("VmRSS")
    started, busy = time.perf_counter(), time.process_time()
    product = work()
    figures = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - busy}
    return product, figures | {"bytes": (_kilobytes("VmHWM") - start) * 1024}


def framed(work: Callable[[], Any]) -> Outcome:
    """The same for a pandas frame; also the peak in multiples of its memory."""
    frame, figures = timed(work)
    size = float(frame.memory_usage(index=False).sum())
    return Outcome(figures | {"frames": figures["bytes"] / size}, lambda: frame)


def _kilobytes(what: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1])
    raise RuntimeError(f"no {what} in /proc/self/status")
