"""The class of everything tabular: :class:`Table`."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, Literal, overload

from siteline import _files, _series, frames
from siteline import _labels as _naming
from siteline._core import zone_name
from siteline._counts import counted
from siteline._handles import Itself, WithHtml
from siteline._keywords import strict
from siteline._points import RecordIterator
from siteline._records.query import Query
from siteline._records.tables import ReadReport, SeriesReport, StoreReport
from siteline._times import in_zone, local_microseconds, zone_of
from siteline.errors import QueryError, SitelineError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from datetime import date, time, timedelta, tzinfo
    from typing import TextIO

    import altair as alt
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._core import Frame
    from siteline._discovered import Ids
    from siteline._labels import Labels
    from siteline._records.series import Record

    _Texts = str | int | Iterable[str | int] | None
    _Kind = Literal["points", "changes", "resampled", "pivoted", "completeness", "gaps", "series"]
    _Agg = Literal["mean", "sum", "first", "last", "increase"]
    _Partial = Literal["null", "keep", "drop"]

__all__ = ["Table"]

_UNLIKE = {
    "changes": ("changes are a part of the points", "Use store.read(...) of their range."),
    "resampled": ("the points are resampled already", "Use the table before resample()."),
    "pivoted": ("the table is pivoted", "Use the table before pivot()."),
    "completeness": ("this table counts buckets", "Use the table of points that it was made from."),
    "gaps": ("this table lists gaps", "Use the table of points that it was made from."),
    "series": ("this table lists series", "Use a table of points: client.read(series=...)."),
}


class Table(Itself, WithHtml):
    """Points or rows made of points. It is immutable.

    Points have the columns ``site_id``, ``line_id``, ``machine_id``, ``device_id``, ``tag_guid``
    (text), ``label`` (unless ``labels=False``), ``timestamp`` (microseconds, in the zone of the
    read), ``value``, ``minimum``, ``maximum`` (double) and ``sample_count`` (integer). Points of a
    store also have ``withdrawn``, and changes have ``change``. Rows are sorted by series, then
    time. Each point is in it once, with the values of the latest page.

    Series have the five ids, ``label``, ``name``, ``unit``, ``path``, ``listed`` (false for series
    that only data has), names of the levels if discovery has them (``machine_name``), and further
    members: text, numbers, truth values, or JSON text.

    A table is an Arrow stream: ``pl.DataFrame(table)``, ``pyarrow.table(table)``, and for a
    variable ``points``, ``duckdb.sql("from points")``. The table of a store is streamed from its
    file: memory stays flat, and a later sync does not change it.

    >>> table = scan.collect()
    >>> table, table.report.revised
    (<Table 72 points, 12 series, 3 pages>, 0)
    >>> table.to_pandas(ids="category")["machine_id"].nunique()
    4
    """

    _html = "html.table"

    def __init__(
        self,
        handle: Frame,
        tz: str = "UTC",
        labels: Labels = False,
        found: _naming.Found | None = None,
        names: _naming.Known | None = None,
        silent: list[Ids] | None = None,
        searched: tuple[int, list[str]] | None = None,
    ) -> None:
        """Wrap a frame of the core."""
        self._handle, self._tz, self._labels = handle, tz, labels
        self._found, self._names = found, names
        # Series of the read without a point; None if the query gives them.
        self._silent = silent
        # The number of series in which find() found none, and similar texts.
        self._searched = searched

    @property
    def kind(self) -> _Kind:
        """What the rows are."""
        kind: _Kind = self._handle.kind
        return kind

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the frames."""
        return self._handle.names((None, self._shown(self._labels), None))

    @property
    def query(self) -> Query | None:
        """The query of the read; ``None`` for a store, and for rows made of points."""
        query = self._handle.query()
        return None if query is None else Query._restore(query)

    @property
    def series(self) -> Table:
        """The series of this table, with labels, names and units."""
        if self.kind == "series":
            return self
        names, reason = self._known_names()
        series, labels, found = self._handle.series(), self._labels, self._find_labels()
        if labels is False:
            labels = "machine"
            found = _naming.find(labels, series, names, reason)
        rows = _series.rows_of(names, series)
        return _series.table(rows, names or _series.NO_NAMES, labels, self._tz, found)

    def _known_names(self) -> _naming.Known:
        """Return the names of series, or why there are none."""
        if self._names is None:
            if isinstance(self._labels, Table):
                return self._labels._known_names()
            if self.kind != "series":
                return _naming.names_of(*self._handle.discovery())
            names = _series.Names.of_frame(self._handle)
            self._names = names, None
            return names, None
        return self._names

    @property
    def report(self) -> Any:
        """The assumptions, findings and counts of the read, or of the table's source.

        A :class:`siteline.types.ReadReport`; of a store a :class:`siteline.types.StoreReport`; of
        series a :class:`siteline.types.SeriesReport`.
        """
        report = self._handle.report()
        if self.kind == "series":
            report["ids"] = {name: tuple(paths) for name, paths in report["ids"].items()}
            return SeriesReport._restore(report)
        found = self._find_labels()
        record = StoreReport if "sequence" in report else ReadReport
        return record._restore({**report, "names": found.reason, "labels": found.word})

    def __len__(self) -> int:
        """Count the rows, of a store mostly in its directory."""
        return len(self._handle)

    def _find_labels(self) -> _naming.Found:
        """Return the labels of this table; kept once names are known."""
        if self._found is not None:
            return self._found
        found = self._with_labels(self._labels)
        if found.reason is None or self._names is not None:
            self._found = found
        return found

    def _shown(self, labels: Labels | None) -> dict[Ids, str] | None:
        if labels is None or labels is self._labels:
            return self._find_labels().of_series
        return self._with_labels(_naming.checked(labels)).of_series

    def _with_labels(self, labels: Labels) -> _naming.Found:
        if labels is False:
            return _naming.Found(None, None, None)
        own = labels if isinstance(labels, Table) else self
        return _naming.find(labels, self._handle.series(), *own._known_names())

    def _zone(self, tz: str | tzinfo | None) -> str:
        return self._tz if tz is None else zone_name(tz)

    def _metadata(self, zone: str, labels: Labels | None) -> dict[str, Any]:
        """Return the members of ``frame.attrs["siteline"]`` that are not of the read."""
        labels = self._labels if labels is None else labels
        word = labels if isinstance(labels, str) or labels is False else "given"
        return {"tz": zone, "labels": word}

    def _presented(self, zone: str, labels: Labels | None) -> Any:
        metadata = {**self._handle.provenance(), **self._metadata(zone, labels)}
        return zone, self._shown(labels), json.dumps(metadata)

    def _stream(self, tz: str | tzinfo | None, labels: Labels | None) -> Any:
        return self._handle.stream(self._presented(self._zone(tz), labels))

    def to_pandas(
        self,
        *,
        ids: Literal["str", "category"] = "str",
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
    ) -> pd.DataFrame:
        """Return a pandas frame. Under pandas 3, numbers and timestamps are not copied.

        ``frame.attrs["siteline"]`` is the provenance, with values of JSON.

        Args:
            ids: ``"category"`` is faster and smaller than ``"str"``.
            tz: The zone of times. By default the table's.
            labels: The names of series, as in ``scan()``. By default the table's.

        Raises:
            QueryError: for an unknown value, and for a pivoted table with two equal names.
            UnreadRange, StoreError: if a store cannot be read.
        """
        frames.check_ids(ids)
        zone, shown = self._zone(tz), self._shown(labels)
        return frames.to_pandas(self._handle, ids, zone, shown, self._metadata(zone, labels))

    def to_polars(
        self,
        *,
        ids: Literal["str", "category"] = "str",
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
    ) -> pl.DataFrame:
        """Return a polars frame, without pyarrow. Takes the parameters of ``to_pandas()``."""
        frames.check_ids(ids)
        return frames.to_polars(self._stream(tz, labels), ids)

    def to_arrow(self, *, tz: str | tzinfo | None = None, labels: Labels | None = None) -> pa.Table:
        """Return a ``pyarrow.Table``. Ids and labels are dictionary-encoded.

        Args:
            tz, labels: As of ``to_pandas()``.
        """
        return frames.to_arrow(self._stream(tz, labels))

    def lazy(self) -> pl.LazyFrame:
        """Return a polars ``LazyFrame``.

        A query of a store reads only the range in its filter of ``timestamp``, the series that pass
        its filters of ids, and the columns that it uses.

        >>> import polars as pl
        >>> lazy = store.read("line-2").lazy()
        >>> noon = pl.datetime(2026, 11, 16, 12, time_zone="UTC")
        >>> lazy.filter(timestamp=noon).select("machine_id", "value").collect().height
        6
        """
        from siteline import _lazy

        if self._handle.is_in_memory or self.kind != "points":
            return self.to_polars().lazy()
        return _lazy.scan(self._handle, self._tz, self._shown(None))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the Parquet file ``path``, whole or not at all. It needs pyarrow.

        >>> scan.collect().to_parquet("points.parquet")
        """
        _files.write_parquet(path, self._stream(None, None))

    def to_csv(self, target: str | os.PathLike[str] | TextIO) -> None:
        """Write CSV to ``target``: the path of a file, whole or not at all, or an open text file.

        Times are ISO 8601 in the zone of the table; a null is an empty field.
        """
        _files.write_csv(target, self.columns, self._rows())

    def to_excel(self, path: str | os.PathLike[str]) -> None:
        """Write the Excel file ``path`` with one sheet, whole or not at all. It needs openpyxl.

        Times are local times of the table's zone, without an offset: Excel cannot store it.

        Raises:
            QueryError: for more rows or columns than a sheet has.
        """
        _files.write_excel(path, self.columns, len(self), self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as the frames have them, in the zone of the table."""
        zone, shown = zone_of(self._tz), self._shown(None)
        for row in RecordIterator[Any](self._handle.records((None, shown, None)), named=False):
            for name, one in row.items():
                if hasattr(one, "astimezone"):
                    row[name] = in_zone(one, zone)
            yield row

    @overload
    def records(self, *, named: Literal[False] = False) -> Iterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> RecordIterator[Record]: ...
    @strict
    def records(self, *, named: bool = False) -> Iterator[Any]:
        """Return an iterator over the rows as dicts, with times in UTC. Only series have labels.

        Args:
            named: Points as ``Record`` tuples of the ten columns, without ``withdrawn``.
        """
        if named and self.kind not in ("points", "changes"):
            raise self._misfit("records(named=True)")
        shown = self._shown(None) if self.kind == "series" else None
        return RecordIterator(self._handle.records((None, shown, None)), named)

    def head(self, n: int = 5) -> Table:
        """Return the first ``n`` rows."""
        return self._made(self._handle.first(n))

    def _made(
        self,
        handle: Frame,
        tz: str | None = None,
        silent: list[Ids] | None = None,
        searched: tuple[int, list[str]] | None = None,
    ) -> Table:
        # Labels of fewer series may lack one that is listed without points.
        found = None if silent else self._find_labels()
        kept = found if found and found.reason is None else None
        searched = searched or self._searched
        return Table(handle, tz or self._tz, self._labels, kept, self._names, silent, searched)

    def _series_count(self) -> str:
        if self._searched is None:
            return f"{len(self._handle.series()):,} series"
        searched, near = self._searched
        named = f" (nearest: {', '.join(map(repr, near))})" if near else ""
        return f"0 of {searched:,} series{named}"

    def _without_points(self) -> list[Ids]:
        """Return the series that the read asked for and that have no point."""
        query = self.query
        if self._silent is not None or query is None or query.filters:
            return self._silent or []
        names, seen = self._known_names()[0], set(self._handle.series())
        rows = [] if names is None else [row for row in names.rows if row.listed]
        if query.series:
            rows = _series.rows_of(names, query.series)
        if names is not None:
            seen |= {row.ids for row in map(names.row, seen) if row}
        levels = (query.site, query.line, query.machine, query.device, query.tag)
        asked = _series.matching(rows, {}, None, [level or None for level in levels], None)
        return [ids for ids in asked if ids not in seen]

    def _misfit(self, what: str) -> QueryError:
        why, hint = _UNLIKE[self.kind]
        return QueryError(f"{what} does not fit: {why}.", hint=hint)

    def _check_points(self, what: str) -> None:
        if self.kind != "points":
            raise self._misfit(what)

    def find(
        self,
        text: str | None = None,
        *,
        site: _Texts = None,
        line: _Texts = None,
        machine: _Texts = None,
        device: _Texts = None,
        tag: _Texts = None,
        unit: _Texts = None,
    ) -> Table:
        """Return a table with the rows of some series.

        Args:
            text: A text in ids, names, unit or label, in any case.
            site, line, machine, device, tag: An id or an exact name, or several of them.
            unit: A unit, or several of them.

        Returns:
            A table of the same kind. It is empty if no series matches; its text then has the
            nearest names.

        >>> len(scan.collect().find(line="L1").series) <= len(scan.collect().series)
        True
        """
        names, labels = self._known_names()[0], self._find_labels().of_series or {}
        asked = (text, (site, line, machine, device, tag), unit)
        silent, every = self._without_points(), self._handle.series()
        known, further = (_series.rows_of(names, series) for series in (every, silent))
        found, kept = (_series.matching(rows, labels, *asked) for rows in (known, further))
        searched = self._searched
        if not (found or kept or searched):
            searched = len({*every, *silent}), _series.near([*known, *further], *asked)
        return self._made(self._handle.keep(found), None, kept, searched)

    def pivot(self, values: str | None = None) -> Table:
        """Return a table with one column for each series, named by its label.

        ``timestamp`` is the index in pandas and the first column elsewhere. Without labels the
        columns are named by the five ids, joined by ``" / "``.

        Args:
            values: The column. By default ``"value"``, and ``"share"`` of a completeness.

        Raises:
            QueryError: for an unknown column, and for more than 2**31 cells.

        >>> frame = scan.collect().pivot("maximum").to_pandas()
        >>> frame.index.name, frame.shape
        ('timestamp', (6, 12))
        """
        if self.kind in ("pivoted", "gaps", "changes", "series"):
            raise self._misfit("pivot()")
        default = "share" if self.kind == "completeness" else "value"
        return self._made(self._handle.pivot(default if values is None else values))

    def with_gaps(self) -> Table:
        """Return the points with a row of nulls for each bucket that was read and has no point.

        Raises:
            QueryError: if the missing buckets are unknown: for a part of a read, without
                ``interval``, and for points off the grid of the interval.
        """
        self._check_points("with_gaps()")
        return self._made(self._handle.with_gaps(), None, self._without_points())

    def resample(
        self,
        every: float | timedelta | str,
        agg: _Agg,
        *,
        partial: _Partial = "null",
        tz: str | tzinfo | None = None,
        origin: str | date | time | None = None,
    ) -> Table:
        """Return the points in larger buckets: hours, local days, weeks, months or shifts.

        ``minimum``, ``maximum`` and ``sample_count`` become the least, the greatest and the sum.
        ``buckets`` counts the points of a period, and ``expected`` the buckets that fit into it
        (null without ``interval``). ``partial`` marks periods that were not read completely: a part
        is outside the range, unread in a store, or not settled in a ``final=True`` read. A bucket
        without a point does not make a period partial.

        Args:
            every: ``"8h"``, ``"1d"``, ``"1w"`` (from Monday), ``"1mo"``, seconds, a ``timedelta``.
            agg: How ``value`` is combined, because the service does not document it. ``"mean"``
                is weighted by ``sample_count``; a period in which one is missing is unweighted,
                with one warning. ``"sum"``, ``"first"`` and ``"last"`` use the values as they are.
                ``"increase"`` is for counters: the rise of ``maximum`` since the bucket before. A
                fall is a reset. The first bucket, also after unread time, counts from ``minimum``.
            partial: ``"null"`` sets ``value``, ``minimum``, ``maximum`` and ``sample_count`` of
                partial periods to null, with one warning. ``"keep"`` keeps the numbers of the part
                that was read. ``"drop"`` leaves the periods out.
            tz: The zone of the periods. By default the table's.
            origin: A time (``"06:00"``) or a date at which a period begins. By default midnight.

        Raises:
            QueryError: if a bucket of this table would be in two periods.

        >>> pairs = scan.collect().resample("2h", "mean")
        >>> pairs, pairs.to_pandas()["expected"].unique().tolist()
        (<Table resampled: 36 rows, 12 series, 2h in UTC>, [2])
        """
        self._check_points("resample()")
        zone = self._zone(tz)
        made = self._handle.resample(every, agg, partial, zone, _grid(origin, zone))
        return self._made(made, zone)

    def completeness(
        self,
        every: float | timedelta | str = "1d",
        *,
        tz: str | tzinfo | None = None,
        origin: str | date | time | None = None,
    ) -> Table:
        """Count the buckets of each series and period.

        Columns: ``share`` (``buckets`` of ``expected``), ``buckets``, ``missing`` (read, without a
        point), ``unread`` (never read) and ``expected``. A series that discovery lists for the
        read, or that was selected by its ids, is listed even without any point.

        Args:
            every, tz, origin: As of ``resample()``.

        Raises:
            QueryError: as of ``with_gaps()``.

        >>> hours = scan.collect().completeness("3h").to_pandas()
        >>> hours["share"].tolist()[:2], hours["expected"].unique().tolist()
        ([1.0, 1.0], [3])
        """
        self._check_points("completeness()")
        zone = self._zone(tz)
        silent = self._without_points()
        made = self._handle.completeness(every, zone, _grid(origin, zone), silent)
        return self._made(made, zone, silent)

    def gaps(self, *, longer_than: float | timedelta | str | None = None) -> Table:
        """Return one row for each gap: ``start``, ``end``, and the number of ``buckets``.

        Unread time is not a gap. A series without any point, as of ``completeness()``, is one gap.

        Args:
            longer_than: Leave out gaps of this length and shorter ones.

        Raises:
            QueryError: as of ``with_gaps()``.

        >>> scan.collect().gaps()
        <Table gaps: 0 rows, 0 series>
        """
        self._check_points("gaps()")
        silent = self._without_points()
        return self._made(self._handle.gaps(longer_than, silent), None, silent)

    @strict
    def plot(
        self,
        values: Literal["value", "minimum", "maximum", "sample_count"] = "value",
        *,
        overlay: bool = False,
        title: str | None = None,
        width: int = 800,
        panels: int = 12,
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
    ) -> alt.LayerChart | alt.VConcatChart:
        """Return an Altair chart of points or of larger buckets, with a panel for each series.

        The line is ``values``, and the band is from minimum to maximum. A missing bucket is a gap.
        A partial period is hatched. With more points than pixels, the chart contains the lowest and
        the highest point of each part. The mouse wheel zooms, and dragging moves the range.

        Args:
            values: The column to draw; the band belongs to ``"value"``.
            overlay: Draw all series in one panel.
            title: The title. By default what the series have in common.
            width: The width in pixels, from 300 to 4,000.
            panels: The most series to draw. The chart gives the number of the others.
            tz, labels: As of ``to_pandas()``.

        Returns:
            A ``LayerChart`` of one panel, a ``VConcatChart`` of several.

        Raises:
            QueryError: for a wrong argument, and for tables of other kinds.
            ImportError: if Altair is not installed.

        >>> chart = scan.collect().plot(title="Site S1")
        >>> chart.save("site.html", inline=True)  # needs no network to be shown
        """
        if self.kind not in ("points", "resampled"):
            raise self._misfit("plot()")
        from siteline._plots.points import points

        zone, shown = self._zone(tz), self._shown(labels)
        chart: alt.LayerChart | alt.VConcatChart = points(
            self, values, zone, shown, title, width, panels, overlay
        )
        return chart

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows through the Arrow PyCapsule interface."""
        return self._stream(None, None).__arrow_c_stream__()

    def __arrow_c_schema__(self) -> object:
        """Export the schema through the Arrow PyCapsule interface."""
        return self._stream(None, None).__arrow_c_schema__()

    def _ipc(self) -> Iterator[bytes]:
        """Return the parts of an Arrow IPC stream."""
        return self._handle.batches(self._presented(self._tz, None))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows, or of a store its path and the selection."""
        found, (names, reason) = self._find_labels(), self._known_names()
        silent = self._without_points()
        # Only the names of its own series, and no discovery response.
        if names is not None and self.kind != "series":
            own = _series.rows_of(names, [*self._handle.series(), *silent])
            names = _series.Names([row for row in own if row.listed], names.report)
        labels = self._labels
        if not isinstance(labels, str | bool):
            labels = found.of_series or {}
        kept = found if found.reason is None else None
        state, rows = self._handle.state()
        shown = (self._tz, labels, kept, (names, reason), silent, self._searched)
        return _restored, (type(self), state, rows, zlib.crc32(rows), *shown)

    def _text(self) -> str:
        """Count the rows and name their source, without reading points of a store."""
        frame, name = self._handle, type(self).__name__
        if (selection := frame.selection()) and not frame.is_in_memory:
            what, read, _ = selection
            what = f"changes of {what}" if self.kind == "changes" else what
            if self._searched is not None:
                what = what.replace(", 0 of the series", f", {self._series_count()}")
            return f"<{name} {what}; {read}{_withdrawn(self)}>"
        series = self._series_count()
        if self.kind == "series":
            return f"<{name} {series}>"
        if self.kind not in ("points", "changes"):
            period = f", {frame.every} in {self._tz}" if frame.every else ""
            return f"<{name} {self.kind}: {counted(len(self), 'row')}, {series}{period}>"
        points = counted(len(self), "point", grouping="")
        source = frame.provenance()
        if "pages" not in source:
            return f"<{name} {points}>"
        pages = counted(source["pages"], "page", grouping="")
        before = source.get("resumed_after_pages", 0)
        missing = f" after {before} that are not in it" if before else ""
        through = f", through {source['through'][0]['store']}" if source.get("through") else ""
        return f"<{name} {points}, {series}, {pages}{missing}{through}>"


def _withdrawn(table: Table) -> str:
    try:
        count = table.report.withdrawn
    except SitelineError:
        return ""
    return f"; {count:,} withdrawn" if count else ""


def _grid(origin: Any, zone: str) -> int | None:
    """Return the beginning of a grid, in microseconds of the local clock since 1970."""
    if origin is None:
        return None
    try:
        return local_microseconds(origin, zone)
    except (TypeError, ValueError):
        raise QueryError(
            f"origin={str(origin)[:200]!r} is no local time.",
            hint='Give a time of the day ("06:00"), a date, or both, on the clock of tz=.',
        ) from None


def _restored(cls: type[Table], state: str, rows: bytes, checksum: int, *shown: Any) -> Table:
    from siteline._core import Frame

    if zlib.crc32(rows) != checksum:
        raise QueryError("This is no pickled table: it is damaged.", hint="Read it again.")
    return cls(Frame.restore(state, rows), *shown)
