"""Kills of syncs into one kind of target, seed by seed."""

from __future__ import annotations

import multiprocessing
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from crash.feed_points import Broken

from target_kills.harness import PLANT, Harness
from target_kills.oracle import Oracle
from target_kills.places import DRIVERS, new_place

if TYPE_CHECKING:
    from pathlib import Path

BATCHES = (1, 1, 4, 30)


class Campaign:
    """Interrupts runs of one kind of target; with ``restart`` some by a restart of its server."""

    def __init__(
        self, kind: str, folder: Path, server: Any = None, *, restart: bool = False
    ) -> None:
        self.kind, self.folder, self.server = kind, folder, server
        self.ways = [None, None, self.restart] if restart else [None]
        self.done: Counter[str] = Counter()
        """The runs that ended in each way, pages, and points that were revised and withdrawn."""
        self.broken: list[str] = []
        modules = ["siteline", DRIVERS[kind]]
        multiprocessing.get_context("forkserver").set_forkserver_preload(modules)

    def restart(self) -> None:
        self.server.kill()
        self.server.start()

    def seed(self, seed: int, kills: int) -> None:
        """Interrupts runs until something is broken. A place is replaced after some runs."""
        chance, number = random.Random(seed), 0
        while kills > 0 and not self.broken:
            number, most = number + 1, min(kills, PLANT.kills_per_store)
            kills -= most
            folder = self.folder / f"s{seed}_{number}"
            harness = Harness(
                folder, seed * 1_000 + number, new_place(self.kind, folder, self.server)
            )
            oracle = Oracle(harness)
            try:
                self.interrupt_runs(oracle, chance, most)
            except Broken as broken:
                self.broken.append(f"seed {seed}, place {number}, run {harness.runs}: {broken}")
            finally:
                harness.end()
                harness.sandbox.close()
                oracle.store.close()
            self.done.update(pages=oracle.pages, revised=oracle.revised, withdrawn=oracle.withdrawn)

    def interrupt_runs(self, oracle: Oracle, chance: random.Random, kills: int) -> None:
        """Run, be interrupted, compare; in the end compare with the truth."""
        harness, usual = oracle.harness, 1.0
        while kills > 0:
            harness.concurrency = chance.choice(PLANT.concurrency)
            harness.batch, harness.compact = chance.choice(BATCHES), chance.random() < 0.1
            outcome = harness.run(chance.uniform(0, 1.2) * usual, chance.choice(self.ways))
            self.done[outcome.interrupted or ("failed" if outcome.failed else "ended")] += 1
            kills -= outcome.interrupted is not None
            if outcome.done and not outcome.interrupted:
                usual = 0.7 * usual + 0.3 * outcome.seconds
            oracle.check(outcome, read=chance.random() < 0.3)
            if outcome.done or chance.random() < 0.3:
                oracle.advance(chance.choice(PLANT.advance if outcome.done else range(1, 3)))
        # After this the lateness of all windows is over.
        oracle.advance(72)
        while not (outcome := harness.run()).done:
            oracle.check(outcome)
        oracle.check(outcome, read=True)
        oracle.check_end()
