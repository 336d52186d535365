"""A read that has not started: :class:`Scan`, and the iterators over its pages and points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

from siteline import _labels as _names
from siteline import _selection
from siteline._awaiting import wait_for
from siteline._core import Frame
from siteline._counts import counted
from siteline._escape import escaped
from siteline._handles import Itself, OfThisProcess, WithHtml
from siteline._kept import note_read, noted, pages_and_points
from siteline._keywords import like, strict
from siteline._points import BOOKMARK, RecordIterator, next_page
from siteline._records.query import Query
from siteline._records.requests import Progress
from siteline._warn import warn
from siteline.errors import QueryError
from siteline.frames import check_options
from siteline.page import Page
from siteline.progress import finish, reporter
from siteline.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import timedelta

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline import _core
    from siteline._awaiting import Steps
    from siteline._core import Call
    from siteline._labels import Labels
    from siteline._records.bookmark import Bookmark
    from siteline._records.series import Record
    from siteline._records.tables import ReadReport
    from siteline.store import Store


__all__ = ["PageIterator", "Scan"]


class ScanBase(Itself, WithHtml):
    """The query and the settings of a read, and the methods that do not wait."""

    _html = "html.scan"

    _waits: ClassVar[str] = ""
    """The prefix of an awaitable call in texts."""

    def __init__(
        self,
        handle: _core.Scan,
        tz: str,
        labels: Labels,
        progress: Callable[[Progress], object] | bool | None,
        store: Store | None,
    ) -> None:
        """Wrap a scan of the core."""
        # Only a read makes the file of a store, whose path may be mistyped.
        self._is_unopened = store is not None and hasattr(store, "_is_new") and store._is_new()
        if store is not None:
            handle = handle.through(None if self._is_unopened else store, _reads_once(store))
        self._handle, self._tz, self._labels = handle, tz, labels
        self._progress, self._store = progress, store
        self._is_selected = False

    def _like(self, handle: _core.Scan) -> Self:
        return type(self)(handle, self._tz, self._labels, self._progress, None)

    def _table(self, frame: Frame) -> Table:
        return Table(frame, self._tz, self._labels)

    @property
    def query(self) -> Query:
        """The query: immutable, printable, hashable."""
        return Query._restore(self._handle.query())

    @property
    def report(self) -> ReadReport:
        """The findings about the query, and about the pages read so far."""
        report: ReadReport = self._so_far().report
        return report

    @property
    def bookmark(self) -> Bookmark | None:
        """The position after the kept pages; ``None`` before the first and after the last page."""
        return None if self._known() is not None else self._handle.kept()[1]

    @property
    def partial(self) -> Table | None:
        """The table of the kept pages; ``None`` before the first page."""
        if (whole := self._known()) is not None:
            return whole
        frame, _ = self._handle.kept()
        return None if frame is None else self._table(frame)

    @property
    def _by_name(self) -> bool:
        """Whether names of discovery are needed before the first page."""
        return self._labels is not False and self._handle.selection() is not None

    def _beginning(self, reading: _core._Reading) -> Steps[None]:
        """Find the selected series in the names of discovery, before the first page."""
        if self._by_name and not self._is_selected:
            yield from self._settling_names(reading.settle())
            levels, series, _ = self._handle.selection()
            frame = self._handle.empty()
            names, _ = self._table(frame)._known_names()
            if any(levels) and (names is None or not names.rows):
                reason = _names.names_of(*frame.discovery())[1]
                warn([_selection.unnamed(levels, reason)])
            query = self.query
            places = (query.site, query.line)
            self._handle.select(*_selection.found(levels, series, names, places))
            self._is_selected = True

    def _unlisted(self, already: Collection[str] = ()) -> list[str]:
        """Warn about ids of the query that discovery does not list, and return them."""
        if self._labels is False:
            return []
        if new := [one for one in self._handle.not_listed() if one not in already]:
            names = self._table(self._handle.empty())._known_names()[0]
            warn([_selection.unlisted(new, names)])
        return new

    def _warn_of_unselected(self, frame: Frame) -> None:
        selection = self._handle.selection()
        if selection is None or not (self._store is None or _reads_once(self._store)):
            return
        report = frame.report()
        if report["filtered"]:
            warn([_selection.paid(report["filtered"], report["points_read"], *selection)])

    def _so_far(self) -> Table:
        partial = self.partial
        return self._table(self._handle.empty()) if partial is None else partial

    def _known(self) -> Table | None:
        """Return the complete table, if it has been read: one object for all callers."""
        table: Table | None = self.__dict__.get("_whole")
        if table is None and (frame := self._handle.whole()) is not None:
            table = self.__dict__.setdefault("_whole", self._table(frame))
        return table

    def _callback(self) -> Any:
        """Return the callback of a read that begins now, or ``None``."""
        progress = self._progress
        return None if progress is None else reporter(progress, self._handle.title)

    def _reading(self, n: int | None = None) -> Steps[Table]:
        """Read the remaining pages and return the table; or its first ``n`` points."""
        if (table := self._known()) is not None:
            return table
        reading = self._with_store(makes=True).reading(_names.needs_names(self._labels))
        callback, is_head = None, n is not None
        try:
            yield from self._beginning(reading)
            warned = self._unlisted()
            callback = self._callback()
            by_page = is_head or callback is not None
            while n is None or (frame := self._handle.head(n)) is None:
                frame = yield self._handle.read_on(reading, by_page, is_head)
                if isinstance(frame, Frame):
                    break
                if callback is not None:
                    callback(Progress._restore(frame))
            yield from self._settling_names(reading.settle())
        except BaseException as error:
            self._handle.end(reading)
            self._complete(error)
            raise
        finally:
            finish(callback)
        self._unlisted(warned)
        if is_head:
            self._handle.end(reading)
            return self._table(frame)
        self._warn_of_unselected(frame)
        table = self._known()
        assert table is not None
        return table

    def _with_store(self, *, makes: bool) -> _core.Scan:
        """Return the handle, with the store if it has a file or this call makes it."""
        store = self._store
        if store is not None and self._is_unopened and (makes or not store._is_new()):
            try:
                opened = self._handle.through(store._made(), _reads_once(store))
            except Exception as error:
                self._complete(error)
                raise
            # Threads that begin at the same time share one read.
            self._handle = vars(self).setdefault("_opened", opened)
            self._is_unopened = False
        return self._handle

    def _complete(self, error: Any) -> None:
        """Set the attribute ``scan`` of an exception, and make its partial table."""
        error.scan, read = self, (0, 0)
        if isinstance(partial := getattr(error, "partial", None), Frame):
            error.partial, counts = self._table(partial), partial.report()
            read = counts["pages"], counts["points_read"]
        note_read(error, self, read)

    def _settling_names(self, call: Call[bool] | None) -> Steps[None]:
        """Wait for the names of series, and warn once if there are none."""
        if call is None or not (yield call):
            return
        reason = _names.names_of(*self._handle.empty().discovery())[1]
        if reason is not None:
            warn([f"Labels are ids, because {reason}."])

    def _check_own_chain(self, what: str, hint: str) -> None:
        if self._store is not None:
            message = f"{what} is not for a scan with store=: no chain of its own reads it."
            raise QueryError(message, hint=hint)

    def _points(self) -> Steps[tuple[_core._Points, Any]]:
        """Return the points, and a callback. A scan through a store is collected first."""
        if self._store is not None or self._known() is not None:
            return (yield from self._reading())._handle.records(), None
        yield from self._beginning(self._handle.reading(self._by_name))
        return self._handle.chain(self._handle.reading(False)), self._callback()

    def resume(self, bookmark: Bookmark, *, onto: Table | None = None) -> Self:
        """Return the same scan, continuing from a bookmark.

        Args:
            bookmark: The ``bookmark`` of an error, a page or a scan.
            onto: The ``partial`` of the same error or scan, to which the rest is added. Without it
                the result is the rest, and ``report.resumed_after_pages`` counts the other pages.

        Raises:
            BookmarkError: The bookmark belongs to another query, host or subject.
            QueryError: ``onto`` does not end at this bookmark.

        >>> first = next(scan.pages())
        >>> scan.resume(first.bookmark).collect().report.resumed_after_pages
        1
        """
        self._check_own_chain("resume()", "Call collect() again: it continues with the store.")
        return self._like(self._handle.resume(bookmark, onto, self._by_name))

    def split(self, by: int | str | timedelta, /) -> list[Self]:
        """Return scans of adjoining ranges, in order of time, with the settings of this one.

        The ranges are cut at multiples of the interval from ``start``. Each part costs at least one
        page, and its last page is only partly filled: :meth:`Client.plan` shows the cost.

        Args:
            by: The number of parts, as equal as whole buckets allow; or the length of a part, as
                text (``"1d"``) or a ``timedelta``. The last part may be shorter.

        Raises:
            QueryError: The scan has no ``start`` or ``interval``, a bookmark, or too few buckets.

        >>> [str(part.query.start.time()) for part in scan.split(3)]
        ['00:00:00', '02:00:00', '04:00:00']
        >>> len(scan.split("1h"))
        6
        """
        self._check_own_chain("split()", "Give each range a scan of its own.")
        return [self._like(part) for part in self._handle.split(by)]

    def __arrow_c_schema__(self) -> object:
        """Export the schema through the Arrow PyCapsule interface."""
        return self._so_far().__arrow_c_schema__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the query, the settings and the client, but no points."""
        settings = (self._tz, self._labels, None, self._store)
        return (type(self), (self._handle, *settings))

    def _text(self) -> str:
        begin = self._handle.begin
        before = "" if begin is None else f", going on after {counted(begin.pages, 'page')}"
        store = self._store
        through = "" if store is None else f", through {escaped(str(store.path))}"
        return f"<{type(self).__name__} {self.query}{before}{through}>"


