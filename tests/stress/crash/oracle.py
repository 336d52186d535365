"""Checks a store against the service: all its feeds, the requests, and the page log."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import siteline

from crash.feed_points import Broken, FeedPoints, Truth, TruthCache, rows_of
from crash.plants import INTERVAL, SITE

if TYPE_CHECKING:
    from crash.harness import Harness, Outcome, Work

__all__ = ["Broken", "Oracle"]

LATE = 60.0
"""Seconds after which a service has counted each request that it was sent."""
SETTLED = timedelta(days=3)
"""After this the lateness of all windows is over."""


class Oracle:
    """Follows one store from its first page to its last."""

    def __init__(
        self, harness: Harness, reached: Counter[str] | None = None, truth: Truth | None = None
    ) -> None:
        self.harness = harness
        self.reached = Counter() if reached is None else reached
        """How often the runs reached the states that they are for."""
        truth = TruthCache(harness) if truth is None else truth
        self.feeds = {feed["name"]: FeedPoints(feed, truth) for feed in harness.plant.feeds()}
        self.dropped = 0
        """Requests of this day that were under way when a run was interrupted."""
        self.others = harness.served()
        """Requests of this day before the ledger was created."""
        self.requests = harness.requested()
        self.unseen = 0
        """Requests of the last run that the service may count only now."""
        self.recent: set[tuple[int, int]] = set()
        """Feed and sequence number of the rows of the table `recent`."""

    @property
    def sequence(self) -> int:
        return sum(feed.sequence for feed in self.feeds.values())

    @contextmanager
    def file(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(f"file:{self.harness.store}?mode=ro", uri=True)
        try:
            yield connection
        finally:
            connection.close()

    def follow(self) -> None:
        """Add the points of the new pages in the log."""
        with self.file() as connection:
            for feed in self.feeds.values():
                feed.follow(connection)
            self.recent = set(connection.execute("SELECT feed, sequence FROM recent").fetchall())

    def remember(self, name: str) -> None:
        """Keep the points of a feed, to compare them with those as of now in later checks."""
        feed = self.feeds[name]
        feed.past = (feed.sequence, dict(feed.points))

    def begin(self, work: Work) -> None:
        """Note what the next run does to the past: it may not be there any more."""
        for feed in self.feeds.values():
            if work.compact or feed.name in work.forget:
                feed.past = None

    def check(self, before: int, outcome: Outcome, work: Work | None = None) -> None:
        """Check the store after a run. ``before``: the sequence at the start of the run."""
        try:
            self._check(before, outcome, work)
        except siteline.SitelineError as error:
            raise Broken(f"{type(error).__name__}: {error}") from error

    def _check(self, before: int, outcome: Outcome, work: Work | None) -> None:
        recent = self.recent
        if outcome.was_killed:
            # A process that is killed may count one request too many.
            self.dropped += self.harness.concurrency + 1
        elif not outcome.done:
            # One of these is the page that could not be stored, which the service has counted.
            self.dropped += self.harness.concurrency - 1
        exists = self.check_store(before, outcome.acknowledged)
        moved = len(recent - self.recent)
        self.reached.update({"moves into blocks": moved > 0, "moved rows": moved})
        if exists:
            self.check_ledger()
        cost = self.check_cost(before, outcome)
        if outcome.was_killed:
            self.reached.update({"kills": 1, "kills with recent points": bool(self.recent)})
            self.reached["kills of several requests"] += cost > 1
        for name in outcome.forgotten:
            if work and self.feeds[name].since < datetime.fromisoformat(work.forget[name]):
                raise Broken(f"I1: {name} was forgotten, and its points are there")
        self.reached.update(forgets=len(outcome.forgotten), compacts=outcome.compacted)

    def check_store(self, before: int, acknowledged: int) -> bool:
        """Checks the store. Returns false if there is none because no page was acknowledged."""
        if not self.harness.store.exists():
            if acknowledged:
                raise Broken("I1: pages were acknowledged, but the store does not exist")
            return False
        with siteline.Store(self.harness.store) as store:
            store.check()
            self.follow()
            if self.sequence < before + acknowledged:
                raise Broken(
                    f"I1: {acknowledged} pages acknowledged after {before}, "
                    f"the store is at {self.sequence}"
                )
            for feed in self.feeds.values():
                feed.check(store)
        return True

    def check_cost(self, before: int, outcome: Outcome) -> int:
        """I6: no page is requested again but those that were under way when a run was interrupted.

        Gives how many requests this run made and did not store.
        """
        requests = self.harness.requested()
        cost = requests - self.requests - (self.sequence - before)
        self.requests = requests
        under_way = 0 if outcome.done else self.harness.concurrency
        if cost > under_way + self.unseen:
            raise Broken(f"I6: this run made {cost} requests that it did not store")
        self.unseen = max(0, min(under_way, under_way + self.unseen - cost))
        return cost

    def check_ledger(self) -> None:
        """I5: the ledger counts each request of the service, and those that were never sent."""
        counted = self.harness.counted() if self.harness.ledger.exists() else 0
        until = time.monotonic() + LATE
        # On a busy machine the service counts a request after the process is dead.
        while (served := self.harness.served() - self.others) + self.dropped < counted:
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        if not served <= counted <= served + self.dropped:
            raise Broken(
                f"I5: the ledger has {counted}, the service {served}, {self.dropped} were under way"
            )

    def next_day(self) -> None:
        """Starts a new count. The last requests before a kill may be of the new day:
        the ledger counts them in both."""
        self.others = self.harness.served()
        self.dropped = min(self.dropped, max(self.harness.plant.concurrency) + 1)

    def check_end(self) -> None:
        """I7: after the lateness and one more run the store equals the truth and is settled."""
        harness = self.harness
        harness.sandbox.clock.advance(SETTLED)
        self.next_day()
        before = self.sequence
        outcome = harness.run()
        if not outcome.done:
            raise Broken(f"I6: the last run ended with {outcome.code}: {outcome.errors[-500:]}")
        self.check(before, outcome)
        with siteline.Store(harness.store) as store:
            for name, feed in store.feeds.items():
                self.check_settled(store, feed, self.feeds[name].since)
        jtis = harness.sandbox.stats.jtis
        if len(set(jtis)) != len(jtis):
            raise Broken("two token requests share a jti")

    def check_settled(self, store: siteline.Store, feed: siteline.Feed, start: datetime) -> None:
        now = self.harness.sandbox.clock.now()
        # The windows before that were forgotten.
        windows = [window for window in store.coverage(feed, now=now) if window.end > start]
        settled = [window for window in windows if window.state == "settled"]
        end = max(window.end for window in settled)
        # Withdrawn points are flagged.
        stored = rows_of(store.read(feed, end=end, withdrawn="drop").records(named=True))
        truth = self.harness.sandbox.expected(
            site=SITE, line=feed.line, start=start, end=end, interval=INTERVAL
        )
        if stored != rows_of(truth.records(named=True)):
            raise Broken(f"I7: after the lateness {feed.name} differs from the truth")
        late = [w for w in windows if w.end + feed.lateness <= now and w.state != "settled"]
        if late:
            raise Broken(f"I7: {len(late)} windows of {feed.name} are not settled")
