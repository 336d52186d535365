"""The result of :meth:`Client.gather`: the tables of several scans, and all of them as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from siteline._core import Frame
from siteline._counts import counted
from siteline.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

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
            self._merged = self._tables[0]._made(
                Frame.together([one._handle for one in self._tables])
            )
        return self._merged

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

    def __repr__(self) -> str:
        """Count tables, points and pages; merges nothing."""
        numbers = (len(self), sum(map(len, self)), sum(one.report.pages for one in self))
        counts = zip(numbers, ("table", "point", "page"), strict=True)
        return f"<Gathered {', '.join(counted(*one, grouping='') for one in counts)}>"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import html

        return html.gathered(self)