def _reads_once(store: Any) -> bool:
    return getattr(store, "_reads_once", False)


class Scan(ScanBase):
    """A read that has not started: a query, and the settings of its read.

    Made by :meth:`Client.scan`. ``collect()`` reads once and keeps the table, which
    ``to_pandas()``, ``to_polars()``, ``to_arrow()``, ``pl.DataFrame(scan)`` and
    ``duckdb.sql("from scan")`` use, and after it ``records()``. ``pages()`` always pays again.

    Before DuckDB call ``collect()``: DuckDB replaces an exception of siteline with its own.

    >>> scan = client.scan(site="S1", line="L1", start="2026-11-01T00:00:00Z",
    ...                    end="2026-11-01T01:00:00Z", interval="1m")
    >>> len(scan.to_pandas().columns)
    11
    """

    def collect(self) -> Table:
        """Read the complete range once and merge it; the table is kept.

        A read that fails or is interrupted (Ctrl-C, a cancelled task, an exception of ``progress``)
        keeps its pages: the next call continues after them. It begins again if their cursor cannot
        be used (:class:`CursorRejected`). The exception has ``bookmark``, ``partial`` and ``scan``.

        With ``store=`` pages are stored as they arrive, so errors have no bookmark and no partial
        table. ``report.through`` contains the store and the feeds.
        """
        return wait_for(self._reading())

    def head(self, n: int = 5) -> Table:
        """Read until there are ``n`` points, usually one page, and return them as they were sent.

        ``collect()`` keeps these pages. After it, the points are the first rows of the table.
        """
        return wait_for(self._reading(n)).head(n)

    def pages(self) -> PageIterator:
        """Read page by page, on a new chain.

        Each call costs a request for each page, also after ``collect()``, which keeps points, not
        pages. From the second page on, the next page is prefetched while you work on the current
        one: if you stop early, one page may have been requested in vain.

        Raises:
            QueryError: The scan has ``store=``.
        """
        return PageIterator(self)

    @overload
    def records(self, *, named: Literal[False] = False) -> RecordIterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> RecordIterator[Record]: ...
    @strict
    def records(self, *, named: bool = False) -> RecordIterator[Any]:
        """Read point by point: dicts with the ten columns and ``extra_columns``.

        Times are aware datetimes in UTC, nulls are ``None``. After ``collect()`` the points of the
        table are returned without a request, by series, then time. Otherwise a new chain costs a
        request for each page, as :meth:`pages` does, and points are returned in the order of the
        pages, unmerged. A scan with ``store=`` is collected first.

        Args:
            named: :class:`siteline.types.Record` tuples of the ten columns.

        >>> table = scan.collect()
        >>> used = client.allowance.used
        >>> len(list(scan.records())), client.allowance.used - used
        (72, 0)
        """
        source, callback = wait_for(self._points())
        return RecordIterator(source, named, self, callback)

    @like(Table.to_pandas)
    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return the pandas frame of ``collect()``: see :meth:`Table.to_pandas`."""
        check_options(**options)
        return self.collect().to_pandas(**options)

    @like(Table.to_polars)
    def to_polars(self, **options: Any) -> pl.DataFrame:
        """Return the polars frame of ``collect()``: see :meth:`Table.to_polars`."""
        check_options(**options)
        return self.collect().to_polars(**options)

    @like(Table.to_arrow)
    def to_arrow(self, **options: Any) -> pa.Table:
        """Return the ``pyarrow.Table`` of ``collect()``: see :meth:`Table.to_arrow`."""
        check_options(**options)
        return self.collect().to_arrow(**options)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table of ``collect()`` through the Arrow PyCapsule interface."""
        return self.collect().__arrow_c_stream__(requested_schema)


