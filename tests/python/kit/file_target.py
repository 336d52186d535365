"""A target that rewrites one file for each change, with an optional flaw."""

from __future__ import annotations

import contextlib
import os
import pickle
from pathlib import Path

import pyarrow as pa
import siteline
from siteline import _doors
from siteline.targets._shared import SharedTarget

from kit.flagging_store import FlaggingStore
from kit.target_rows import KEY, KNOWN

FLAWS = {
    "state first": " missing",
    "points first": "points too many, 0 missing",
    "late": "acknowledged",
    "no flags": " 1 are other",
    "no old values": "and not None",
    "settled": ", settled: 1 points too many",
    "twice": "is there twice",
}
"""Flaw of a target -> a part of the message that reports it."""
NUMBERS = [*[pa.float64()] * 3, pa.int64(), pa.bool_()]
TYPES = [*[pa.string()] * 5, pa.timestamp("us", "UTC"), *NUMBERS, *NUMBERS, pa.int64()]
NAMES = [*KEY, *KNOWN, *(f"old_{name}" for name in KNOWN), "sequence"]


class FileTarget(SharedTarget):
    """Stores the points in a `FlaggingStore`, and the old values of each change in a log."""

    def __init__(self, path, flaw=None):
        self.path, self.flaw, self.held = Path(path), flaw, None

    @contextlib.contextmanager
    def lock(self, feed):
        import fcntl  # only on Unix

        with open(f"{self.path}-{feed}", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise siteline.errors.StoreBusy(f"{feed} is locked") from None
            yield

    def read(self):
        if self.held:
            return self.held
        if self.path.exists():
            return pickle.loads(self.path.read_bytes())
        return {"points": FlaggingStore(), "log": {}, "offsets": {}}

    def write(self, content):
        copy = Path(f"{self.path}-new")
        copy.write_bytes(pickle.dumps(content))
        os.replace(copy, self.path)
        self.held = None

    def state(self, feed):
        return self.read()["points"].state(feed)

    def apply(self, feed, page, state):
        content = self.read()
        points, log = content["points"], content["log"]
        before, old_state = points.rows, points.state(feed)
        counts = points.apply(feed, page, state)
        if self.flaw == "no flags":
            points.rows = {key: (*row[:2], False) for key, row in points.rows.items()}
        for key, (values, _, withdrawn) in points.rows.items():
            old = before.get(key)
            if old is None or (old[0], old[2]) != (values, withdrawn):
                log.setdefault(key, []).append((page.sequence, old and (*old[0], old[2])))
        if self.flaw == "state first":
            after, points.rows = points.rows, before
            self.write(content)
            points.rows = after
        if self.flaw == "points first":
            points.states[feed] = old_state
            self.write(content)
            points.states[feed] = state
        if self.flaw == "late" and page and page.sequence % 2 and not page.is_last:
            self.held = content
        else:
            self.write(content)
        return counts

    def changes(self, feed, since=0, *, old=False):
        content = self.read()
        rows = []
        for key, (values, _, withdrawn) in content["points"].rows.items():
            later = [change for change in content["log"][key] if change[0] > since]
            if key[0] == feed and later:
                known = (None if self.flaw == "no old values" else later[0][1]) or (None,) * 5
                rows.append((*key[1:], *values, withdrawn, *known, later[-1][0]))
        rows += rows[:1] if self.flaw == "twice" else []
        columns = zip(*rows, strict=True) if rows else [()] * len(TYPES)
        return pa.table([*map(pa.array, columns, TYPES)], NAMES)

    def settled(self, feed):
        points = self.read()["points"]
        ranges = _doors.settled(points.states[feed])
        rows = [
            (*key[1:], *values)
            for key, (values, _, withdrawn) in points.rows.items()
            if key[0] == feed and any(start <= key[6] < end for start, end in ranges)
            if not withdrawn or self.flaw == "settled"
        ]
        columns = zip(*rows, strict=True) if rows else [()] * 10
        return pa.table([*map(pa.array, columns, TYPES[:10])], NAMES[:10])

    def offset(self, consumer, feed):
        return self.read()["offsets"].get((consumer, feed), 0)

    def set_offset(self, consumer, feed, sequence):
        content = self.read()
        content["offsets"][consumer, feed] = sequence
        self.write(content)

    def close(self):
        pass
