"""What :meth:`Client.gather` gives: the tables of several scans, and all of them as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from siteline import html
from siteline._siteline import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._siteline import RecordIterator
    from siteline.frames import Record

__all__ = ["Gathered"]


class Gathered:
    """The tables of several scans, in the order asked, and all their points as one table.

    ``len(gathered)``, ``gathered[0]`` and ``for table in gathered`` are about the tables;
    ``.table``, ``to_pandas()`` and its kin, ``records()`` and the Arrow stream
    (``pl.DataFrame(gathered)``, ``duckdb.sql("from gathered")``) about all of it. That is merged
    when it is first asked for, and takes as much memory again as the tables, which the scans keep.

    Nobody knows whether ``to`` is inclusive, so a point at the seam of two parts may have come
    twice: it stands once, as the later scan has it. ``.table.report`` counts the pages of all
    scans; its ``outside_range`` is about the range of each.

    >>> gathered = client.gather(scan.split(3))
    >>> gathered
    <Gathered 3 tables, 72 points, 3 pages>
    >>> gathered[0], len(gathered.table) == len(scan.collect())
    (<Table 24 points, 12 series, 1 page>, True)
    """

    __slots__ = ("_merged", "_tables")

    def __init__(self, tables: tuple[Table, ...]) -> None:
        """Hold the tables; made by :meth:`Client.gather`."""
        self._tables = tables
        self._merged: Table | None = None

    @property
    def table(self) -> Table:
        """All points, merged at the seams: a :class:`Table`.

        Its ``frame.attrs["siteline"]["query"]`` is the whole's query where the parts adjoin, else a
        list of theirs. Scans with different ``extra_columns`` or ``interval`` are not one table: a
        :class:`QueryError`.
        """
        if self._merged is None:
            self._merged = Table._together(self._tables)
        return self._merged

    def to_pandas(self, *, ids: Literal["str", "category"] = "str") -> pd.DataFrame:
        """Build the long pandas frame of the whole."""
        return self.table.to_pandas(ids=ids)

    def to_polars(self, *, ids: Literal["str", "category"] = "str") -> pl.DataFrame:
        """Build the long polars frame of the whole, without pyarrow."""
        return self.table.to_polars(ids=ids)

    def to_arrow(self) -> pa.Table:
        """Build a ``pyarrow.Table`` of the whole."""
        return self.table.to_arrow()

    @overload
    def records(self, *, named: Literal[False] = False) -> RecordIterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> RecordIterator[Record]: ...
    def records(self, *, named: bool = False) -> RecordIterator[Any]:
        """Give the points one by one, as plain dicts, or :class:`Record` tuples."""
        return self.table.records(named=True) if named else self.table.records()

    def __len__(self) -> int:
        """How many tables there are."""
        return len(self._tables)

    @overload
    def __getitem__(self, index: int) -> Table: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Table, ...]: ...
    def __getitem__(self, index: int | slice) -> Table | tuple[Table, ...]:
        """Return one of the tables, or several."""
        return self._tables[index]

    def __iter__(self) -> Iterator[Table]:
        """Iterate over the tables."""
        return iter(self._tables)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the whole through the Arrow PyCapsule interface."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export its schema through the Arrow PyCapsule interface."""
        return self.table.__arrow_c_schema__()

    def __repr__(self) -> str:
        """Tell how much the tables are; merges nothing."""
        numbers = (len(self), sum(map(len, self)), sum(one.report["pages"] for one in self))
        said = zip(numbers, ("table", "point", "page"), strict=True)
        return f"<Gathered {', '.join(_many(*one) for one in said)}>"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return html.gathered(self)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
