"""One page of a read: :class:`Page`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from siteline._counts import counted
from siteline.errors import QueryError
from siteline.table import Table

if TYPE_CHECKING:
    from siteline.types import Bookmark, Query, ReadReport

__all__ = ["Page", "PageDiff"]


class Page(Table):
    """One page as the service sent it: not merged, not sorted, repeats included.

    Its pickle has no ``bookmark`` and no ``raw``, because both contain a cursor.

    >>> page = next(scan.pages())
    >>> page, page.bookmark, page.report.off_grid
    (<Page 1 with 30 points of 5 series>, <Bookmark after 1 page>, 0)
    """

    _html = "html.page"

    @property
    def report(self) -> ReadReport:
        """The findings and counts of this page."""
        report: ReadReport = super().report
        return report

    @property
    def query(self) -> Query:
        """The query of its chain, with the complete range."""
        query = super().query
        assert query is not None
        return query

    @property
    def bookmark(self) -> Bookmark | None:
        """The position after this page, from which a read continues; ``None`` on the last page."""
        return self._handle.bookmark()

    @property
    def raw(self) -> bytes | None:
        """The unchanged body, if the scan was made with ``keep_raw=True``."""
        return self._handle.raw()

    @property
    def is_last(self) -> bool:
        """Whether it is the last page of its chain."""
        return self._handle.place()[3]

    @property
    def feed(self) -> str | None:
        """The name of its feed, if a sync read it."""
        return self._handle.place()[2]

    @property
    def sequence(self) -> int:
        """The number of the page request, in a sync across all runs of the feed.

        A point of a higher number replaces one of a lower.
        """
        return self._handle.place()[0]

    @property
    def first_sequence(self) -> int:
        """The ``sequence`` of the first page of its chain.

        After the last page of a chain, points in its range with a lower number are withdrawn.
        """
        return self._handle.place()[1]

    @property
    def is_whole(self) -> bool:
        """Whether it has every point of its chain.

        False while another chain of the feed is unfinished, which may mark points as withdrawn.
        """
        return self._handle.place()[4]

    def diff(self, stored: Any) -> PageDiff:
        """Compare the page with the points that a target has.

        A point is its five ids and its timestamp. Two nulls are the same value.

        Args:
            stored: The stored points of the page's range, or of more, as an Arrow stream with the
                ten columns. With a column ``withdrawn`` (booleans), a withdrawn point that the page
                has counts as changed, and one that the page lacks is not missing.

        Raises:
            QueryError: for a missing column, one of another type, and a broken stream.

        >>> import pyarrow as pa
        >>> page = next(scan.pages())
        >>> difference = page.diff(pa.table(page).slice(10))
        >>> len(difference.inserted), len(difference.changed), len(difference.unchanged)
        (10, 0, 20)
        """
        parts = self._handle.compared(stored)
        return PageDiff(*(Page(part, self._tz, self._labels) for part in parts))

    def _check_points(self, what: str) -> None:
        if what != "resample()":
            raise QueryError(
                f"{what} does not fit: a page is a part of a read.",
                hint="Use the table of the whole read: scan.collect().",
            )

    def _text(self) -> str:
        points = counted(len(self), "point", grouping="")
        last = ", the last" if self.is_last else ""
        series = len(self._handle.series())
        return f"<Page {self.sequence} with {points} of {series} series{last}>"


class PageDiff(NamedTuple):
    """The points of a page compared with those that a target has. Each is in one part."""

    inserted: Page
    """Points that are not stored."""
    changed: Page
    """Points that are stored with other values, or as withdrawn."""
    unchanged: Page
    """Points that are stored with the same values."""
    missing: Page
    """Stored points in the range of ``page.query`` that the page does not have."""

    def __repr__(self) -> str:
        """Count the points of each part."""
        counts = ", ".join(f"{len(part)} {name}" for name, part in self._asdict().items())
        return f"<PageDiff: {counts}>"
