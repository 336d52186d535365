"""The result of :meth:`Client.gather`: the tables of several scans, and all of them as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from siteline._core import Table
from siteline._counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, time, timedelta, tzinfo

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._core import (
        Completeness,
        Rebucketed,
        RecordIterator,
        Wide,
        _Labels,
        _PlotLabels,
    )
    from siteline.frames import Record
    from siteline.plots import Plot

__all__ = ["Gathered"]


class Gathered:
    """The tables of several scans, in the order given, and all their points as one table.

    ``len(gathered)``, ``gathered[0]`` and ``for table in gathered`` give the tables. ``.table``,
    ``to_pandas()``, ``to_polars()``, ``to_arrow()``, ``records()`` and the Arrow stream
    (``pl.DataFrame(gathered)``, ``duckdb.sql("from gathered")``) give all points, merged. The
    tables are merged when this is first needed; the merged table takes as much memory as they do.

    Whether ``to`` is inclusive is not documented, so two adjoining scans may both have read a point
    at their common bound: it is kept once, with the values of the later scan. ``.table.report``
    counts the pages of all scans; its ``outside_range`` counts points outside the range of their
    scan.

    >>> gathered = client.gather(scan.split(3))
    >>> gathered
    <Gathered 3 tables, 72 points, 3 pages>
    >>> gathered[0], len(gathered.table) == len(scan.collect())
    (<Table 24 points, 12 series, 1 page>, True)
    """

    __slots__ = ("__weakref__", "_merged", "_tables")

    def __init__(self, tables: tuple[Table, ...]) -> None:
        """Wrap the tables; made by :meth:`Client.gather`."""
        self._tables = tables
        self._merged: Table | None = None

    @property
    def table(self) -> Table:
        """All points, merged: a :class:`Table`.

        In its ``frame.attrs["siteline"]``, ``query`` is one query where the scans adjoin, else the
        list of their queries. Scans with different ``extra_columns`` or ``interval`` cannot be
        merged: :class:`QueryError`.
        """
        if self._merged is None:
            self._merged = Table._together(self._tables)
        return self._merged

    def wide(
        self,
        value: Literal["value", "minimum", "maximum", "sample_count"] = "value",
        *,
        labels: _Labels = None,
        gaps: Literal["explicit"] | None = None,
    ) -> Wide:
        """Return all points with a column for each series: see :meth:`Table.wide`."""
        return self.table.wide(value, labels=labels, gaps=gaps)

    def completeness(
        self,
        by: float | timedelta | str = "1d",
        *,
        tz: str | tzinfo = "UTC",
        origin: str | date | time | None = None,
    ) -> Completeness:
        """Return how much is there, by series and period: see :meth:`Table.completeness`."""
        return self.table.completeness(by, tz=tz, origin=origin)

    def rebucket(
        self,
        interval: float | timedelta | str,
        *,
        value: Literal["mean", "sum", "first", "last"] | None = None,
        tz: str | tzinfo = "UTC",
        origin: str | date | time | None = None,
    ) -> Rebucketed:
        """Return all points in larger buckets: see :meth:`Table.rebucket`."""
        return self.table.rebucket(interval, value=value, tz=tz, origin=origin)

    def plot(
        self,
        value: Literal["value", "minimum", "maximum", "sample_count"] = "value",
        *,
        tz: str | tzinfo | None = None,
        labels: _PlotLabels = None,
        title: str | None = None,
        width: int = 900,
        panels: int = 12,
    ) -> Plot:
        """Draw all points, a panel for each series: see :meth:`Table.plot`."""
        return self.table.plot(value, tz=tz, labels=labels, title=title, width=width, panels=panels)

    def to_pandas(
        self,
        *,
        ids: Literal["str", "category"] = "str",
        tz: str | tzinfo | None = None,
        labels: _Labels = None,
        gaps: Literal["explicit"] | None = None,
    ) -> pd.DataFrame:
        """Build the long pandas frame of all points."""
        return self.table.to_pandas(ids=ids, tz=tz, labels=labels, gaps=gaps)

    def to_polars(
        self,
        *,
        ids: Literal["str", "category"] = "str",
        tz: str | tzinfo | None = None,
        labels: _Labels = None,
        gaps: Literal["explicit"] | None = None,
    ) -> pl.DataFrame:
        """Build the long polars frame of all points, without pyarrow."""
        return self.table.to_polars(ids=ids, tz=tz, labels=labels, gaps=gaps)

    def to_arrow(
        self,
        *,
        tz: str | tzinfo | None = None,
        labels: _Labels = None,
        gaps: Literal["explicit"] | None = None,
    ) -> pa.Table:
        """Build a ``pyarrow.Table`` of all points."""
        return self.table.to_arrow(tz=tz, labels=labels, gaps=gaps)

    @overload
    def records(self, *, named: Literal[False] = False) -> RecordIterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> RecordIterator[Record]: ...
    def records(self, *, named: bool = False) -> RecordIterator[Any]:
        """Return an iterator over the points: plain dicts, or :class:`Record` tuples."""
        return self.table.records(named=True) if named else self.table.records()

    def __len__(self) -> int:
        """Count the tables."""
        return len(self._tables)

    @overload
    def __getitem__(self, index: int) -> Table: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Table, ...]: ...
    def __getitem__(self, index: int | slice) -> Table | tuple[Table, ...]:
        """Return one table, or several."""
        return self._tables[index]

    def __iter__(self) -> Iterator[Table]:
        """Iterate over the tables."""
        return iter(self._tables)

    def _series_ids(self) -> list[tuple[str | None, ...]]:
        return self.table._series_ids()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all points through the Arrow PyCapsule interface."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export their schema through the Arrow PyCapsule interface."""
        return self.table.__arrow_c_schema__()

    def __repr__(self) -> str:
        """Count tables, points and pages; merges nothing."""
        numbers = (len(self), sum(map(len, self)), sum(one.report["pages"] for one in self))
        counts = zip(numbers, ("table", "point", "page"), strict=True)
        return f"<Gathered {', '.join(counted(*one, grouping='') for one in counts)}>"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import html

        return html.gathered(self)
