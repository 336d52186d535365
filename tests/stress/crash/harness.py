"""A sandbox, a store in a folder, and a child process that syncs the sandbox into the store."""

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import siteline

from crash.plants import NARROW, Plant

WORKER = Path(__file__).with_name("worker.py")
SHIM = Path(__file__).with_name("shim.c")
TIMEOUT = 120.0
NAME = "line-1"


def build_shim(folder: Path) -> Path:
    library = folder / "shim.so"
    compiler = os.environ.get("CC", "cc")
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SHIM), "-ldl"]
    subprocess.run(command, check=True)
    return library


@dataclass(frozen=True)
class Work:
    """The work of a child in addition to a whole sync."""

    forget: dict[str, str] = field(default_factory=dict)
    """Before the sync: the time before which the points of a feed are forgotten."""
    compact: bool = False
    """Before the sync."""
    most: int | None = None
    """The pages to store; the sync is interrupted after these."""


@dataclass
class Outcome:
    code: int
    acknowledged: int = 0
    """Pages of this run that the child reported as committed."""
    done: bool = False
    stopped: bool = False
    """Whether the run ended after the pages that it had to store."""
    failed: str | None = None
    """The class of the exception that the child reported."""
    forgotten: list[str] = field(default_factory=list)
    """The feeds that the child reported as forgotten."""
    compacted: bool = False
    errors: str = ""
    """The text on standard error."""

    @property
    def was_killed(self) -> bool:
        return self.code < 0


@dataclass
class Harness:
    """One service, and one store at a time."""

    folder: Path
    seed: int
    plant: Plant = NARROW
    concurrency: int = 1
    """Requests that the next run may have under way."""
    sandbox: siteline.Sandbox = field(init=False)
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = self.plant.start(self.seed)
        self.environment = {**os.environ, **self.sandbox.env()}
        self.data.mkdir(parents=True, exist_ok=True)

    @property
    def data(self) -> Path:
        """The folder in which system calls fail."""
        return self.folder / "data"

    @property
    def store(self) -> Path:
        return self.data / "plant.siteline"

    @property
    def ledger(self) -> Path:
        return self.data / "ledger.txt"

    def begin(
        self, work: Work | None = None, *, shim: Path | None = None, **crash: str
    ) -> subprocess.Popen[bytes]:
        """Start a child; with ``shim`` its system calls fail as ``crash`` specifies."""
        environment = dict(self.environment)
        if shim is not None:
            environment |= {f"CRASH_{name.upper()}": value for name, value in crash.items()}
            environment |= {"LD_PRELOAD": str(shim), "CRASH_FOLDER": str(self.data)}
        job = {
            "now": self.sandbox.clock.now().isoformat(),
            "store": str(self.store),
            "ledger": str(self.ledger),
            "feeds": self.plant.feeds(),
            "concurrency": self.concurrency,
            **asdict(work or Work()),
        }
        return subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(job)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # The first line is read separately; a buffer would take the lines after it.
            bufsize=0,
        )

    def run(self, work: Work | None = None, *, shim: Path | None = None, **crash: str) -> Outcome:
        return self.end(self.begin(work, shim=shim, **crash))

    def run_and_kill(self, delay: float, work: Work | None = None) -> Outcome:
        """Run a child, and kill it ``delay`` seconds after it opened the store."""
        child = self.begin(work)
        assert child.stdout is not None
        first = child.stdout.readline()
        timer = threading.Timer(delay, child.kill)
        timer.start()
        try:
            return self.end(child, first)
        finally:
            timer.cancel()

    @staticmethod
    def end(child: subprocess.Popen[bytes], reports: bytes = b"") -> Outcome:
        """Wait for a child, and read its reports."""
        remaining, errors = child.communicate(timeout=TIMEOUT)
        outcome = Outcome(child.returncode, errors=errors.decode(errors="replace"))
        for line in (reports + remaining).decode().splitlines():
            word, _, value = line.partition(" ")
            if word == "ack":
                outcome.acknowledged = int(value)
            elif word == "failed":
                outcome.failed = value
            elif word == "forgot":
                outcome.forgotten.append(value)
            elif word in {"compacted", "stopped", "done"}:
                setattr(outcome, word, True)
        return outcome

    def save(self) -> Path:
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.data, copy)
        return copy

    def restore(self, copy: Path | None) -> None:
        """Put the copy back, or an empty folder."""
        shutil.rmtree(self.data, ignore_errors=True)
        if copy is None:
            self.data.mkdir()
        else:
            shutil.copytree(copy, self.data)

    def counted(self) -> int:
        clock = siteline.testing.Clock(self.sandbox.clock.now().isoformat())
        client = self.sandbox.client(clock=clock, ledger=str(self.ledger))
        return client.allowance.used

    def requested(self) -> int:
        return self.sandbox.stats.data_requests

    def served(self) -> int:
        """The number of data requests that the service received on this day of its clock."""
        day = self.sandbox.clock.now().date()
        by_day: dict[Any, int] = self.sandbox.stats.data_requests_by_day
        return by_day.get(day, by_day.get(day.isoformat(), 0))
