"""A local copy of some feeds: :class:`Store`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from siteline import _labels, _selection, _series
from siteline._core import StoreHandle, _store_path, zone_name
from siteline._escape import described, escaped
from siteline._handles import Closing, Itself, WithHtml
from siteline._records.coverage import Coverage
from siteline._records.lateness import Lateness
from siteline._records.store import Freed
from siteline._records.sync import FeedReport, SyncReport
from siteline.errors import ClosedError, QueryError, StoreError
from siteline.feed import Feed
from siteline.progress import of_long_work
from siteline.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from datetime import date, datetime, tzinfo
    from os import PathLike

    from siteline._core import _Instant, _StoreProgressArg
    from siteline._labels import Labels
    from siteline.page import Page

    _Ids = str | Iterable[str] | None
    _Series = Iterable[Sequence[str | None]] | Sequence[str | None] | None
    _Since = SyncReport | FeedReport | int | datetime | date | str
    _Unread = Literal["error", "warn", "keep"]
    _Share = Literal["group-read", "group"] | None

__all__ = ["Store"]

# The names of files that belong to a store end with one of these.
_BESIDE = ("-wal", "-shm", "-lock", "-journal")


class Store(Itself, WithHtml, Closing):
    """One file with every version of every point of some feeds, and how far each has been read.

    ``client.sync()`` writes each page with its bookmark and checkpoint in one transaction, so it
    can be killed at any moment. Threads and processes may read meanwhile. A feed has one writer at
    a time; a second one gets ``StoreBusy`` at once. A store is pickled as its path.

    Args:
        path: The file, on a local disk. The first sync or ``client.read(store=)`` makes it, or
            ``share``.
        tz: The zone of dates, of times without an offset, and of timestamps in its tables.
        labels: The names of series in its tables: see ``client.scan()``. A sync keeps the names of
            discovery in the file, with at most one request a day. ``False`` keeps none.
        read_only: Write nothing and make no file. A call that would write raises ``StoreError``.
        share: Who else may use it. A store is for its owner only (mode 0600). ``"group-read"``
            (0640) lets the file's group read it, ``"group"`` (0660) also write.

    Raises:
        StoreError: if the file is no store, on a network filesystem, or of a newer siteline. Later
            for a feed that the store does not have.
        StoreCorrupt: if the file is damaged.
        StoreFull: if the disk is full.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> with siteline.Store("plant.siteline") as store:
    ...     report = client.sync(feed, store)
    ...     frame = store.read("line-2").to_pandas()
    >>> list(frame.columns)[5:7], report.complete
    (['label', 'timestamp'], True)
    """

    _html = "sync_html.store"
    _opened: StoreHandle | None = None

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        tz: str | tzinfo = "UTC",
        labels: Labels = _labels.DEFAULT,
        read_only: bool = False,
        share: _Share = None,
    ) -> None:
        """Open the file, if there is one."""
        self._tz, self._labels = zone_name(tz), _labels.checked(labels)
        self._asked = (_store_path(path), read_only, share)
        self._is_closed = False
        if read_only is not False or share is not None or not self._is_new():
            self._made()
        self._named: tuple[Any, _labels.Known] | None = None
        self._reads_once = False

    def _is_new(self) -> bool:
        """Whether the file is missing, and its folder exists."""
        if self._is_closed:
            raise ClosedError("this store was closed")
        if self._opened is not None:
            return False
        try:
            self.path.stat()
        except FileNotFoundError:
            return self.path.parent.is_dir()
        except (OSError, ValueError):
            return False  # opening the file raises the error with its reason
        return False

    def _made(self) -> StoreHandle:
        """Open the file, or make it. Threads get the same handle."""
        if self._is_new() and self._asked[1] is True:
            raise _missing(self.path)
        return self._opened or vars(self).setdefault("_opened", StoreHandle(*self._asked))

    @property
    def _handle(self) -> StoreHandle:
        """The open file. A read of a missing file, perhaps of a typing error, does not make it."""
        if self._is_new():
            raise _missing(self.path)
        return self._made()

    @property
    def path(self) -> Path:
        """The file."""
        return self._asked[0]

    @property
    def tz(self) -> str:
        """The zone of dates, of times without an offset, and of timestamps in tables."""
        return self._tz

    @property
    def feeds(self) -> dict[str, Feed]:
        """The feeds by name, sorted; none before the file exists."""
        feeds = {} if self._is_new() else self._handle.feeds()
        return {name: Feed._restore(feed) for name, feed in feeds.items()}

    def read(
        self,
        feed: Feed | str,
        start: _Instant | None = None,
        end: _Instant | None = None,
        *,
        site: _Ids = None,
        line: _Ids = None,
        machine: _Ids = None,
        device: _Ids = None,
        tag: _Ids = None,
        series: _Series = None,
        final: bool = False,
        as_of: _Since | None = None,
        withdrawn: Literal["keep", "drop", "only"] | None = None,
        unread: _Unread = "error",
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
    ) -> Table:
        """Return the points of a feed as the store has them at this moment.

        They are streamed from the file: memory stays flat, and a later sync does not change the
        table. If ``forget()`` or ``compact()`` removes what it needs, it raises ``StoreError``. The
        last column, ``withdrawn``, marks withdrawn points.

        Args:
            start, end: The range, half-open. Relative times (``"-7d"``) count from the newest
                instant read. By default all that was read, with one warning for unread parts.
            site, line, machine, device, tag: Only series with this id, or one of several. Of a
                machine, device or tag also an exact name, if the store keeps names.
            series: Only these series: tuples of the five ids.
            final: Only settled points, with one warning if a part of a named range is not settled.
            as_of: The points as they were at a sync (its report), a page number or a time.
            withdrawn: Points that a later complete read of their range did not contain: ``"keep"``,
                ``"drop"`` or ``"only"`` them. By default ``"drop"`` with ``final``, otherwise
                ``"keep"``, because a page boundary can omit a point.
            unread: Parts of the range that were never read to their end: ``"error"``, ``"warn"``
                (leave them out) or ``"keep"`` (the points that have arrived).
            tz, labels: As of :class:`Store`.

        Raises:
            UnreadRange: if a part of a named range is unread.
            QueryError: for an id that no series of the feed has.

        >>> store.read("line-2", "2026-11-16", "2026-11-17", final=True).report.complete
        True
        """
        withdrawn = withdrawn or ("drop" if final else "keep")
        picked = _selection.picked(site, line, machine, device, tag, series=series)
        asked = {"bounds": (start, end), "final": final, "as_of": as_of, "withdrawn": withdrawn}
        return self._read(feed, tz, labels, picked, {**asked, "unread": unread})

    def changes(
        self,
        feed: Feed | str,
        since: _Since,
        start: _Instant | None = None,
        end: _Instant | None = None,
        *,
        site: _Ids = None,
        line: _Ids = None,
        machine: _Ids = None,
        device: _Ids = None,
        tag: _Ids = None,
        series: _Series = None,
        unread: _Unread = "error",
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
    ) -> Table:
        """Return the points that changed since a sync, with a column ``change``.

        ``change`` is ``"new"``, ``"revised"``, ``"withdrawn"`` or ``"returned"``. Each point occurs
        once, with its present values. Points of an unfinished chain are included, with a warning,
        because the next changes begin after them. A later sync does not change the table.

        Args:
            since: The report of that sync, a page number (0 for everything), or a time (``"-1d"``).
            feed, start, end, site, line, machine, device, tag, series, unread, tz, labels: As of
                ``read()``.

        Raises:
            QueryError: if the report is of another feed or store.

        >>> store = siteline.Store("plant.siteline")
        >>> first = client.sync(feed, store)
        >>> sandbox.clock.advance("6h")
        >>> second = client.sync(feed, store)
        >>> set(store.changes("line-2", since=first).to_pandas()["change"]) <= {"new", "revised"}
        True
        """
        if since is None:
            raise QueryError("since= is a siteline.types.SyncReport, a page number, or a time.")
        picked = _selection.picked(site, line, machine, device, tag, series=series)
        asked = {"bounds": (start, end), "since": since, "withdrawn": "keep", "unread": unread}
        return self._read(feed, tz, labels, picked, asked)

    def series(self, feed: Feed | str | None = None) -> Table:
        """Return the series of a feed, or of all feeds, that have any point in the store.

        The table has the columns of :meth:`Client.series`, as the last sync kept them.

        >>> store.series().find("speed", machine="M3").to_pandas()["label"].tolist()
        ['M3 / D31 / speed [1/min]']
        """
        names = self.feeds if feed is None else [_name(feed)]
        series = [ids for name in names for ids in self._series_of(name)]
        known = self._known_names()[0]
        rows = _series.rows_of(known, dict.fromkeys(series))
        labels = _labels.DEFAULT if self._labels is False else self._labels
        return _series.table(rows, known or _series.NO_NAMES, labels, self._tz)

    def _series_of(self, feed: str) -> Any:
        whole = {"bounds": (None, None), "withdrawn": "keep", "unread": "keep"}
        picked = _selection.picked(*(None,) * 5, series=None)
        return self._handle.frame({"feed": feed, "tz": "UTC", "picked": picked, **whole}).series()

    def _known_names(self) -> _labels.Known:
        """Return the kept names, or why there are none."""
        kept = self._handle.names()
        if self._named is None or self._named[0] != kept:
            self._named = kept, _labels.kept_names(kept)
        return self._named[1]

    def _read(
        self,
        feed: Feed | str,
        tz: str | tzinfo | None,
        labels: Labels | None,
        picked: tuple[Any, ...],
        asked: dict[str, Any],
    ) -> Table:
        tz = self._tz if tz is None else zone_name(tz)
        labels = self._labels if labels is None else _labels.checked(labels)
        name = _name(feed)
        at = "since" if "since" in asked else "as_of"
        place = self._place(asked[at], name, at)
        names = self._known_names() if _labels.needs_names(labels) else None
        if names is not None and names[0] is not None and any(picked[0][2:]):
            picked = _selection.of_names(picked, names[0], self._series_of(name))
        own = {"feed": name, "tz": tz, "picked": picked, at: place}
        frame = self._handle.frame({**asked, **own})
        return Table(frame, tz, labels, None, names)

    def coverage(self, feed: Feed | str, *, now: _Instant | None = None) -> Coverage:
        """Return which windows of a feed were read, and how final they are.

        Args:
            now: The time of the states. By default this machine's, corrected by the last skew.
        """
        return Coverage._restore(self._handle.coverage(_name(feed), now, self._tz))

    def lateness(self, feed: Feed | str) -> Lateness:
        """Return how late points and revisions of ``feed`` arrived, and a suggested lateness."""
        return Lateness._restore(self._handle.lateness(_name(feed)))

    def redefine(self, feed: Feed) -> None:
        """Replace the definition of a feed.

        Times, page size and window may change, and the start may become earlier. A later start is
        :meth:`forget`. Unless only the start changes, unfinished ranges are read again.

        Raises:
            FeedChanged: if the query changes, or the start becomes later.
            StoreBusy: if a sync of the feed runs.
        """
        if not isinstance(feed, Feed):
            raise QueryError("feed= is a siteline.Feed: the new definition.")
        self._handle.redefine(feed._state)

    def forget(
        self, feed: Feed | str, before: _Instant, *, progress: _StoreProgressArg = False
    ) -> Freed:
        """Remove the points of a feed before a time, where it begins from now on.

        The file keeps its size; :meth:`compact` makes it smaller. No sync reads the range again,
        and a :meth:`read` of it raises :class:`UnreadRange`. Reads of the past and :meth:`changes`
        from before this call raise :class:`QueryError`, unless their range begins later. The next
        call completes one that was killed or interrupted.

        Args:
            before: The time, rounded down to a bucket.
            progress: ``True`` for a line, or a callable that gets a :class:`StoreProgress`.

        Raises:
            QueryError: if the time is after the newest instant that was read.
            StoreBusy: if a sync of the feed runs.

        >>> freed = store.forget("line-2", before="2026-11-17T00:00Z")
        >>> freed.points > 0, store.coverage("line-2")[0].state
        (True, 'forgotten')
        """
        name = _name(feed)
        with self._reported("forget", progress) as report:
            return Freed._restore(self._handle.forget(name, before, self._tz, report))

    def compact(
        self,
        feed: Feed | str | Iterable[Feed | str] | None = None,
        *,
        progress: _StoreProgressArg = False,
    ) -> Freed:
        """Remove older versions of settled points of ``feed``, by default of all feeds.

        Free space is returned to the disk.

        Points and their marks stay as they are now. Reads of the past and :meth:`changes` from
        before this call raise :class:`QueryError`, unless their range begins after the settled
        windows. ``changes(since=0)`` still returns everything. Interrupted calls can be repeated.

        Args:
            progress: As of :meth:`forget`.

        Raises:
            StoreBusy: if a sync of one of the feeds runs, or another process writes.

        >>> store.compact().points
        0
        """
        names = None
        if isinstance(feed, Iterable) and not isinstance(feed, str):
            names = [_name(one) for one in feed]
            if not names:
                raise QueryError("feed= is empty.", hint="Leave feed= out to compact all feeds.")
        elif feed is not None:
            names = [_name(feed)]
        with self._reported("compact", progress) as report:
            return Freed._restore(self._handle.compact(names, report))

    def backup(
        self,
        path: str | PathLike[str],
        *,
        share: _Share = None,
        progress: _StoreProgressArg = False,
    ) -> None:
        """Copy the store to another path while it is in use.

        An interrupted call leaves nothing at the path, or the whole copy.

        Args:
            share: As of :class:`Store`. By default as this store.
            progress: As of :meth:`forget`.

        Raises:
            StoreError: if there is a file at the path.
        """
        with self._reported("copy", progress) as report:
            self._handle.backup(path, share, report)

    def check(self, *, progress: _StoreProgressArg = False) -> None:
        """Read everything and compare it with its checksums.

        Args:
            progress: As of :meth:`forget`.

        Raises:
            StoreCorrupt: if something differs.
        """
        with self._reported("check", progress) as report:
            self._handle.check(report)

    def state(self, feed: Feed | str) -> bytes | None:
        """Return the state that was last applied for a feed, or ``None``.

        It is opaque, and as secret as a bookmark. A store is a :class:`StoreTarget`.
        """
        name = _name(feed)
        return None if self._is_new() else self._handle.state(name)

    def apply(self, feed: Feed | str, page: Page | None, state: bytes) -> tuple[int, int, int, int]:
        """Store in one transaction what ``sync_pages()`` returned for ``feed``.

        This is a page or ``None``, and a state.

        Returns:
            The points that were inserted, revised, unchanged and withdrawn.

        Raises:
            QueryError: for a page of a scan: the range of its chain is unknown.
        """
        return self._made().apply(_name(feed), page, state)

    def close(self) -> None:
        """Close the file. Later calls raise :class:`ClosedError`; closing again does nothing."""
        self._is_closed = self._opened is None
        if self._opened is not None:
            self._opened.close()

    def _place(self, given: Any, feed: str, argument: str) -> Any:
        """Return the page number of a report of this store; anything else as it is."""
        if hasattr(type(given), "__index__") and not isinstance(given, bool):
            return index(given)
        if not isinstance(given, SyncReport | FeedReport):
            return given
        reports = given.feeds if isinstance(given, SyncReport) else (given,)
        report = next((one for one in reports if one.name == feed), None)
        if report is None:
            of = ", ".join(repr(one.name) for one in reports)
            raise QueryError(f"This report is not of the feed {feed!r}: it is of {of}.")
        if report._store != self._handle.id():
            raise QueryError(
                f"{argument}= is the report of another store.",
                hint="Give a report of a sync to this store, a page number, or a time.",
            )
        return report.sequence

    def _reported(self, what: str, progress: Any) -> AbstractContextManager[Any]:
        return of_long_work(f"{what} {self.path.name}", progress)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path and the settings."""
        read_only = self._asked[1]
        made = partial(type(self), tz=self._tz, labels=self._labels, read_only=read_only)
        return made, (str(self.path),)

    def _text(self) -> str:
        only = ", read only" if self._asked[1] else ""
        return f"<Store {escaped(str(self.path))}{only}>"


def _missing(path: Path) -> StoreError:
    near: list[str] = []
    with suppress(OSError):  # a folder may not be readable
        files = (one.name for one in path.parent.iterdir())
        near = _selection.nearest(path.name, [one for one in files if not one.endswith(_BESIDE)])
    named = _selection.as_hint(near)
    return StoreError(
        f"There is no store {str(path)!r}.",
        hint=f"{named}client.sync(feed, store) makes the file.",
    )


def _name(feed: Any) -> str:
    if isinstance(feed, Feed):
        return feed.name
    if isinstance(feed, str):
        return feed
    raise QueryError(f"feed= is {described(feed)}: give a siteline.Feed or the name of one.")
