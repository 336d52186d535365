"""The expected content of a store, computed from the service and from the store's log of pages.

The n-th page of a query is a slice of the service's data at the time of the request, and the log
of pages, read with Python's sqlite3, has the time of each request. That gives the store's points.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import siteline

from crash.harness import NAME

if TYPE_CHECKING:
    from crash.harness import Harness, Outcome

Key = tuple[Any, ...]
Values = tuple[Any, ...]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Broken(Exception):
    """An invariant that does not hold."""


def when(microseconds: int) -> datetime:
    """An instant as the store writes it."""
    return EPOCH + timedelta(microseconds=microseconds)


def rows_of(table: Any) -> dict[Key, Values]:
    """The points of a table; a duplicate point means a broken store (I2)."""
    rows: dict[Key, Values] = {}
    for record in table.records(named=True):
        key, values = tuple(record[:6]), tuple(record[6:])
        if key in rows:
            raise Broken(f"I2: {key} is stored twice")
        rows[key] = values
    return rows


class Oracle:
    """Follows one store from its first page to its last."""

    def __init__(self, harness: Harness) -> None:
        """Start with an empty store."""
        self.harness = harness
        self.points: dict[Key, Values] = {}
        self.sequence = 0
        self.offsets: dict[int, int] = {}
        self.kills = 0
        self.others = harness.served()
        """Requests of this day before the ledger was created."""

    def pages(self) -> list[tuple[int, ...]]:
        """The store's log of page requests, read without siteline."""
        address = f"file:{self.harness.store}?mode=ro"
        with sqlite3.connect(address, uri=True) as connection:
            query = (
                'SELECT sequence, chain, start, "end", read_at, points, is_last FROM pages '
                "WHERE sequence > ? ORDER BY sequence"
            )
            rows = connection.execute(query, (self.sequence,)).fetchall()
        connection.close()
        return [tuple(row) for row in rows]

    def truth(self, start: int, end: int, read_at: int) -> list[tuple[Key, Values]]:
        """The points that the service would send for this range at that time, in its order."""
        table = self.harness.sandbox.truth(
            site="S1",
            line="L1",
            start=when(start),
            end=when(end),
            interval=self.harness.feed["interval"],
            at=when(read_at),
        )
        return list(rows_of(table).items())

    def follow(self) -> None:
        """Add the points of the new pages in the log."""
        for sequence, chain, start, end, read_at, count, _last in self.pages():
            if sequence <= self.sequence:
                raise Broken(f"I8: page {sequence} comes after {self.sequence}")
            offset = self.offsets.get(chain, 0)
            page = self.truth(start, end, read_at)[offset : offset + count]
            if len(page) != count:
                raise Broken(f"I3: page {sequence} has {count} points, the service had {len(page)}")
            self.points |= dict(page)
            self.offsets[chain] = offset + count
            self.sequence = sequence

    def check(self, before: int, outcome: Outcome) -> None:
        """Check the store after a run. ``before``: the sequence at the start of the run."""
        try:
            self._check(before, outcome)
        except siteline.SitelineError as error:
            raise Broken(f"{type(error).__name__}: {error}") from error

    def _check(self, before: int, outcome: Outcome) -> None:
        if outcome.was_killed:
            self.kills += 1
        if self.check_store(before, outcome.acknowledged):
            self.check_ledger()

    def check_store(self, before: int, acknowledged: int) -> bool:
        """Check the store after so many pages. False if there is none, as none was acknowledged."""
        if not self.harness.store.exists():
            if acknowledged:
                raise Broken("I1: pages were acknowledged, but the store does not exist")
            return False
        with siteline.Store(self.harness.store) as store:
            store.check()
            known = NAME in store.feeds
            stored = rows_of(store.points(NAME, unread="keep")) if known else {}
        self.follow()
        if self.sequence < before + acknowledged:
            raise Broken(
                f"I1: {acknowledged} pages acknowledged after {before}, "
                f"the store is at {self.sequence}"
            )
        if stored != self.points:
            extra, missing = stored.keys() - self.points.keys(), self.points.keys() - stored.keys()
            raise Broken(
                f"I3: {len(extra)} points too many, {len(missing)} missing, of {len(self.points)}"
            )
        return True

    def check_ledger(self) -> None:
        """I5: the ledger counts each request of the service, and at most one more per kill."""
        counted = self.harness.counted() if self.harness.ledger.exists() else 0
        served = self.harness.served() - self.others
        if not served <= counted <= served + self.kills:
            raise Broken(f"I5: the ledger has {counted}, the service {served}, {self.kills} kills")

    def next_day(self) -> None:
        """The service counts anew. The last request before a kill may be of the new day: the ledger
        counts it in both."""
        self.others, self.kills = self.harness.served(), min(self.kills, 1)

    def check_end(self) -> None:
        """I7: after the lateness and one more run the store equals the truth and is settled."""
        harness = self.harness
        harness.sandbox.clock.advance("3d")
        self.next_day()
        before = self.sequence
        outcome = harness.run()
        if not outcome.done:
            raise Broken(f"I6: the last run ended with {outcome.code}: {outcome.errors[-500:]}")
        self.check(before, outcome)
        start = datetime.fromisoformat(harness.feed["since"])
        now = harness.sandbox.clock.now()
        with siteline.Store(harness.store) as store:
            windows = list(store.coverage(NAME, now=now))
            settled = [window for window in windows if window.state == "settled"]
            end = max(window.end for window in settled)
            stored = rows_of(store.points(NAME, end=end))
        truth = harness.sandbox.truth(site="S1", line="L1", start=start, end=end, interval="15m")
        if stored != rows_of(truth):
            raise Broken("I7: after the lateness the store differs from the truth")
        late = [w for w in windows if w.end + timedelta(days=2) <= now and w.state != "settled"]
        if late:
            raise Broken(f"I7: {len(late)} windows are not settled after the lateness")
        jtis = harness.sandbox.stats["jtis"]
        if len(set(jtis)) != len(jtis):
            raise Broken("two token requests share a jti")
