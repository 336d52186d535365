"""Compares a target with a `Store`, after each run.

The store is synced by a client of its own, which is never killed, to the page at which the target
is, at the same time of the service: then all that they have must be equal, wherever a run ended.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import siteline
from crash.feed_points import Broken, rows_of
from crash.plants import INTERVAL, SITE
from kit.target_rows import points_by_key, store_points, target_changes, target_points

from target_kills.harness import TIMEOUT
from target_kills.worker import counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kit.target_rows import Key, Known

    from target_kills.harness import Harness, Outcome

READER = 'a reader\'s "place"'


class Oracle:
    """Follows one target from its first page to its last."""

    def __init__(self, harness: Harness) -> None:
        self.harness, self.sandbox = harness, harness.sandbox
        self.store = siteline.Store(harness.folder / "plant.siteline")
        self.sequences = dict.fromkeys((feed.name for feed in harness.feeds), 0)
        self.read: dict[str, dict[Key, Known]] = {feed.name: {} for feed in harness.feeds}
        """The points of a program that reads only the changes."""
        self.pages = self.own = self.own_pages = self.wasted = self.unseen = 0
        self.others = self.dropped = self.revised = self.withdrawn = 0

    def client(self, **options: Any) -> siteline.Client:
        """Returns a client of this process with a stopped clock."""
        return self.sandbox.client(
            clock=siteline.testing.Clock(self.harness.now.isoformat()), **options
        )

    def requested(self) -> int:
        return self.sandbox.stats.data_requests - self.own

    def advance(self, hours: int) -> None:
        """Advances the clock, and starts a new ledger."""
        self.harness.advance(hours)
        self.others, self.dropped = self.requested(), 0

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Opens the target after the writes of a killed process have ended."""
        with self.harness.place.open() as target, ExitStack() as stack:
            for feed in self.harness.feeds:
                until = time.monotonic() + TIMEOUT
                while not locked(stack, target, feed.name):
                    if time.monotonic() > until:
                        raise Broken(f"{feed.name} is still locked after {TIMEOUT} s")
            yield target

    def check(self, outcome: Outcome, *, read: bool = False) -> None:
        """Check all after a run. ``read``: the reader reads the changes."""
        before = self.pages
        try:
            with self.open() as target:
                for feed in self.harness.feeds:
                    report = self.follow(feed, target, outcome)
                    self.compare(feed, target)
                    # A point that is missing says more than that it was counted otherwise.
                    self.compare_counts(feed.name, outcome, report)
                    if read:
                        self.read_changes(feed.name, target)
                        self.compare_settled(feed.name, target)
        except Broken:
            raise
        except Exception as error:
            raise Broken(f"{type(error).__name__}: {error}") from error
        # Each page of a batch is reported when it was read.
        if self.pages < before + outcome.ack and self.harness.batch == 1:
            raise Broken(f"{outcome.ack} pages acknowledged, {self.pages - before} stored")
        self.check_requests(outcome)

    def sequence(self, feed: siteline.Feed, state: bytes | None) -> int:
        states = {} if state is None else {feed.name: state}
        with self.client() as client, client.sync_pages(feed, states) as pages:
            return pages.report[feed.name].sequence

    def follow(self, feed: siteline.Feed, target: Any, outcome: Outcome) -> Any:
        """Sync the store to the page of the target; the report, if there was anything to do."""
        sequence = self.sequence(feed, target.state(feed.name))
        new = sequence - self.sequences[feed.name]
        if new < 0:
            raise Broken(f"{feed.name} went back by {-new} pages")
        self.sequences[feed.name] = sequence
        self.pages += new
        if not (new or outcome.done):
            return None
        with self.client() as client:
            report = client.sync(feed, self.store, max_pages=new or None)
        self.own += report.requests
        self.own_pages += report.pages
        self.revised += report.revised
        self.withdrawn += report.withdrawn
        if report.pages != new or (outcome.done and not report.complete):
            raise Broken(f"{feed.name}: {new} pages, and not {report.pages}, or unread: {report}")
        return report

    def compare(self, feed: siteline.Feed, target: Any) -> None:
        """Compares points, values, flags and windows with the store."""
        name = feed.name
        difference(name, target_points(target, name), store_points(self.store, name))
        if self.sequences[name]:
            now = self.harness.now
            windows = [(one.start, one.end, one.state) for one in target.coverage(name, now=now)]
            stored = [(one.start, one.end, one.state) for one in self.store.coverage(name, now=now)]
            if windows != stored:
                raise Broken(f"{name}: other windows: {windows}")

    def compare_counts(self, name: str, outcome: Outcome, report: Any) -> None:
        """The run counted what the store counts."""
        if outcome.done and outcome.done[name] != counts(report[name]):
            raise Broken(f"{name} counts {outcome.done[name]}, and not {report}")

    def compare_settled(self, name: str, target: Any) -> None:
        """Compares the settled points with the store."""
        if self.sequences[name]:
            settled = self.store.read(name, final=True, withdrawn="drop", unread="keep")
            found = points_by_key(self.harness.place.settled(target, name))
            difference(f"{name}, settled", found, points_by_key(settled))

    def read_changes(self, name: str, target: Any) -> None:
        """Applies the changes since the reader's offset, and compares its points with the store."""
        since, known = target.offset(READER, name), self.read[name]
        for key, (old, new) in target_changes(target, name, since).items():
            if known.get(key) != old:
                raise Broken(f"{name}: {key} was {known.get(key)} at {since}, and not {old}")
            known[key] = new
        difference(f"{name}, by its changes", known, store_points(self.store, name))
        target.set_offset(READER, name, self.sequences[name])

    def check_requests(self, outcome: Outcome) -> None:
        """A run that is interrupted costs what was under way; the ledger counts what was sent."""
        under_way = 0 if outcome.done else self.harness.concurrency
        lost = under_way * self.harness.batch
        good = self.sandbox.stats.requests["data"].get(200, 0)
        wasted = good - self.own_pages - self.pages
        cost, self.wasted = wasted - self.wasted, wasted
        if cost > lost + self.unseen:
            raise Broken(f"this run read {cost} pages that it did not store")
        # The service may count a request only after the process is dead.
        self.unseen = max(0, min(under_way, lost + self.unseen - cost))
        self.dropped += under_way
        served, ledger = self.requested() - self.others, self.harness.ledger
        counted = self.client(ledger=str(ledger)).allowance.used if ledger.exists() else 0
        if not served <= counted <= served + self.dropped:
            raise Broken(f"the ledger has {counted}, the service {served}, dropped {self.dropped}")

    def check_end(self) -> None:
        """After the lateness and one more run the points of all settled windows are the truth."""
        with self.open() as target:
            for feed in self.harness.feeds:
                windows = target.coverage(feed.name, now=self.harness.now)
                end = max(window.end for window in windows if window.state == "settled")
                if any(
                    w.state != "settled" for w in windows if w.end + feed.lateness <= windows.now
                ):
                    raise Broken(f"after the lateness {feed.name} is not settled")
                points = target_points(target, feed.name).items()
                settled = {key: row for key, (row, flag) in points if key[5] < end and not flag}
                truth = self.sandbox.expected(
                    site=SITE, line=feed.line, start=feed.start, end=end, interval=INTERVAL
                )
                difference("the truth", settled, rows_of(truth.records(named=True)))
        jtis = self.sandbox.stats.jtis
        if len(set(jtis)) != len(jtis):
            raise Broken("two token requests share a jti")


def locked(stack: ExitStack, target: Any, feed: str) -> bool:
    """Whether no process had the feed: now it is locked."""
    try:
        stack.enter_context(target.lock(feed))
    except siteline.errors.StoreBusy:
        time.sleep(0.001)
        return False
    return True


def difference(name: str, found: dict[Key, Any], expected: dict[Key, Any]) -> None:
    if found == expected:
        return
    extra, missing = found.keys() - expected.keys(), expected.keys() - found.keys()
    other = [key for key in found.keys() & expected.keys() if found[key] != expected[key]]
    first = next(iter([*extra, *missing, *other]))
    raise Broken(
        f"{name}: {len(extra)} points too many, {len(missing)} missing, {len(other)} are other, of "
        f"{len(expected)}: {first} is {found.get(first)}, and not {expected.get(first)}"
    )
