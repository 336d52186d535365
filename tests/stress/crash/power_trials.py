"""The trials of a loss of power (S14): a sync, a backup of its store, and a key that is saved."""

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import siteline

from crash.campaign import Result
from crash.feed_points import Broken, TruthCache
from crash.harness import Harness, build_shim
from crash.oracle import Oracle
from crash.power import Call, Disk, calls, put

SAMPLES = 4
"""Random states after each call, in addition to all lost and all kept."""
KEY = Path(__file__).parents[2] / "keys" / "pkcs8.pem"
RUNS = 25
"""After this number of states the next sync must work without a repair."""

BACKUP = """
import sys, siteline
with siteline.Store(sys.argv[1]) as store:
    store.backup(sys.argv[2])
print("done", flush=True)
"""
SAVE = """
import sys, siteline
key = siteline.PrivateKey.load(sys.argv[1])
key.save(sys.argv[2], overwrite=len(sys.argv) > 3)
print("done", flush=True)
"""


class PowerTrials:
    """Records each run once, and checks the states that a loss of power may leave."""

    def __init__(self, folder: Path, seed: int, *, step: int = 1, samples: int = SAMPLES) -> None:
        """``step``: after every n-th call only, and after each that says something."""
        self.folder, self.step, self.samples = folder, step, samples
        self.random = random.Random(seed)
        self.harness = Harness(folder / "power", seed)
        self.shim = build_shim(folder)
        self.log = folder / "calls"
        self.truth = TruthCache(self.harness)

    def close(self) -> None:
        self.harness.sandbox.close()

    def syncs(self) -> list[Result]:
        harness = self.harness
        first = Result("power lost in a first sync")
        self.sync(first)
        harness.restore(None)
        if not harness.run().done:
            raise RuntimeError("the first sync failed")
        harness.sandbox.clock.advance("5h")
        later = Result("power lost in a later sync")
        self.sync(later)
        return [first, later]

    def sync(self, result: Result) -> None:
        """Record one sync, and check its states."""
        harness, number = self.harness, 0
        start = Oracle(harness, truth=self.truth)
        if harness.store.exists():
            start.follow()
        disk = Disk.of(harness.data)
        outcome = harness.run(shim=self.shim, mode="record", log=str(self.log))
        if not outcome.done or outcome.acknowledged < 3:
            raise RuntimeError(f"the recorded run failed: {outcome}")

        def check(said: bytes) -> None:
            nonlocal number
            number += 1
            oracle = Oracle(harness, truth=self.truth)
            acknowledged = said.count(b"ack ")
            oracle.check_store(start.sequence, acknowledged)
            result.pages += oracle.sequence - start.sequence
            if number % RUNS == 0:
                again = harness.run()
                if not again.done:
                    raise Broken(f"I6: the next run ended with {again.code}: {again.errors[-500:]}")
                oracle.check_store(oracle.sequence, again.acknowledged)

        self.check_states(result, disk, harness.data, check)

    def backup(self) -> Result:
        """A backup that is reported as done is there, and equals its store."""
        result = Result("power lost in a backup")
        folder = self.folder / "backup"
        folder.mkdir()
        copy = folder / "copy.siteline"
        self.harness.restore(None)
        self.harness.run()
        with siteline.Store(self.harness.store) as store:
            points = len(store.read("line-1", unread="keep"))
        disk = Disk.of(folder)
        self.record(folder, BACKUP, self.harness.store, copy)

        def check(said: bytes) -> None:
            if not copy.exists() and not said:
                return
            with siteline.Store(copy) as store:
                store.check()
                if len(store.read("line-1", unread="keep")) != points:
                    raise Broken("I1: the backup has other points")

        self.check_states(result, disk, folder, check)
        return result

    def save(self, *, overwrite: bool) -> Result:
        """A key that is reported as saved is there; one that is replaced is there until then."""
        result = Result(f"power lost while a key is {'replaced' if overwrite else 'saved'}")
        folder = self.folder / f"keys-{overwrite}"
        folder.mkdir()
        new, saved = self.folder / "new.pem", folder / "key.pem"
        old = siteline.PrivateKey.generate(2048)
        new.write_bytes(KEY.read_bytes())
        new.chmod(0o600)
        key = siteline.PrivateKey.load(new)
        if overwrite:
            old.save(saved)
        disk = Disk.of(folder)
        self.record(folder, SAVE, new, saved, *["overwrite"][:overwrite])

        def check(said: bytes) -> None:
            if not saved.exists() and not said and not overwrite:
                return
            found = siteline.PrivateKey.load(saved).thumbprint
            allowed = {key.thumbprint} | ({old.thumbprint} if overwrite and not said else set())
            if found not in allowed:
                raise Broken("I1: the key is another one")

        self.check_states(result, disk, folder, check)
        return result

    def record(self, folder: Path, script: str, *arguments: object) -> None:
        self.log.unlink(missing_ok=True)
        crash = {"CRASH_MODE": "record", "CRASH_LOG": str(self.log), "CRASH_FOLDER": str(folder)}
        subprocess.run(
            [sys.executable, "-c", script, *map(str, arguments)],
            env={**os.environ, **crash, "LD_PRELOAD": str(self.shim)},
            stdout=subprocess.PIPE,
            check=True,
        )

    def check_states(
        self, result: Result, disk: Disk, folder: Path, check: Callable[[bytes], None]
    ) -> None:
        """Puts each state into the folder, and checks it with the output before it."""
        seen: set[bytes] = set()
        recorded = calls(self.log)
        self.log.unlink()
        for said, files in self.states(disk, recorded):
            digest = hashlib.sha256(said + repr(sorted(files.items())).encode()).digest()
            if digest in seen:
                continue
            seen.add(digest)
            put(folder, files)
            result.trials += 1
            try:
                check(said)
            except Broken as broken:
                result.broken.append(f"state {result.trials}: {broken}")
            except siteline.SitelineError as error:
                result.broken.append(f"state {result.trials}: {type(error).__name__}: {error}")
        result.interrupted = len(recorded)

    def states(self, disk: Disk, recorded: list[Call]) -> Iterator[tuple[bytes, dict[str, bytes]]]:
        """Yields the output so far and the files, for each state after each call."""
        said = b""
        for number, call in enumerate(recorded):
            disk.play(call)
            said += call.data if call.name == "said" else b""
            if call.name != "said" and number % self.step and number + 1 < len(recorded):
                continue
            for files in disk.states(self.random, self.samples):
                yield said, files
