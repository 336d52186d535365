"""The campaigns: kills at random moments; each write-class system call of a run of three pages."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crash.stage import Outcome, Stage, build_shim
from crash.witness import Broken, Witness

LIFE = 40
"""So many kills befall one store before it is held against the truth and a new one begins."""


@dataclass
class Result:
    """What came of a campaign."""

    name: str
    wanted: int
    trials: int = 0
    struck: int = 0
    """Trials in which the fault found something to strike."""
    pages: int = 0
    """Pages committed."""
    broken: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Way:
    """A way in which system calls go wrong."""

    name: str
    mode: str
    calls: str
    errno: int = 0
    times: int = 1
    failures: tuple[str, ...] = ()
    """What the run may raise; nothing else."""


FULL = ("StoreFull",)
ERRORS = ("StoreError", "StoreFull")
FOREVER = 1_000_000
WAYS = (
    Way("SIGKILL before each call", "kill", "all"),
    Way("SIGKILL within each write", "torn", "write"),
    # SQLite does not tell why shared memory could not be made; when asked, there is room again.
    Way("ENOSPC at each write, once", "fail", "write", errno.ENOSPC, 1, ERRORS),
    Way("ENOSPC from each write on", "fail", "write", errno.ENOSPC, FOREVER, FULL),
    Way("EIO at each sync, once", "fail", "sync", errno.EIO, 1, ERRORS),
    Way("EIO at each write, once", "fail", "write", errno.EIO, 1, ERRORS),
)


class Campaign:
    """All of them, within the time there is."""

    def __init__(self, folder: Path, seed: int, until: float) -> None:
        """Nothing is run yet."""
        self.folder, self.seed, self.until = folder, seed, until
        self.chance = random.Random(seed)

    def time_is_up(self) -> bool:
        """Whether no further trial may begin."""
        return time.monotonic() > self.until

    def random_kills(self, kills: int) -> Result:
        """Kill a run at a random moment, again and again (S1)."""
        result = Result("SIGKILL at random moments", kills)
        life = 0
        while result.struck < kills and not self.time_is_up():
            life += 1
            stage = Stage(self.folder / f"random-{life}", self.seed + life)
            try:
                self._one_life(stage, result, min(LIFE, kills - result.struck))
            except Broken as broken:
                result.broken.append(f"store {life}: {broken}")
            finally:
                stage.sandbox.close()
        result.trials = result.struck
        return result

    def _one_life(self, stage: Stage, result: Result, kills: int) -> None:
        witness = Witness(stage)
        # The first run is let go to its end: how long one takes is this machine's affair.
        begun = time.monotonic()
        outcome = stage.run()
        usual = time.monotonic() - begun
        witness.check(0, outcome)
        result.pages += witness.sequence
        self._go_on(stage, witness)
        while kills > 0 and not self.time_is_up():
            before = witness.sequence
            begun = time.monotonic()
            outcome = stage.run_and_kill(self.chance.uniform(0, 1.2) * usual)
            if outcome.was_killed:
                kills -= 1
                result.struck += 1
            elif outcome.done:
                usual = 0.7 * usual + 0.3 * (time.monotonic() - begun)
            else:
                raise Broken(f"I6: it ended with {outcome.code}: {outcome.errors[-500:]}")
            witness.check(before, outcome)
            result.pages += witness.sequence - before
            if outcome.done:
                self._go_on(stage, witness)
        witness.check_end()

    def _go_on(self, stage: Stage, witness: Witness) -> None:
        """Time goes by; within a run the service's answers stay what they are."""
        stage.sandbox.clock.advance(f"{self.chance.randrange(1, 5)}h")
        witness.others, witness.kills = stage.seen(), 0
        stage.ledger.unlink(missing_ok=True)

    def every_call(self, step: int) -> Iterator[Result]:
        """Let each system call of a run of three pages go wrong, in each way (S2, S3, S4)."""
        shim = build_shim(self.folder)
        for way in WAYS:
            stage = Stage(self.folder / way.name.replace(" ", "-"), self.seed)
            try:
                yield self._one_way(stage, shim, way, step)
            finally:
                stage.sandbox.close()

    def _one_way(self, stage: Stage, shim: Path, way: Way, step: int) -> Result:
        first = stage.run()
        if not first.done:
            raise RuntimeError(f"the first run failed: {first.errors}")
        stage.sandbox.clock.advance("3h")
        stage.ledger.unlink()
        copy = stage.save()
        tally = stage.folder / "tally"
        whole = stage.run(shim=shim, mode="count", calls=way.calls, tally=str(tally))
        if whole.acknowledged < 3:
            raise RuntimeError(f"a run of {whole.acknowledged} pages is too short")
        calls = range(1, int(tally.read_text()) + 1, step)
        result = Result(way.name, len(calls))
        for call in calls:
            if self.time_is_up():
                break
            stage.restore(copy)
            try:
                self._strike(stage, shim, way, call, result)
            except Broken as broken:
                result.broken.append(f"call {call}: {broken}")
            result.trials += 1
        return result

    def _strike(self, stage: Stage, shim: Path, way: Way, call: int, result: Result) -> None:
        witness = Witness(stage)
        witness.follow()
        before = witness.sequence
        told = {"mode": way.mode, "calls": way.calls, "at": str(call)}
        told |= {"errno": str(way.errno), "times": str(way.times)}
        outcome = stage.run(shim=shim, **told)
        self._judge(way, outcome)
        result.struck += not outcome.done
        witness.check(before, outcome)
        result.pages += witness.sequence - before
        # No repair: the next run goes on.
        before = witness.sequence
        again = stage.run()
        if not again.done:
            raise Broken(f"I6: the next run ended with {again.code}: {again.errors[-500:]}")
        witness.check(before, again)

    @staticmethod
    def _judge(way: Way, outcome: Outcome) -> None:
        if way.mode in {"kill", "torn"}:
            if not (outcome.was_killed or outcome.done):
                raise Broken(f"it ended with {outcome.code}: {outcome.errors[-500:]}")
        elif not outcome.done and outcome.failed not in way.failures:
            raise Broken(
                f"it raised {outcome.failed}, ended with {outcome.code}: {outcome.errors[-500:]}"
            )
