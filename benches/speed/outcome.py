"""The outcome of a candidate: its measurements, and its result for comparison."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Figures = dict[str, float]
Product = TypeVar("Product")


class Outcome(NamedTuple):
    """The outcome of one run of a candidate."""

    figures: Figures
    product: Callable[[], Any]
    """Returns the frame, table, records or summary; called only for a comparison."""


@contextmanager
def timing() -> Iterator[Figures]:
    """The figures of a block, which are complete after it.

    These are the seconds by the clock, the processor seconds of all threads, and the peak memory
    above the start in megabytes.
    """
    figures: Figures = {}
    gc.collect()
    # Reset the peak; only Linux supports this.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start = of_process("status", "VmRSS")
    started, busy = time.perf_counter(), time.process_time()
    yield figures
    figures["seconds"], figures["cpu"] = time.perf_counter() - started, time.process_time() - busy
    figures["megabytes"] = (of_process("status", "VmHWM") - start) * 1024 / 1e6


def timed(work: Callable[[], Product]) -> tuple[Product, Figures]:
    """Runs ``work``; returns its result and its figures."""
    with timing() as figures:
        product = work()
    return product, figures


def framed(work: Callable[[], Any]) -> Outcome:
    """The same for a pandas frame; also the peak in multiples of its memory."""
    frame, figures = timed(work)
    size = frame.memory_usage(index=False).sum() / 1e6
    return Outcome(figures | {"frames": float(figures["megabytes"] / size)}, lambda: frame)


def of_process(file: str, what: str) -> int:
    """A number in a file of ``/proc/self``."""
    lines = Path("/proc/self", file).read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))
