"""The spool of a pull: a store beside the output that has each page as soon as it was read.

It holds one feed, whose name says the end of the range and, as a digest, at which service and for
which subject it was begun. A feed is read as one chain, so that a pull sends the requests of a
scan; after a kill the chain goes on with the same cursor (§4.4.1).
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline import _doors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from siteline import Client, Feed, Store, Table
    from siteline.types import Progress, Query, SyncReport

__all__ = ["Range", "Spool", "private_folder", "remove"]

_NAME = re.compile(r"pull until (\S+Z), asked (\S+), at ([0-9a-f]{16})")
_NO_END = "no-end"
# Beside a store; on Windows each feed has a lock of its own. Any other name is the user's.
_BESIDE = re.compile(r"-wal|-shm|-lock(-[0-9a-f]{16})?")


class Range(NamedTuple):
    """What a spool reads: the query, and where."""

    query: Query
    """The query, with its start and its end."""
    asked_end: datetime | None
    """The end that was asked for: the end of the query may lie before it."""
    origin: str
    """A digest of the service and the subject."""

    @classmethod
    def of(cls, client: Client, query: Query, asked_end: datetime | None) -> Range:
        """Return it for this client."""
        from hashlib import sha256

        known = f"{client.base_url}\0{client.subject}".encode()
        return cls(query, asked_end, sha256(known).hexdigest()[:16])

    @property
    def name(self) -> str:
        """The name of the feed."""
        from siteline._times import iso

        assert self.query.end is not None
        asked = iso(self.asked_end) or _NO_END
        return f"pull until {iso(self.query.end)}, asked {asked}, at {self.origin}"

    def feed(self) -> Feed:
        """Return the feed that reads it as one chain, of which nothing is read twice."""
        from siteline import Feed

        query, start, end = self.query, self.query.start, self.query.end
        assert start is not None
        assert end is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the scan has said what there is to say of the bounds
            return Feed(
                self.name,
                site=next(iter(query.site), None),
                line=next(iter(query.line), None),
                interval=query.interval,
                page_size=query.page_size,
                filters=query.filters,
                start=start,
                settle_lag=0,
                overlap=0,
                lateness=0,
                window=_window(start, end),
            )


def _window(start: datetime, end: datetime) -> timedelta:
    """Return the widest window that has the whole range: a sync reads each window as a chain."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    last = end - timedelta(microseconds=1)
    for days in range(3_650, 0, -1):
        width = timedelta(days=days)
        if (start - epoch) // width == (last - epoch) // width:
            return width
    # Ten years and more are a chain for each ten years.
    return timedelta(days=3_650)


