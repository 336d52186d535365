"""New interpreters: the time of an import, and of a complete script from start to exit."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from speed.outcome import Figures, Outcome
from speed.service import built

_IMPORT = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def importing(module: str) -> Figures:
    """Seconds of the import, in a new interpreter."""
    return {"seconds": float(_python("-c", _IMPORT.format(module)))}


def _python(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


def script(name: str) -> Outcome:
    """Seconds of a script from the start of its interpreter to its exit; it prints a sum."""
    path = os.path.join(os.path.dirname(__file__), "scripts", f"{name}.py")
    started = time.perf_counter()
    printed = _python(path)
    seconds = time.perf_counter() - started
    rows, total = printed.split()
    return Outcome({"seconds": seconds}, lambda: {"rows": int(rows), "sum of value": float(total)})


def wheel() -> Figures:
    """The size of the wheel, in megabytes."""
    (path,) = (built() / "release-wheels").glob("*.whl")
    return {"megabytes": path.stat().st_size / 1e6}
