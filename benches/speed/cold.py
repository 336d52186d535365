"""New interpreters: the time of an import, and of a complete script from start to exit."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from speed.outcome import Figures, Outcome
from speed.service import output

_IMPORT = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def importing(module: str) -> Figures:
    """Seconds of the import, in a new interpreter."""
    return {"seconds": float(output(sys.executable, "-c", _IMPORT.format(module)))}


def script(name: str) -> Outcome:
    """Seconds of a script from the start of its interpreter to its exit; it prints a sum."""
    path = Path(__file__).parent / "scripts" / f"{name}.py"
    started = time.perf_counter()
    rows, total = output(sys.executable, path).split()
    seconds = time.perf_counter() - started
    return Outcome({"seconds": seconds}, lambda: {"rows": int(rows), "sum of value": float(total)})
