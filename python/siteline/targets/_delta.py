"""The target :class:`Delta`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from siteline import _doors
from siteline._times import iso
from siteline.errors import SitelineError, StoreBusy, StoreCorrupt
from siteline.targets import _refusals, _shared
from siteline.targets._lake import SAME, Lake, equals

if TYPE_CHECKING:
    import os

    from siteline.page import Page

_POINT = ", ".join((*_shared.IDS, "timestamp", *_shared.VALUES))


class Delta(_shared.SharedTarget):
    """A Delta table at a path or URI with the points of all feeds, divided by feed and UTC day.

    A page is compared with the stored points of its days. One commit then appends new points, or
    rewrites the files of the days with revised or withdrawn points. With ``batch="chain"`` all
    pages of a chain are one commit; smaller commits also rewrite unchanged points (``seen``).

    A Delta transaction has one table. So a new state is first stored under a new number in the
    table ``PATH_states``. Then the points are committed with this number as the version of their
    app transaction. The state of the last commit counts, even after a crash. The second of two
    processes that sync a feed raises :class:`StoreBusy`. After other conflicts (compaction, other
    feeds) a page is compared again.

    Args:
        path: The path or URI of the table.
        options: The ``storage_options`` of ``deltalake``.
        batch: Pages of a chain in one commit, or ``"chain"`` for all of them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        options: dict[str, str] | None = None,
        batch: int | Literal["chain"] = "chain",
    ) -> None:
        self.batch: int | Literal["chain"] = batch
        """The pages of a chain that are stored in one transaction."""
        self._lake = Lake(path, options)
        self._place = f"Delta ({self._lake.shown})"
        self._numbers: dict[str, int] = {}

    def close(self) -> None:
        """Do nothing: nothing is open between two calls."""

    @contextmanager
    def lock(self, feed: str) -> Iterator[None]:
        """Hold a feed during a sync."""
        with _shared.held_in_process(self._lake.path, feed):
            try:
                self._lake.try_folder()
                table = self._lake.make()
                self._lake.check_types()
            except (self._lake.Error, OSError) as error:
                raise _refusals.refused(self._place, feed, str(error)) from error
            self._numbers[feed] = number = self._lake.version(table, feed)
            with suppress(self._lake.Error):  # no states yet, or a conflict: the next time will do
                self._lake.open("_states").delete(f"{equals('feed', feed)} and number < {number}")
            yield

    def state(self, feed: str) -> bytes | None:
        """See :meth:`StoreTarget.state`."""
        number = self._lake.exists() and self._lake.version(self._lake.open(), feed)
        if not number:
            return None
        sql = f"select state from t where {equals('feed', feed)} and number = {number}"
        states = self._lake.read(sql, t=self._lake.open("_states")).read_all()["state"]
        if not len(states):
            raise StoreCorrupt(f"{self._lake.shown}_states lacks the state of the feed {feed!r}.")
        return bytes(states[0].as_py())

    def apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int, int]:
        """See :meth:`StoreTarget.apply`."""
        try:
            return self._lake.retried(lambda: self._apply(feed, page, state))
        except (self._lake.Error, OSError, ValueError, OverflowError) as error:
            if isinstance(error, SitelineError):
                raise
            if _refusals.is_full(str(error)):
                raise _refusals.full(self._place, feed) from error
            is_of_table = isinstance(error, self._lake.Error | OSError)
            if page is None or (is_of_table and "nvariant" not in str(error)):
                raise
            text = _refusals.cut(str(error))
            raise _refusals.unstorable(self._place, feed, text) from error

    def _apply(self, feed: str, page: Page | None, state: bytes) -> tuple[int, int, int, int]:
        lake, points = self._lake, self._lake.open()
        before = lake.version(points, feed)
        if self._numbers.setdefault(feed, before) != before:
            raise StoreBusy(f"Another process has synced the feed {feed!r} to {lake.shown}.")
        counts, rows = ([0, 0, 0], []) if page is None else self._compared(points, feed, page)
        number = max(before, time.time_ns()) + 1 + secrets.randbelow(10**9)  # unique
        lake.put("_states", feed=feed, number=number, state=state)
        commit = lake.commit(number, feed, sequence=None if page is None else page.sequence)
        if sum(batch.num_rows for batch in rows) == counts[0]:
            lake.append(points, rows, commit)
        else:
            lake.merge(points, feed, rows, commit)
        self._numbers[feed] = number
        return _shared.counted(page, *counts)

    def _compared(self, points: Any, feed: str, page: Any) -> tuple[list[int], list[Any]]:
        """Return the counts of new, revised and withdrawn points, and the rows to write."""
        lake, number, days = self._lake, page.sequence, self._lake.days(page)
        if page.is_last:
            days |= {page.query.start.date(), (page.query.end - timedelta(microseconds=1)).date()}
        between = f"day between '{min(days)}' and '{max(days)}'" if days else "false"
        sql = f"select {_POINT}, withdrawn from t where {equals('feed', feed)} and {between}"
        found = page.diff(lake.read(sql, t=points))
        counts = [len(found.inserted), len(found.changed), 0]
        rows = lake.marked(found.inserted, feed, number, number, False)
        rows += lake.marked(found.changed, feed, number, number, False)
        if not page.is_whole:
            rows += lake.marked(found.unchanged, feed, None, number, False)
            sql += f" and seen < {page.first_sequence}"
            found = page.diff(lake.read(sql, t=points)) if page.is_last else found
        if page.is_last:
            rows += lake.marked(found.missing, feed, number, None, True)
            counts[2] = len(found.missing)
        return counts, rows

    def changes(self, feed: str, since: int = 0, *, old: bool = False) -> Any:
        """Return the points that pages after ``since`` changed: an Arrow stream, to be read once.

        Args:
            feed: The name of the feed.
            since: The sequence of the last page that you have read, such as :meth:`offset`.
            old: Also return the values at ``since``. Their commit is in the log for 30 days, but
                :meth:`compact` deletes their files after 7 days.
        """
        now, where = self._lake.open(), equals("feed", feed)
        sql = f"select {_POINT}, sequence, withdrawn from now where {where} and sequence > {since}"
        if not old:
            return self._lake.read(sql, now=now)
        past = self._lake.as_of(feed, since) if since else now
        known = f"(select * from past where {where} and {since > 0}) t"
        names = ", ".join(f"t.{name} as old_{name}" for name in (*_shared.VALUES, "withdrawn"))
        sql = f"select s.*, {names} from ({sql}) s left join {known} on {SAME}"
        return self._lake.read(sql, now=now, past=past)

    def settled(self, feed: str) -> Any:
        """Return the points of settled ranges that are not withdrawn, as :meth:`changes` does."""
        state, points = self.state(feed), self._lake.open()
        # deltalake 1.6.0 fails without the cast.
        kept = f"{equals('feed', feed)} and cast(withdrawn as int) = 0"
        ranges = _doors.of_state("settled", state) if state else []
        times = [f"timestamp >= '{iso(a)}' and timestamp < '{iso(b)}'" for a, b in ranges]
        where = f"{kept} and ({' or '.join(times) or 'false'})"
        return self._lake.read(f"select {_POINT}, sequence from t where {where}", t=points)

    def _offset(self, consumer: str, feed: str) -> int | None:
        return self._lake.version(self._lake.open(), feed, consumer)

    def _set_offset(self, consumer: str, feed: str, sequence: int) -> None:
        commit = self._lake.commit(sequence, feed, consumer)
        self._lake.retried(lambda: self._lake.append(self._lake.open(), [], commit))

    def compact(self) -> None:
        """Join small files, and delete the files that no version of the last 7 days uses.

        Run it once a day while no sync runs: each sync adds a file to each day with new points.
        """
        for table in map(self._lake.open, filter(self._lake.exists, ("", "_states"))):
            table.optimize.compact()
            table.vacuum(dry_run=False, full=True)
