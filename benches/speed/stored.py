"""Reads of a store with many points: 5 million, or 50 million with ``SITELINE_LONG=1``.

Each run syncs the store anew and reads it in another process: ``python -m speed.stored``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import siteline

from speed.measure import Row
from speed.outcome import framed
from speed.pages import FEED

Figures = dict[str, float]
IS_LONG = bool(os.environ.get("SITELINE_LONG"))
MILLIONS = 50 if IS_LONG else 5
DAYS = 58 * MILLIONS
"""The site of the sandbox has a million points in 58 days of minutes."""
NOW = "2026-11-20T00:00:00Z"


def many_points() -> Figures:
    """The early points, the number of points, the delays, and all points as a frame."""
    with siteline.Sandbox(now=NOW, late=False) as sandbox, tempfile.TemporaryDirectory() as folder:
        client, path = sandbox.client(), Path(folder) / "plant.siteline"
        since = sandbox.clock.now() - timedelta(days=DAYS)
        feed = siteline.Feed(FEED, site="S1", interval="1m", since=since, page_size=10_000)
        with siteline.Store(path) as store:
            early = client.sync(feed, store, until=since + timedelta(days=1))
            late = client.sync(feed, store)
        if not early.complete or not late.complete or late.inserted < MILLIONS * 950_000:
            raise RuntimeError(f"{early}\n{late}")
        expected = {"early": early.inserted, "all": early.inserted + late.inserted}
        given = {
            "path": str(path),
            "sequence": early[FEED].sequence,
            "expected": expected,
        }
        return _in_a_process(given)


def _in_a_process(given: dict[str, Any]) -> Figures:
    command = [sys.executable, "-m", "speed.stored", json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _read(given: dict[str, Any]) -> Figures:
    """The figures of a store that this process has not read before."""
    expected = given["expected"]
    with siteline.Store(given["path"], read_only=True) as store:
        as_of, early = _timed(lambda: store.as_of(FEED, given["sequence"]).to_arrow().num_rows)
        length, rows = _timed(lambda: len(store.points(FEED)))
        lateness, _ = _timed(lambda: store.lateness(FEED))
        outcome = framed(lambda: store.points(FEED).to_pandas(ids="category"))
        if not rows == len(outcome.product()) == expected["all"] or early != expected["early"]:
            raise RuntimeError(f"{early} and {rows} points, not {expected}")
        frames = outcome.figures["frames"]
    return {
        "as of": as_of,
        "length": length,
        "lateness": lateness,
        "frames": frames,
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


MANY = "stored:many_points"
WHAT = f"a store of {MILLIONS} M points"
# What is looked up in the directory: a tenth of the points, a tenth of the time.
LOOK_UP = 0.1 * MILLIONS / 50
ROWS = [
    replace(row, slow=(row.ours,))
    for row in (
        Row(f"{WHAT}, to pandas: peak", "frames", MANY, unit="frames", bar=1.3),
        Row(f"{WHAT}: as_of an early page", "as of", MANY, bar=LOOK_UP),
        Row(f"{WHAT}: len(points)", "length", MANY, bar=LOOK_UP),
        Row(f"{WHAT}: lateness", "lateness", MANY, bar=LOOK_UP),
    )
]


if __name__ == "__main__":
    print(json.dumps(_read(json.loads(sys.argv[1]))))
