"""The campaigns: kills at random moments; write-class system calls of a run that fail."""

import errno
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from crash.feed_points import TruthCache
from crash.harness import Harness, Outcome, Work, build_shim
from crash.oracle import Broken, Oracle
from crash.plants import NARROW, Plant


@dataclass
class Result:
    name: str
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
    """Runs all campaigns of a plant."""

    def __init__(self, folder: Path, seed: int, plant: Plant = NARROW) -> None:
        self.folder, self.seed, self.plant = folder / plant.name, seed, plant
        self.folder.mkdir(exist_ok=True)
        self.random = random.Random(seed)
        self.reached: Counter[str] = Counter()

    def missing(self) -> list[str]:
        """Returns the states without which a campaign of the wide plant proves nothing."""
        wanted = ("kills with recent points", "moves into blocks")
        return [state for state in wanted if not self.reached[state]]

    def random_kills(self, kills: int) -> Result:
        """Kill a run at a random moment, again and again (S1)."""
        result = Result("SIGKILL at random moments")
        number = 0
        while result.interrupted < kills:
            number += 1
            harness = Harness(self.folder / f"random-{number}", self.seed + number, self.plant)
            most = min(self.plant.kills_per_store, kills - result.interrupted)
            try:
                self._kill_runs(harness, result, most)
            except Broken as broken:
                result.broken.append(f"store {number}: {broken}")
            finally:
                harness.sandbox.close()
        result.trials = result.interrupted
        return result

    def _kill_runs(self, harness: Harness, result: Result, kills: int) -> None:
        oracle = Oracle(harness, self.reached)
        # The first run is not killed: it measures how long a run takes on this machine.
        started = time.monotonic()
        outcome = harness.run()
        usual = time.monotonic() - started
        oracle.check(0, outcome)
        result.pages += oracle.sequence
        self._advance(harness, oracle)
        work = self._work(oracle)
        while kills > 0:
            before = oracle.sequence
            harness.concurrency = self.random.choice(self.plant.concurrency)
            oracle.begin(work)
            started = time.monotonic()
            outcome = harness.run_and_kill(self.random.uniform(0, 1.2) * usual, work)
            if outcome.was_killed:
                kills -= 1
                result.interrupted += 1
            elif outcome.done:
                usual = 0.7 * usual + 0.3 * (time.monotonic() - started)
            else:
                raise Broken(f"I6: the run ended with {outcome.code}: {outcome.errors[-500:]}")
            oracle.check(before, outcome, work)
            result.pages += oracle.sequence - before
            if outcome.done:
                self._advance(harness, oracle)
                work = self._work(oracle)
        oracle.check_end()

    def _advance(self, harness: Harness, oracle: Oracle) -> None:
        """Advance the service's clock, which is stopped during a run, and start a new ledger."""
        harness.sandbox.clock.advance(f"{self.random.choice(self.plant.advance)}h")
        oracle.others, oracle.dropped = harness.served(), 0
        harness.ledger.unlink(missing_ok=True)

    def _work(self, oracle: Oracle) -> Work:
        """Chooses the work of the next runs before their sync, until one has ended."""
        if self.plant is NARROW:
            return Work()
        name = self.random.choice(sorted(oracle.feeds))
        oracle.remember(name)
        match self.random.randrange(6):
            case 0:
                now = oracle.harness.sandbox.clock.now()
                # Only data that was read can be forgotten. The last run was up to a day ago.
                before = now - timedelta(hours=self.random.randrange(26, 60))
                return Work(forget={name: before.isoformat()})
            case 1:
                return Work(compact=True)
        return Work()

    def every_call(self, step: int) -> Iterator[Result]:
        """Let each system call of a run of some pages fail, in each mode (S2, S3, S4)."""
        return self._fail_calls(lambda calls: range(1, calls + 1, step))

    def some_calls(self, most: int) -> Iterator[Result]:
        """Lets some system calls of such a run fail, in each mode."""

        def choose(calls: int) -> Sequence[int]:
            return sorted(self.random.sample(range(1, calls + 1), min(most, calls)))

        return self._fail_calls(choose)

    def _fail_calls(self, choose: Callable[[int], Sequence[int]]) -> Iterator[Result]:
        harness = Harness(self.folder / "calls", self.seed, self.plant)
        try:
            shim, truth = build_shim(self.folder), TruthCache(harness)
            try:
                copy = self._prepare(harness)
            except Broken as broken:
                yield Result("nothing, before the faults", 1, broken=[str(broken)])
                return
            for mode in FAILURE_MODES:
                tally = harness.folder / "tally"
                harness.restore(copy)
                harness.concurrency = 1
                harness.run(shim=shim, mode="count", calls=mode.calls, tally=str(tally))
                result = Result(mode.name)
                for call in choose(int(tally.read_text())):
                    harness.restore(copy)
                    harness.concurrency = self.random.choice(self.plant.concurrency)
                    oracle = Oracle(harness, self.reached, truth)
                    try:
                        self._inject(oracle, shim, mode, call, result)
                    except Broken as broken:
                        result.broken.append(f"call {call}: {broken}")
                    result.trials += 1
                yield result
        finally:
            harness.sandbox.close()

    def _prepare(self, harness: Harness) -> Path:
        """Copies a store that has a long next run, which moves recent points if any."""
        for hours in self.plant.before_calls:
            first = harness.run()
            if not first.done:
                raise Broken(
                    f"I6: a run without a fault ended with {first.code}: {first.errors[-500:]}"
                )
            harness.sandbox.clock.advance(f"{hours}h")
        harness.ledger.unlink()
        copy = harness.save()
        oracle = Oracle(harness)
        oracle.follow()
        uninterrupted = harness.run()
        oracle.check(oracle.sequence, uninterrupted)
        if uninterrupted.acknowledged < 3:
            raise RuntimeError(f"a run of {uninterrupted.acknowledged} pages is too short")
        if self.plant is not NARROW and not oracle.reached["moves into blocks"]:
            raise Broken("a run that leaves a stretch of time moves no recent points into blocks")
        return copy

    def _inject(
        self, oracle: Oracle, shim: Path, mode: FailureMode, call: int, result: Result
    ) -> None:
        harness = oracle.harness
        oracle.follow()
        before = oracle.sequence
        fault = {"mode": mode.action, "calls": mode.calls, "at": str(call)}
        fault |= {"errno": str(mode.errno), "times": str(mode.times)}
        outcome = harness.run(None, shim=shim, **fault)
        self._check_outcome(mode, outcome)
        result.interrupted += not outcome.done
        oracle.check(before, outcome)
        result.pages += oracle.sequence - before
        if outcome.was_killed and self.plant is not NARROW:
            self._store_page(oracle)
        # The next run must work without a repair.
        before = oracle.sequence
        again = harness.run()
        if not again.done:
            raise Broken(f"I6: the next run ended with {again.code}: {again.errors[-500:]}")
        oracle.check(before, again)

    def _store_page(self, oracle: Oracle) -> None:
        """Stores only the page that the kill prevented, to see whether it moves recent points."""
        before, recent = oracle.sequence, oracle.recent
        one_by_one = oracle.harness.concurrency == 1
        outcome = oracle.harness.run(Work(most=1))
        if not (outcome.stopped or outcome.done):
            raise Broken(f"I6: the next page ended with {outcome.code}: {outcome.errors[-500:]}")
        oracle.check(before, outcome)
        # With several requests at a time it may be another page.
        self.reached["kills in a move"] += one_by_one and not recent <= oracle.recent

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
