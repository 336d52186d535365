"""The resource :class:`Points`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from siteline._keywords import strict
from siteline.errors import ConfigError, QueryError, SitelineError
from siteline.frames import needing

with needing("dlt pyarrow", "siteline.dlt", "dlt"):
    import dlt
    import pyarrow as pa

from dlt.common.destination.exceptions import DestinationCapabilitiesException
from dlt.common.destination.utils import resolve_merge_strategy
from dlt.extract import DltResource
from dlt.extract.hints import make_hints

from siteline import Feed
from siteline.dlt._kept import KeptStates
from siteline.dlt._rows import COLUMNS, KEY, newest, rows_of

if TYPE_CHECKING:
    from siteline.client import Client
    from siteline.types import SyncPages, SyncReport

    _Step: TypeAlias = tuple[pa.Table | None, dict[str, bytes]]

_log = logging.getLogger("siteline.dlt")


class Points(DltResource):
    """The points of feeds as a dlt resource. Made by :func:`points`.

    Each run reads the data that is due, as :meth:`Client.sync` does.
    """

    _run: _Run | None = None

    @property
    def report(self) -> SyncReport | None:
        """The report of this process's last run. ``inserted`` counts the points that it loads."""
        return None if self._run is None else self._run.report

    def raise_for_incomplete(self) -> None:
        """Raise the error that ended the last run early, if any.

        Without such an error this is :meth:`SyncReport.raise_for_incomplete` of ``report``.
        """
        if self._run is None or self._run.report is None:
            return
        if self._run.error is not None:
            raise self._run.error
        self._run.report.raise_for_incomplete()

    def _clone(self, **options: Any) -> Points:
        clone: Points = super()._clone(**options)
        clone._run = self._run
        return clone


@strict
def points(
    client: Client, feeds: Feed | Iterable[Feed], *, name: str = "points", **options: Any
) -> Points:
    """Make a resource of dlt that brings the points of feeds up to date.

    A row has the feed, the ten columns of a point, ``sequence`` (the page that brought it) and
    ``series``, a digest of feed and ids. ``series`` and ``timestamp`` are the primary key.

    A run that ends before everything is read (``points.report.complete``) logs it. Its pages are
    loaded, and the next run continues. An error after the first page does the same, and
    :meth:`Points.raise_for_incomplete` raises it. An error before it ends the extraction.

    A run raises :class:`ConfigError` if points are not merged, :class:`StoreBusy` while an earlier
    load of the pipeline is pending, and :class:`StoreError` if that load ended without its rows.

    Args:
        client: The client.
        feeds: A feed, or several.
        name: The name of the resource, and of its table unless another is given.
        options: Parameters of :meth:`Client.sync_pages`. ``max_pages`` and ``until`` end a run.

    Raises:
        QueryError: A feed has ``audit_pages``. dlt does not report the changes of each page.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      start="2026-11-15T00:00Z")
    >>> siteline.dlt.points(client, feed, max_pages=100).name
    'points'
    """
    feeds = [feeds] if isinstance(feeds, Feed) else list(feeds)
    for feed in feeds:
        if feed.audit_pages:
            needed = "a store that reports the changes of each page; dlt does not"
            raise QueryError(f"feed {feed.name!r}: audit_pages= needs {needed}.")
    run = _Run(client, feeds, options)
    columns: Any = COLUMNS
    hints = make_hints(write_disposition="merge", primary_key=KEY, columns=columns)
    resource: Points = Points.from_data(run.read, name=name, section="siteline", hints=hints)
    resource._run = run
    return resource


class _Run:
    """The query of a resource and its copies, and their last run."""

    def __init__(self, client: Client, feeds: list[Feed], options: dict[str, Any]) -> None:
        self._client, self._feeds, self._options = client, feeds, options
        self.report: SyncReport | None = None
        self.error: SitelineError | None = None

    def read(self) -> Generator[pa.Table]:
        """Yield the points of each page, or of all pages together if the destination needs it."""
        self.report = self.error = None
        takes_each_once = _takes_each_once()
        kept = KeptStates()
        states = kept.read(feed.name for feed in self._feeds)
        with self._client.sync_pages(self._feeds, states, **self._options) as pages:
            steps = self._steps(pages)
            try:
                for rows, state in _together(steps) if takes_each_once else steps:
                    if rows is not None:
                        yield rows
                    # If dlt closes the generator at the yield, it may not have the rows.
                    kept.keep(state)
            finally:
                kept.hand_over()
                self.report = pages.report
        self._tell()

    def _steps(self, pages: SyncPages) -> Iterator[_Step]:
        is_first = True
        while True:
            try:
                page, state = next(pages)
            except StopIteration:
                return
            except SitelineError as error:
                self.error = error
                if is_first:
                    raise
                return  # an error would lose pages that were paid for
            yield (rows_of(page) if page is not None and len(page) else None), state
            is_first = False

    def _tell(self) -> None:
        report = self.report
        assert report is not None
        counts = {name: getattr(report, name) for name in ("requests", "pages", "complete")}
        dlt.current.resource().custom_metrics.update(counts)
        # Not a warning: a filter that turns it into an error would lose the pages.
        if self.error is not None:
            _log.warning("dlt loads the pages before this error: %s", self.error)
        elif not report.complete:
            _log.warning("dlt loads the pages that were read. %s", report)


def _together(steps: Iterable[_Step]) -> Iterator[_Step]:
    """Yield all points as one table, each once, with the states after them."""
    held, states = [], {}
    for rows, state in steps:
        held += [] if rows is None else [rows]
        states.update(state)
    yield (newest(pa.concat_tables(held).combine_chunks()) if held else None), states


def _takes_each_once() -> bool:
    """Whether the destination would store several rows of one point.

    With "delete-insert" dlt stores the newest row, with "upsert" (Delta, Iceberg, Lance) all of
    them. Other strategies are rejected before any request.
    """
    table: Any = dlt.current.resource().compute_table_schema()
    disposition, destination = table.get("write_disposition"), dlt.current.pipeline().destination
    if disposition != "merge":
        raise ConfigError(
            f"Points must be merged: with write_disposition={disposition!r} the table "
            f"{table['name']!r} would lose points of earlier runs, or have some twice.",
            hint="refresh='drop_resources' replaces them: it reads everything again.",
        )
    if destination is None:
        raise ConfigError(
            "The pipeline needs a destination, because it decides how points are merged.",
            hint="dlt.pipeline('plant', destination='duckdb').run(points)",
        )
    strategy, named = None, destination.destination_name
    with contextlib.suppress(DestinationCapabilitiesException):
        tables, capabilities = {table["name"]: table}, destination.capabilities()
        strategy = resolve_merge_strategy(tables, table, capabilities)
    if strategy not in ("delete-insert", "upsert"):
        raise ConfigError(
            f"dlt does not merge the points of {table['name']!r} in the destination {named!r}.",
            hint='In a filesystem dlt merges only the table_format "delta" and "iceberg".',
        )
    return strategy == "upsert"
