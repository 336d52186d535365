"""The campaigns: kills at random moments; each write-class system call of a run of three pages."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crash.harness import Harness, Outcome, build_shim
from crash.oracle import Broken, Oracle

KILLS_PER_STORE = 40
"""Kills of one store before it is compared with the truth and replaced by a new one."""


@dataclass
class Result:
    """The outcome of a campaign."""

    name: str
    wanted: int
    trials: int = 0
    interrupted: int = 0
    """Trials in which the fault interrupted the run."""
    pages: int = 0
    """Pages committed."""
    broken: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FailureMode:
    """How system calls are made to fail."""

    name: str
    action: str
    calls: str
    errno: int = 0
    times: int = 1
    failures: tuple[str, ...] = ()
    """The exceptions that the run may raise."""


FULL = ("StoreFull",)
ERRORS = ("StoreError", "StoreFull")
FOREVER = 1_000_000
FAILURE_MODES = (
    FailureMode("SIGKILL before each call", "kill", "all"),
    FailureMode("SIGKILL within each write", "torn", "write"),
    # SQLite does not report why it could not create shared memory: StoreError is correct too.
    FailureMode("ENOSPC at each write, once", "fail", "write", errno.ENOSPC, 1, ERRORS),
    FailureMode("ENOSPC from each write on", "fail", "write", errno.ENOSPC, FOREVER, FULL),
    FailureMode("EIO at each sync, once", "fail", "sync", errno.EIO, 1, ERRORS),
    FailureMode("EIO at each write, once", "fail", "write", errno.EIO, 1, ERRORS),
)


class Campaign:
    """Runs all campaigns, until the time is used up."""

    def __init__(self, folder: Path, seed: int, until: float) -> None:
        """Set up; nothing runs yet."""
        self.folder, self.seed, self.until = folder, seed, until
        self.random = random.Random(seed)

    def time_is_up(self) -> bool:
        """Whether no further trial may begin."""
        return time.monotonic() > self.until

    def random_kills(self, kills: int) -> Result:
        """Kill a run at a random moment, again and again (S1)."""
        result = Result("SIGKILL at random moments", kills)
        number = 0
        while result.interrupted < kills and not self.time_is_up():
            number += 1
            harness = Harness(self.folder / f"random-{number}", self.seed + number)
            try:
                self._kill_runs(harness, result, min(KILLS_PER_STORE, kills - result.interrupted))
            except Broken as broken:
                result.broken.append(f"store {number}: {broken}")
            finally:
                harness.sandbox.close()
        result.trials = result.interrupted
        return result

    def _kill_runs(self, harness: Harness, result: Result, kills: int) -> None:
        oracle = Oracle(harness)
        # The first run is not killed: it measures how long a run takes on this machine.
        started = time.monotonic()
        outcome = harness.run()
        usual = time.monotonic() - started
        oracle.check(0, outcome)
        result.pages += oracle.sequence
        self._advance(harness, oracle)
        while kills > 0 and not self.time_is_up():
            before = oracle.sequence
            started = time.monotonic()
            outcome = harness.run_and_kill(self.random.uniform(0, 1.2) * usual)
            if outcome.was_killed:
                kills -= 1
                result.interrupted += 1
            elif outcome.done:
                usual = 0.7 * usual + 0.3 * (time.monotonic() - started)
            else:
                raise Broken(f"I6: the run ended with {outcome.code}: {outcome.errors[-500:]}")
            oracle.check(before, outcome)
            result.pages += oracle.sequence - before
            if outcome.done:
                self._advance(harness, oracle)
        oracle.check_end()

    def _advance(self, harness: Harness, oracle: Oracle) -> None:
        """Advance the service's clock, which is stopped during a run, and start a new ledger."""
        harness.sandbox.clock.advance(f"{self.random.randrange(1, 5)}h")
        oracle.others, oracle.kills = harness.served(), 0
        harness.ledger.unlink(missing_ok=True)

    def every_call(self, step: int) -> Iterator[Result]:
        """Let each system call of a run of three pages fail, in each mode (S2, S3, S4)."""
        shim = build_shim(self.folder)
        for mode in FAILURE_MODES:
            harness = Harness(self.folder / mode.name.replace(" ", "-"), self.seed)
            try:
                yield self._one_mode(harness, shim, mode, step)
            finally:
                harness.sandbox.close()

    def _one_mode(self, harness: Harness, shim: Path, mode: FailureMode, step: int) -> Result:
        first = harness.run()
        if not first.done:
            raise RuntimeError(f"the first run failed: {first.errors}")
        harness.sandbox.clock.advance("3h")
        harness.ledger.unlink()
        copy = harness.save()
        tally = harness.folder / "tally"
        uninterrupted = harness.run(shim=shim, mode="count", calls=mode.calls, tally=str(tally))
        if uninterrupted.acknowledged < 3:
            raise RuntimeError(f"a run of {uninterrupted.acknowledged} pages is too short")
        calls = range(1, int(tally.read_text()) + 1, step)
        result = Result(mode.name, len(calls))
        for call in calls:
            if self.time_is_up():
                break
            harness.restore(copy)
            try:
                self._inject(harness, shim, mode, call, result)
            except Broken as broken:
                result.broken.append(f"call {call}: {broken}")
            result.trials += 1
        return result

    def _inject(
        self, harness: Harness, shim: Path, mode: FailureMode, call: int, result: Result
    ) -> None:
        oracle = Oracle(harness)
        oracle.follow()
        before = oracle.sequence
        fault = {"mode": mode.action, "calls": mode.calls, "at": str(call)}
        fault |= {"errno": str(mode.errno), "times": str(mode.times)}
        outcome = harness.run(shim=shim, **fault)
        self._check_outcome(mode, outcome)
        result.interrupted += not outcome.done
        oracle.check(before, outcome)
        result.pages += oracle.sequence - before
        # The next run must work without a repair.
        before = oracle.sequence
        again = harness.run()
        if not again.done:
            raise Broken(f"I6: the next run ended with {again.code}: {again.errors[-500:]}")
        oracle.check(before, again)

    @staticmethod
    def _check_outcome(mode: FailureMode, outcome: Outcome) -> None:
        if mode.action in {"kill", "torn"}:
            if not (outcome.was_killed or outcome.done):
                raise Broken(f"the run ended with {outcome.code}: {outcome.errors[-500:]}")
        elif not outcome.done and outcome.failed not in mode.failures:
            raise Broken(
                f"the run raised {outcome.failed} and ended with {outcome.code}: "
                f"{outcome.errors[-500:]}"
            )
