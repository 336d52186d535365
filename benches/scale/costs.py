"""What a run costs a process: seconds, memory, the store's file; with the real number of series.

The service runs in this process and the sync in another one: ``python -m scale.costs``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import siteline

from scale.plant import CUTS, NOW, TAGS, Cut, points, service


@dataclass(frozen=True)
class Job:
    """A measured run: so many feeds of a cut, so many minutes after the run before it."""

    cut: int
    """Index in :data:`CUTS`."""
    feeds: int
    minutes: int
    """Minutes of fresh points; as many were read before, and are read again (``overlap=``)."""
    page_size: int
    concurrency: int = 1


MINUTES = (60, 60, 30, 10)
"""Minutes of the measured run of each cut; wider feeds have more points a minute."""
FEEDS = (40, 16, 8, 8)


def measured(job: Job) -> dict[str, float]:
    """The figures of the second of two runs, in a new process."""
    cut = CUTS[job.cut]
    start = NOW.replace(minute=0) - timedelta(minutes=job.minutes)
    frame = points(cut.lines * TAGS, start, 2 * job.minutes + 10)
    now = start + timedelta(minutes=job.minutes + 5)
    with service(frame, now=now) as sandbox, tempfile.TemporaryDirectory() as folder:
        del frame
        given = asdict(job) | {"path": f"{folder}/plant.siteline", "since": start.isoformat()}
        command = [sys.executable, "-m", "scale.costs", json.dumps(given)]
        with subprocess.Popen(
            command,
            env=os.environ | sandbox.env(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the process has no pipes")
            process.stdout.readline()
            sandbox.clock.advance(f"{job.minutes}m")
            process.stdin.write("go\n")
            process.stdin.close()
            line = process.stdout.readline()
        if process.returncode:
            raise RuntimeError(f"{job} failed")
        figures: dict[str, float] = json.loads(line)
    return figures


def growth(cut: Cut, hours: int) -> float:
    """Bytes of the store for each point, after a run each hour; no point is revised."""
    start = NOW.replace(minute=0)
    frame = points(cut.lines * TAGS, start, (hours + 1) * 60)
    with service(frame, now=start + timedelta(minutes=65)) as sandbox:
        return _grown(sandbox, start, hours)


def growth_with_revisions(hours: int) -> float:
    """The same of the sandbox's own plant, whose points come late and are corrected."""
    start = NOW.replace(minute=0)
    with siteline.Sandbox(now=(start + timedelta(minutes=65)).isoformat()) as sandbox:
        return _grown(sandbox, start, hours)


def _grown(sandbox: siteline.Sandbox, start: datetime, hours: int) -> float:
    client, feed = sandbox.client(), _feed("feed", start.isoformat(), 10_000, 60)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plant.siteline"
        with siteline.Store(path) as store:
            for _ in range(hours):
                if not client.sync(feed, store).complete:
                    raise RuntimeError("the run is not complete")
                sandbox.clock.advance("1h")
            stored = len(store.points(feed))
        return path.stat().st_size / stored


def _feed(name: str, since: str, page_size: int, overlap: int) -> siteline.Feed:
    return siteline.Feed(
        name,
        site="S1",
        since=since,
        interval="1m",
        page_size=page_size,
        overlap=timedelta(minutes=overlap),
    )


def _sync(given: dict[str, Any]) -> None:
    """In the other process: a first run, and when the clock has been set, the measured one."""
    client = siteline.Client.from_env()
    feeds = [
        _feed(f"feed {number}", given["since"], given["page_size"], given["minutes"])
        for number in range(given["feeds"])
    ]
    with siteline.Store(given["path"]) as store:
        client.sync(feeds, store, concurrency=8)
        print("ready", flush=True)
        sys.stdin.readline()
        busy = time.process_time()
        plan = client.plan(feeds, store)
        planned = time.process_time() - busy
        started, busy = time.perf_counter(), time.process_time()
        report = client.sync(feeds, store, concurrency=given["concurrency"])
        seconds, cpu = time.perf_counter() - started, time.process_time() - busy
        if not report.complete or report.requests < len(plan.tasks) or not report.inserted:
            raise RuntimeError(str(report))
    print(
        json.dumps(
            {
                "planning": planned,
                "seconds": seconds,
                "cpu": cpu,
                "pages": report.pages,
                "points": report.inserted + report.revised + report.unchanged,
                "megabytes": _peak() / 1e3,
            }
        )
    )


def _peak() -> int:
    """The most memory that the process has had, in kilobytes; only Linux tells."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    _sync(json.loads(sys.argv[1]))