class Spool:
    """The store of one pull, which nobody else uses meanwhile."""

    def __init__(self, path: str) -> None:
        """Open the spool at this path, or make one."""
        from siteline import Store
        from siteline.errors import ConfigError

        self.path = path
        self._is_new = not os.path.exists(path)
        if self._is_new:
            _remove_companions(path)
        self._store: Store = Store(path, labels=False)
        self._feed: Feed | None = None
        feeds = self._store.feeds
        for name, feed in feeds.items():
            self._feed = feed if _NAME.fullmatch(name) and len(feeds) == 1 else None
        if feeds and self._feed is None:
            self._store.close()
            raise ConfigError(
                f"{path} is a store with feeds of your own, not the spool of a pull.",
                hint="--spool names a file that is made for the pull, and removed at its end.",
            )

    @property
    def feed(self) -> Feed | None:
        """What is being read, or ``None`` where no page was read yet."""
        return self._feed

    @property
    def end(self) -> datetime:
        """The end of the range that is being read."""
        return datetime.fromisoformat(self._named(1))

    @property
    def asked_end(self) -> datetime | None:
        """The end that the run which began it was asked for."""
        asked = self._named(2)
        return None if asked == _NO_END else datetime.fromisoformat(asked)

    def _named(self, part: int) -> str:
        assert self._feed is not None
        found = _NAME.fullmatch(self._feed.name)
        assert found is not None
        return found[part]

    @property
    def pages(self) -> int:
        """The pages that were read so far."""
        return sum(feed["sequence"] for feed in _doors.overview(self._store))

    def differences(self, wanted: Range) -> list[str]:
        """Say in which members another range differs from the one that is being read."""
        known, asked = self._feed, wanted.feed()
        assert known is not None
        pairs = [
            ("--site", known.site, asked.site),
            ("--line", known.line, asked.line),
            ("--start", known.start, asked.start),
            ("--end", self.asked_end, wanted.asked_end),
            ("--interval", known.interval, asked.interval),
            ("--page-size", known.page_size, asked.page_size),
            ("--filter", known.filters, asked.filters),
        ]
        found = [
            f"{name} was {_shown(before)}, now {_shown(now)}"
            for name, before, now in pairs
            if before != now
        ]
        if self._named(3) != wanted.origin:
            found.append("it was begun at another service, or for another subject")
        return found

    def read(
        self, client: Client, wanted: Range, progress: Callable[[Progress], object] | None
    ) -> SyncReport:
        """Read what is left, and return the report of it; it raises where something stays left."""
        from siteline.errors import AllowanceExhausted

        feed = self._feed or wanted.feed()
        end = wanted.query.end
        assert end is not None
        report = client.sync(feed, self._store, until=end, progress=progress)
        if report[feed.name].skipped and not report.pages:
            # The service did not end the chain, and a sync would leave it alone for a day. Whoever
            # asks again means it.
            report = client.sync(
                feed, self._store, until=end, reread=(feed.start, end), progress=progress
            )
        try:
            report.raise_for_incomplete()
        except AllowanceExhausted as error:
            raise AllowanceExhausted(
                "the daily allowance was spent before the end of the range",
                retry_at=error.retry_at,
                retryable=True,
            ) from None
        self._feed = feed
        return report

    def points(self, through: datetime, levels: Mapping[str, Any], series: Table | None) -> Table:
        """Return the selected points up to this time, without those that a new chain lacks."""
        assert self._feed is not None
        start = self._feed.start
        labels: Any = False if series is None else series
        points = self._store.read(self._feed, start, through, withdrawn="drop", labels=labels)
        return points.find(**levels) if levels else points

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def leave(self) -> int | None:
        """Close it after a failure, and return how many pages it keeps: ``None`` if it is damaged.

        One that this run has made, and read no page into, goes.
        """
        from siteline.errors import SitelineError

        try:
            pages = self.pages
        except SitelineError:
            pages = None
        self.close()
        if pages == 0 and self._is_new:
            remove(self.path)
        return pages

    def remove(self) -> None:
        """Remove it, with what lies beside it."""
        self.close()
        remove(self.path)


def remove(path: str) -> None:
    """Remove a spool, the store first: what is left beside it after a kill belongs to none."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    _remove_companions(path)


def _remove_companions(path: str) -> None:
    folder, name = os.path.split(path)
    for other in os.listdir(folder or "."):
        if other.startswith(name) and _BESIDE.fullmatch(other, len(name)):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, other))


def _shown(value: Any) -> str:
    from siteline._times import duration, iso

    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, timedelta):
        return duration(value)
    if isinstance(value, dict):
        pairs = [f"{name}={one}" for name, many in value.items() for one in many]
        return ", ".join(pairs) or "not given"
    return "not given" if value is None else str(value)


@contextmanager
def private_folder() -> Iterator[str]:
    """Give a folder for a spool that nobody can go on with: it goes however the run ends."""
    import signal
    from tempfile import TemporaryDirectory

    from siteline.cli.stopping import is_default

    def end(number: int, _frame: object) -> None:
        raise _Terminated(number)

    names = ("SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if is_default(handler):  # nohup ignores SIGHUP
            signal.signal(number, end)
    try:
        with TemporaryDirectory(prefix="siteline-") as folder:
            yield folder
    except _Terminated as terminated:
        signal.signal(terminated.number, signal.SIG_DFL)
        signal.raise_signal(terminated.number)
        sys.exit(128 + terminated.number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Terminated(BaseException):
    """The process is to end: as soon as what it has made was removed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
