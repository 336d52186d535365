"""A sandbox with faults, and a process that syncs it into a target until it is killed."""

from __future__ import annotations

import math
import multiprocessing
import re
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import siteline
from crash.feed_points import Broken
from crash.plants import INTERVAL, Plant, loaded_points

from target_kills.worker import work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from target_kills.places import Place

TIMEOUT = 120.0
UNAVAILABLE = {"status": 503, "body": '{"error": "unavailable", "detail": "try again"}'}
FAULTS: list[dict[str, Any]] = [UNAVAILABLE, {"reset": True}, {"cut": 20}, {"delay": "1s"}]
"""Faults of some requests of a run. A reply that is cut is never whole, a 503 neither: after
a whole one the client would send its next request on a connection that the service has closed, and
the ledger would have a request that the service has not seen."""
FAULTY = re.compile(r"^siteline\.errors\.(ServiceUnavailable|TransportError|TruncatedBody):", re.M)
"""The errors that end a run if faults affect all attempts."""
LOST = re.compile(FAULTY.pattern + r"|^adbc_driver_manager\.\w+Error:", re.M)
"""The errors that may end a run if its server is restarted."""
PLANT = Plant("targets", ("L1", "L2"), 30, "90m", "1d", range(2, 9), (), (1, 1, 2), 50, series=5)


@dataclass
class Outcome:
    """What a run reported."""

    interrupted: str | None = None
    """How it was interrupted before it ended."""
    ack: int = 0
    """The pages that it reported as applied."""
    done: dict[str, tuple[int, ...]] | None = None
    """The counts of each feed, if the run ended."""
    failed: str | None = None
    """The exception that ended it."""
    seconds: float = 0
    """How long it took, the start of a process aside."""


class Harness:
    """One service, and one place that is synced into."""

    def __init__(self, folder: Path, seed: int, place: Place) -> None:
        """Starts the service. One series of each line has few ids, nulls and returned points."""
        folder.mkdir()
        self.folder, self.seed, self.place, self.runs = folder, seed, place, 0
        self.sandbox = PLANT.start(seed)
        points = loaded_points(replace(PLANT, series=1), seed + 1)
        points.loc[points.index % 5 == 0, "value"] = None
        points = points.drop(columns=["machine_id", "tag_guid"])
        none: dict[str, Any] = dict.fromkeys(("machine", "device", "tag"))
        self.sandbox.load(points, bucket=INTERVAL, **none)
        for row in points[::20].to_dict("records"):
            point = {"line": row["line_id"], **none}
            known, when = row["available_at"], row["timestamp"]
            self.sandbox.withdraw(when, at=known + timedelta(minutes=30), **point)
            self.sandbox.revise(when, 1.5, at=known + timedelta(hours=9), **point)
        self.feeds = [siteline.Feed(**feed) for feed in PLANT.feeds()]
        self.now, self.ledger = self.sandbox.clock.now(), folder / "ledger.txt"
        self.process: multiprocessing.process.BaseProcess | None = None
        self.concurrency, self.batch, self.compact = 1, 1, False
        """For the next run: requests in flight, pages in a transaction, whether it compacts."""

    def advance(self, hours: int) -> None:
        self.sandbox.clock.advance(hours * 3_600 + 10 - self.sandbox.clock.now().second)
        self.now = self.sandbox.clock.now()
        self.ledger.unlink(missing_ok=True)

    def begin(self) -> multiprocessing.process.BaseProcess:
        """The process that syncs: the one that there is, or a new one."""
        if self.process is None:
            self.pipe, end = multiprocessing.Pipe()
            arguments = (self.place, self.sandbox.env(), end)
            context = multiprocessing.get_context("forkserver")
            self.process = context.Process(target=work, args=arguments, daemon=True)
            self.process.start()
            end.close()
        return self.process

    def run(self, delay: float = math.inf, restart: Callable[[], object] | None = None) -> Outcome:
        """Run a sync. So long after it began it is killed, or the server is restarted."""
        self.runs += 1
        for number, fault in enumerate(FAULTS):
            seed = self.seed * 1_000_000 + self.runs * 10 + number
            self.sandbox.fault(on="data", chance=0.03, seed=seed, **fault)
        process = self.begin()
        job = {"feeds": PLANT.feeds(), "now": self.now.isoformat(), "ledger": str(self.ledger)}
        options = {"concurrency": self.concurrency, "batch": self.batch, "compact": self.compact}
        self.pipe.send({**job, **options})
        outcome, began, until = Outcome(), 0.0, time.monotonic() + TIMEOUT
        try:
            while not (outcome.done or outcome.failed):
                if self.pipe.poll(max(0, until - time.monotonic())):
                    setattr(outcome, *self.pipe.recv())
                    if not began:
                        began = time.monotonic()
                        until = began + min(delay, TIMEOUT)
                elif delay == math.inf or outcome.interrupted or not began:
                    raise Broken(f"a run has not ended after {TIMEOUT} s")
                else:
                    outcome.interrupted, until = "restart" if restart else "kill", until + TIMEOUT
                    (restart or process.kill)()
        except (EOFError, ConnectionResetError):
            if outcome.interrupted != "kill":
                raise Broken(f"the process ended by itself: {process.exitcode}") from None
        outcome.seconds = time.monotonic() - began
        self.sandbox.clear_faults()
        if outcome.interrupted == "kill":
            self.end()
        allowed = FAULTY if outcome.interrupted is None else LOST
        if outcome.failed and not allowed.search(outcome.failed):
            raise Broken(f"the run ended with {outcome.failed}")
        return outcome

    def end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None
