"""How long Spark takes for what one scan reads: local[2], warm, two weeks of a site by the minute.

Run it in the environment of ``make campaigns ONLY=spark``: ``PYTHONPATH=tests/python target/spark-venv/bin/python
benches/spark_read.py``. The sandbox has a process of its own, as a service has.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import siteline
import siteline.spark
from kit import spark as engine

RANGE = {"start": "2026-11-01", "end": "2026-11-15", "interval": "1m"}
SERVER = """
import json, sys, siteline
with siteline.Sandbox(now="2026-11-20T00:00:00Z", max_page_size=50_000) as sandbox:
    print(json.dumps(sandbox.env()), flush=True)
    sys.stdin.read()
"""


def best(read: Callable[[], int], times: int = 3) -> tuple[float, int]:
    """The seconds of the fastest of some reads, after one that warms up, and its points."""
    points, taken = read(), []
    for _ in range(times):
        begun = time.perf_counter()
        points = read()
        taken.append(time.perf_counter() - begun)
    return min(taken), points


def main() -> None:
    """Print one line."""
    import json

    server = [sys.executable, "-c", SERVER]
    with (
        subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as done,
        engine.session("local[2]") as spark,
    ):
        assert done.stdout is not None
        os.environ |= json.loads(done.stdout.readline())
        query = {"site": "S1", **RANGE, "page_size": 10_000}
        client = siteline.Client.from_env()
        siteline.spark.register(spark, client)
        siteline.spark.plan(spark, **query)
        frame = spark.read.format("siteline").options(**query).load()
        one, points = best(lambda: len(client.data(**query).collect()))
        many, same = best(lambda: int(frame.count()))
        assert points == same
        print(
            f"{points:,} points: one scan {one:.2f} s, Spark {many:.2f} s, {many / one:.2f} times"
        )
        assert done.stdin is not None
        done.stdin.close()


if __name__ == "__main__":
    main()
