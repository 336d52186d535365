"""A local copy of some feeds: :class:`Store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from siteline import _core, _labels, _series
from siteline.errors import QueryError
from siteline.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date, datetime, tzinfo

    from siteline._core import Feed
    from siteline._labels import Labels
    from siteline.types import FeedReport, SyncReport

    _Time = datetime | date | str
    _Ids = str | Iterable[str] | None
    _Series = Iterable[Sequence[str | None]] | Sequence[str | None] | None
    _Since = SyncReport | FeedReport | int | datetime | date | str
    _Unread = Literal["error", "warn", "keep"]

__all__ = ["Store"]


class Store(_core.Store):
    """One file with every version of every point of some feeds, and how far each has been read.

    ``client.sync()`` writes each page with its bookmark and checkpoint in one transaction, so it
    can be killed at any moment. Any number of threads and processes may read meanwhile. A feed has
    one writer at a time; a second one gets ``StoreBusy`` at once. A forked child can go on using
    the store. It is pickled as its path; copies are the store itself.

    Args:
        path: The file. It is made if there is none, and must be on a local disk.
        read_only: Write nothing and make no file. Whatever would write raises ``StoreError``.
        share: Who else may use it. A store is for its owner only (mode 0600). ``"group-read"``
            (0640) lets the file's group read it, ``"group"`` (0660) also write. If its owner gives
            it for an existing store, it changes the mode.

    Raises:
        StoreError: if the file is not a store, is on a network filesystem, or was made by a newer
            siteline.
        StoreCorrupt: if the contents are not those that were written.
        StoreFull: if the disk is full.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> with siteline.Store("plant.siteline") as store:
    ...     report = client.sync(feed, store)
    ...     frame = store.read("line-2").to_pandas()
    >>> list(frame.columns)[5:7], report.complete
    (['timestamp', 'value'], True)
    """

    def read(
        self,
        feed: Feed | str,
        start: _Time | None = None,
        end: _Time | None = None,
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

        They are streamed from the file, so memory stays flat, and a later sync does not change the
        table. If ``forget()`` or ``compact()`` removed what it needs, it raises ``StoreError``.

        Args:
            feed: The feed or its name.
            start, end: The range, half-open. Relative times (``"-7d"``) count from the newest
                instant that was read. Without a range, all that was read is returned, with one
                warning if parts of it are unread.
            site, line, machine, device, tag: Only series with this id, or one of these.
            series: Only these series: tuples of the five ids.
            final: Only settled points.
            as_of: The points as they were at a sync (its report), a page number or a time.
            withdrawn: Handling of points that a later complete read of their range did not
                bring: ``"keep"``, ``"drop"`` or ``"only"`` these. By default ``"drop"`` with
                ``final``, otherwise ``"keep"``, because a page boundary can omit a point.
            unread: Handling of parts of the range that were never read to their end: ``"error"``,
                ``"warn"`` (leave them out) or ``"keep"`` (the points that have arrived).
            tz: The zone of dates and times without an offset, and of timestamps in frames.
            labels: Names of series: see ``client.scan()``. A store has no names of its own:
                give ``client.series()`` or a mapping.

        Raises:
            UnreadRange: if a part of a named range is unread.
            QueryError: for an id that no series of the feed has.
            StoreError: for an unknown feed.

        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      since="2026-11-15T00:00Z")
        >>> store = siteline.Store("plant.siteline")
        >>> report = client.sync(feed, store)
        >>> store.read("line-2", "2026-11-16", "2026-11-17", final=True).report.complete
        True
        """
        withdrawn = withdrawn or ("drop" if final else "keep")
        picked = (site, line, machine, device, tag, series)
        return self._read(
            feed, (start, end), tz, picked, final, as_of, None, withdrawn, unread, labels
        )

    def changes(
        self,
        feed: Feed | str,
        since: _Since,
        start: _Time | None = None,
        end: _Time | None = None,
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
        """Return the points that are new or revised since a sync, with a column ``change``.

        ``change`` is ``"new"``, ``"revised"``, ``"withdrawn"`` or ``"returned"``. Each point comes
        once, with its present values. Points of a chain that has not ended are included, with a
        warning, because the next changes begin after them.

        Args:
            since: The report of that sync, a page number (0 for everything), or a time.
            feed, start, end, site, line, machine, device, tag, series, unread, tz, labels: As of
                ``read()``.

        Raises:
            QueryError: if the report is of another feed, or of pages that the store has not.

        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      since="2026-11-15T00:00Z")
        >>> store = siteline.Store("plant.siteline")
        >>> first = client.sync(feed, store)
        >>> sandbox.clock.advance("6h")
        >>> second = client.sync(feed, store)
        >>> set(store.changes("line-2", since=first).to_pandas()["change"]) <= {"new", "revised"}
        True
        """
        if since is None:
            raise QueryError("since= is a siteline.types.SyncReport, a page number, or a time.")
        picked = (site, line, machine, device, tag, series)
        return self._read(
            feed, (start, end), tz, picked, False, None, since, "keep", unread, labels
        )

    def series(self, feed: Feed | str | None = None) -> Table:
        """Return the series of a feed, or of all feeds, that have any point in the store.

        Raises:
            StoreError: for an unknown feed.

        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      since="2026-11-15T00:00Z")
        >>> store = siteline.Store("plant.siteline")
        >>> report = client.sync(feed, store)
        >>> store.series().find(machine="M3")
        <Table 3 series>
        """
        whole: Any = ((None, None), None, (None,) * 6, False, None, None, "keep", "keep")
        feeds = self.feeds if feed is None else [feed]
        series = [ids for one in feeds for ids in self._frame(one, *whole).series()]
        rows = _series.rows_of(None, dict.fromkeys(series))
        return _series.table(rows, _series.NO_NAMES, "machine")

    def _read(
        self,
        feed: Feed | str,
        bounds: tuple[Any, Any],
        tz: str | tzinfo | None,
        picked: tuple[Any, ...],
        final: bool,
        as_of: Any,
        since: Any,
        withdrawn: str,
        unread: str,
        labels: Labels | None,
    ) -> Table:
        from siteline.frames import zone_name

        labels = _labels.checked(labels)
        frame = self._frame(feed, bounds, tz, picked, final, as_of, since, withdrawn, unread)
        return Table(frame, None if tz is None else zone_name(tz), labels)
