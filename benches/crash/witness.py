"""What must be in a store, told by others than the store: the service, and SQLite from Python.

The service gives the n-th page of a query as a slice of what is true when it is asked, and the
store's log says which page was asked when. So the store's points can be made again without it.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import siteline

from crash.stage import NAME

if TYPE_CHECKING:
    from crash.stage import Outcome, Stage

Key = tuple[Any, ...]
Values = tuple[Any, ...]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Broken(Exception):
    """An invariant that does not hold."""


def when(microseconds: int) -> datetime:
    """An instant as the store writes it."""
    return EPOCH + timedelta(microseconds=microseconds)


def rows_of(table: Any) -> dict[Key, Values]:
    """The points of a table; a point that is there twice is a broken store (I2)."""
    rows: dict[Key, Values] = {}
    for record in table.records(named=True):
        key, values = tuple(record[:6]), tuple(record[6:])
        if key in rows:
            raise Broken(f"I2: {key} is there twice")
        rows[key] = values
    return rows


class Witness:
    """Follows one store over its life."""

    def __init__(self, stage: Stage) -> None:
        """Begin with an empty store."""
        self.stage = stage
        self.points: dict[Key, Values] = {}
        self.sequence = 0
        self.given: dict[int, int] = {}
        self.kills = 0
        self.others = stage.seen()
        """Requests of this day that an earlier store had made."""

    def pages(self) -> list[tuple[int, ...]]:
        """The store's log of page requests, read by SQLite alone."""
        address = f"file:{self.stage.store}?mode=ro"
        with sqlite3.connect(address, uri=True) as connection:
            query = (
                'SELECT sequence, chain, start, "end", read_at, points, is_last FROM pages '
                "WHERE sequence > ? ORDER BY sequence"
            )
            rows = connection.execute(query, (self.sequence,)).fetchall()
        connection.close()
        return [tuple(row) for row in rows]

    def truth(self, start: int, end: int, read_at: int) -> list[tuple[Key, Values]]:
        """What the service would send for this range at that time, in its order."""
        table = self.stage.sandbox.truth(
            site="S1",
            line="L1",
            start=when(start),
            end=when(end),
            interval=self.stage.feed["interval"],
            at=when(read_at),
        )
        return list(rows_of(table).items())

    def follow(self) -> None:
        """Make the points again from the pages that the log has more than last time."""
        for sequence, chain, start, end, read_at, count, _last in self.pages():
            if sequence <= self.sequence:
                raise Broken(f"I8: page {sequence} comes after {self.sequence}")
            offset = self.given.get(chain, 0)
            page = self.truth(start, end, read_at)[offset : offset + count]
            if len(page) != count:
                raise Broken(f"I3: page {sequence} has {count} points, the service had {len(page)}")
            self.points |= dict(page)
            self.given[chain] = offset + count
            self.sequence = sequence

    def check(self, before: int, outcome: Outcome) -> None:
        """Hold the store against all that is known. ``before``: the sequence when the run began."""
        try:
            self._check(before, outcome)
        except siteline.SitelineError as error:
            raise Broken(f"{type(error).__name__}: {error}") from error

    def _check(self, before: int, outcome: Outcome) -> None:
        if outcome.was_killed:
            self.kills += 1
        if not self.stage.store.exists():
            if outcome.acknowledged:
                raise Broken("I1: pages were acknowledged and there is no store")
            return
        with siteline.Store(self.stage.store) as store:
            store.check()
            known = NAME in store.feeds
            held = rows_of(store.points(NAME)) if known else {}
        self.follow()
        if self.sequence < before + outcome.acknowledged:
            raise Broken(
                f"I1: {outcome.acknowledged} pages acknowledged after {before}, "
                f"the store is at {self.sequence}"
            )
        if held != self.points:
            more, fewer = held.keys() - self.points.keys(), self.points.keys() - held.keys()
            raise Broken(
                f"I3: {len(more)} points too many, {len(fewer)} missing, of {len(self.points)}"
            )
        self.check_ledger()

    def check_ledger(self) -> None:
        """I5: never under the service's count, and at most one over for each kill."""
        counted = self.stage.counted() if self.stage.ledger.exists() else 0
        seen = self.stage.seen() - self.others
        if not seen <= counted <= seen + self.kills:
            raise Broken(f"I5: the ledger has {counted}, the service {seen}, {self.kills} kills")

    def check_end(self) -> None:
        """I7: after the lateness and one more run the store is the truth, and all of it settled."""
        stage = self.stage
        stage.sandbox.clock.advance("3d")
        self.others, self.kills = stage.seen(), 0
        before = self.sequence
        outcome = stage.run()
        if not outcome.done:
            raise Broken(f"I6: the last run ended with {outcome.code}: {outcome.errors[-500:]}")
        self.check(before, outcome)
        start = datetime.fromisoformat(stage.feed["since"])
        now = stage.sandbox.clock.now()
        with siteline.Store(stage.store) as store:
            windows = list(store.coverage(NAME, now=now))
            settled = [window for window in windows if window.state == "settled"]
            end = max(window.end for window in settled)
            held = rows_of(store.points(NAME, end=end))
        true = stage.sandbox.truth(site="S1", line="L1", start=start, end=end, interval="15m")
        if held != rows_of(true):
            raise Broken("I7: after the lateness the store is not the truth")
        late = [w for w in windows if w.end + timedelta(days=2) <= now and w.state != "settled"]
        if late:
            raise Broken(f"I7: {len(late)} windows are not settled after the lateness")
        jtis = stage.sandbox.stats["jtis"]
        if len(set(jtis)) != len(jtis):
            raise Broken("two token requests share a jti")