class Pages(OfThisProcess):
    """The pages of one chain. Each is returned once."""

    _instead = BOOKMARK

    def __init__(self, scan: ScanBase) -> None:
        """Wrap a scan. Its chain begins with the first page."""
        scan._check_own_chain(
            "pages()",
            "collect() reads through the store. Without store= each page costs a request.",
        )
        self._scan = scan
        self._counts = [0, 0]

    def _taking(self) -> Steps[Page | None]:
        """Return the next page, or ``None`` after the last one."""
        with noted(self._scan, "pages", self._returned):
            return (yield from self._next())

    def _returned(self) -> str:
        return pages_and_points(self._counts[0], self._counts[1], "were")

    def _next(self) -> Steps[Page | None]:
        scan, own = self._scan, vars(self)
        reading = scan._handle.reading(_names.needs_names(scan._labels))
        yield from scan._beginning(reading)
        if "_source" not in own:
            # Threads that begin at the same time share one chain.
            own.setdefault("_source", (scan._handle.chain(reading), scan._callback()))
            scan._unlisted()
        source, callback = own["_source"]
        while True:
            frame, ended = source._take_page()
            if frame is not None:
                page = Page(frame, scan._tz, scan._labels)
                self._counts = [self._counts[0] + 1, self._counts[1] + len(page)]
                return page
            if ended:
                finish(callback)
                return None
            yield from next_page(source, callback)
            # Before the page is taken: a caller that is cancelled meanwhile loses none.
            yield from scan._settling_names(source._settle())


class PageIterator(Pages, Iterator[Page]):
    """The pages of one chain, read and prefetched as :meth:`Scan.pages` says.

    Threads may share it: each page is returned once. An error has ``bookmark``, the position after
    the pages that were returned before it.

    >>> [len(page) for page in scan.pages()]
    [30, 30, 12]
    """

    def __next__(self) -> Page:
        """Return the next page."""
        if (page := wait_for(self._taking())) is None:
            raise StopIteration
        return page
