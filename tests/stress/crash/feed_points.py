"""The expected points of one feed, computed from the service and from the store's log of pages.

The n-th page of a query is a slice of the service's data at the time of the request, and the log
of pages, read with Python's sqlite3, has the time of each request. That gives the feed's points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import siteline

from crash.plants import INTERVAL, SITE

if TYPE_CHECKING:
    import sqlite3

    from crash.harness import Harness

Key = tuple[Any, ...]
Values = tuple[Any, ...]
Truth = Callable[[str, int, int, int], list[tuple[Key, Values]]]
"""The points that the service would send for a range of a line at a time, in its order."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MINUTE = 60_000_000
"""In microseconds. The service's clock is at a whole minute during a run."""

PAGES = """
SELECT sequence, chain, start, "end", read_at, points, inserted, revised FROM pages
WHERE feed = (SELECT id FROM feeds WHERE name = ?) AND sequence > ? ORDER BY sequence
"""


class Broken(Exception):
    """An invariant that does not hold."""


def when(microseconds: int) -> datetime:
    """An instant as the store writes it."""
    return EPOCH + timedelta(microseconds=microseconds)


def rows_of(records: Iterable[Any]) -> dict[Key, Values]:
    """The points of these records; a duplicate point means a broken store (I2)."""
    rows: dict[Key, Values] = {}
    for record in records:
        key, values = tuple(record[:6]), tuple(record[6:])
        if key in rows:
            raise Broken(f"I2: {key} is stored twice")
        rows[key] = values
    return rows


class TruthCache:
    """The points that the service would send. The pages of a chain are slices of these."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.known: dict[tuple[str, int, int, int], list[tuple[Key, Values]]] = {}

    def __call__(self, line: str, start: int, end: int, read_at: int) -> list[tuple[Key, Values]]:
        key = (line, start, end, read_at)
        if key not in self.known:
            table = self.harness.sandbox.expected(
                site=SITE,
                line=line,
                start=when(start),
                end=when(end),
                interval=INTERVAL,
                at=when(read_at),
            )
            self.known[key] = list(rows_of(self.harness.plant.rows(table)).items())
        return self.known[key]


class FeedPoints:
    """Follows one feed of a store from its first page to its last."""

    def __init__(self, feed: dict[str, Any], truth: Truth) -> None:
        self.name: str = feed["name"]
        self.line: str = feed["line"]
        self.since = datetime.fromisoformat(feed["start"])
        self.truth = truth
        self.points: dict[Key, Values] = {}
        self.sequence = 0
        self.offsets: dict[int, int] = {}
        self.past: tuple[int, dict[Key, Values]] | None = None
        """A sequence number, and the points as of then."""

    def follow(self, store: sqlite3.Connection) -> None:
        """Remove what was forgotten, then add the points of the new pages in the log."""
        known = store.execute("SELECT kept_from FROM feeds WHERE name = ?", (self.name,)).fetchone()
        if known is None:
            return
        if known[0] > (self.since - EPOCH) // timedelta(microseconds=1):
            self.forget(when(known[0]))
        for page in store.execute(PAGES, (self.name, self.sequence)).fetchall():
            self.add_page(page)

    def forget(self, before: datetime) -> None:
        """Removes the points before a time; later pages do not return them."""
        self.since = before
        self.points = {key: row for key, row in self.points.items() if key[5] >= before}

    def add_page(self, row: tuple[int, ...]) -> None:
        sequence, chain, start, end, read_at, count, inserted, revised = row
        if sequence <= self.sequence:
            raise Broken(f"I8: page {sequence} of {self.name} comes after {self.sequence}")
        offset = self.offsets.get(chain, 0)
        # The log has the client's estimate, which may be a fraction of a second earlier or later.
        asked_at = (read_at + MINUTE // 2) // MINUTE * MINUTE
        page = self.truth(self.line, start, end, asked_at)[offset : offset + count]
        if len(page) != count:
            raise Broken(f"I3: page {sequence} has {count} points, the service had {len(page)}")
        kept = {key: row for key, row in page if key[5] >= self.since}
        new = sum(key not in self.points for key in kept)
        other = sum(self.points.get(key, row) != row for key, row in kept.items())
        if (new, other) != (inserted, revised):
            raise Broken(
                f"I3: the log says that page {sequence} of {self.name} brought {inserted} new "
                f"points and {revised} new values, and not {new} and {other}"
            )
        self.points |= kept
        self.offsets[chain] = offset + count
        self.sequence = sequence

    def check(self, store: siteline.Store) -> None:
        """I3: the store's points are these, as of now and as of the past that was remembered."""
        known = self.name in store.feeds
        stored = store.read(self.name, unread="keep") if known else None
        self.compare("I3", self.points, stored)
        if self.past:
            sequence, points = self.past
            past = store.read(self.name, unread="keep", as_of=sequence)
            self.compare(f"I3: as of page {sequence}", points, past)

    def compare(
        self, invariant: str, expected: dict[Key, Values], points: siteline.Table | None
    ) -> None:
        stored = {} if points is None else rows_of(points.records(named=True))
        if stored == expected:
            return
        extra, missing = stored.keys() - expected.keys(), expected.keys() - stored.keys()
        values = sum(stored.get(key, row) != row for key, row in expected.items())
        raise Broken(
            f"{invariant}: {len(extra)} points too many, {len(missing)} missing, {values} with "
            f"another value, of {len(expected)} of {self.name}"
        )
