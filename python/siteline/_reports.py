"""The keys of the dicts that reports still are: of pages, tables, agents, sandboxes, catalogues.

Records replace them, one after the other.
"""

# Without `from __future__ import annotations`: Python needs the annotations as objects to find at
# run time which keys are optional.
from typing import Literal, NotRequired, TypedDict

__all__: list[str] = []


class _Findings(TypedDict):
    """The common members of the reports of a page and of a table; a table sums over its pages."""

    arrays: list[str]
    """Names of the array of series, sorted; found by shape where not set (§2.3)."""
    timestamp_forms: list[Literal["iso", "epoch_seconds", "epoch_milliseconds"]]
    """Formats of the timestamps."""
    unknown_members: list[str]
    """JSON members that siteline does not know, such as ``points[].quality``; at most 200."""
    outside_range: int
    """Points before the query's start, or at or after its end."""
    off_grid: int
    """Points whose timestamp is not a multiple of the aggregation interval."""
    minimum_above_maximum: int
    """Points with a minimum above their maximum."""
    value_outside_bounds: int
    """Points with a value below their minimum or above their maximum."""
    timestamps_truncated: int
    """Timestamps finer than a microsecond, truncated to microseconds."""
    leap_seconds: int
    """Leap seconds, read as ``:59.999999``."""
    numbers_as_text: int
    """Numbers sent as JSON strings."""
    negative_counts: int
    """Points with a negative sample count."""
    values_missing: int
    """Points without a member for one of the four values, which is null."""
    cursors_missing: int
    """Pages without ``nextCursor``, treated as last (only with ``Shape(missing_cursor="end")``)."""


class PageReport(_Findings):
    """:attr:`Page.report`: assumptions and findings of one page. No counted point was dropped.

    - ``points``, ``series``: points on the page, repeats included, and different series
    - ``arrays``, ``timestamp_forms``: found by shape, since the interface does not show them (§2.3)
    - ``unknown_members``: members that siteline does not know
    - ``outside_range``, ``off_grid``, ``minimum_above_maximum``, ``value_outside_bounds``,
      ``negative_counts``, ``values_missing``: points that are unusual but allowed
    - ``repeated``: points whose series and timestamp occurred before on the page
    - ``timestamps_truncated``, ``leap_seconds``, ``numbers_as_text``: values that were converted
    - ``cursors_missing``: 1 where ``nextCursor`` was missing and that was allowed
    """

    points: int
    """Points on the page, repeats included."""
    series: int
    """Different series on the page."""
    repeated: int
    """Points whose series and timestamp occurred before on the page."""


class ScanReport(TypedDict):
    """:attr:`Scan.report`: what in a query may mean something else than it seems.

    - ``bounds_off_grid``: ``"start"``, ``"end"``: the bounds that lie within a bucket, so that the
      buckets given do not begin or end there. The grid is the multiples of the interval in UTC
    - ``not_listed``: ids of the query that the service does not list, such as ``'line "L9"'``, by
      the newest ``discover()`` of the client; empty before it, and where its body, which the
      interface does not show (§4.2), has no ids that siteline recognises
    """

    bounds_off_grid: list[Literal["start", "end"]]
    """The bounds that lie within a bucket."""
    not_listed: list[str]
    """Ids of the query that the service does not list."""


class TableReport(_Findings, ScanReport):
    """:attr:`Table.report`: assumptions, findings and counts of a complete read.

    - ``pages``, ``points_read``: pages read, and points on them, repeats included
    - ``resumed_after_pages``: earlier pages whose points are not in the table; 0 if it is complete
    - ``points``, ``series``: rows of the table, and different series
    - ``repeated``, ``revised``: points that were sent again with the same values, and with other
      values (the later win, §4.5.3)
    - ``bounds_off_grid``, ``not_listed``: as in :class:`ScanReport`, when the read began
    - ``through``: what came through which feed of a store, each a :class:`StoreShareDict`; empty
      without ``store=``. With it pages are those that were requested, and ``repeated`` and
      ``revised`` count against what the store had
    - the others as in :class:`PageReport`, summed over pages

    The table of :meth:`Sandbox.expected` was not read: its ``pages`` are 0.
    """

    pages: int
    """Pages read."""
    resumed_after_pages: int
    """Earlier pages whose points are not in the table; 0 if it is complete."""
    points_read: int
    """Points on the pages, repeats included."""
    points: int
    """Rows of the table: each point once."""
    series: int
    """Different series."""
    repeated: int
    """Points that were sent again with the same values."""
    revised: int
    """Points that were sent again with other values: the later win (§4.5.3)."""
    through: list["StoreShareDict"]
    """What came through which feed of a store; empty without ``store=``."""


class StoreShareDict(TypedDict):
    """What of a range came through one feed of a store: an item of ``through`` of a report.

    - ``store``, ``feed``: the path of the store, and the name of the feed
    - ``from_store``: the ranges that it had settled, which cost no request
    - ``from_service``: the ranges that were read from the service, and are kept

    Ranges are half-open, ``[start, end]`` as ISO 8601 text in UTC.
    """

    store: str
    """The path of the store."""
    feed: str
    """The name of the feed."""
    from_store: list[list[str]]
    """The ranges that were settled in the store, as (start, end)."""
    from_service: list[list[str]]
    """The ranges that were read from the service, as (start, end)."""


class Provenance(TypedDict):
    """``frame.attrs["siteline"]`` of a pandas frame that was read: the origin of its data.

    - ``query``: the query as text; a list where gathered scans do not adjoin
    - ``host``: the service's host name
    - ``read_at``: when the read began, by the service's clock, as ISO 8601 text in UTC
    - ``pages``, ``resumed_after_pages``: as in :class:`TableReport`; for a page's frame, 1 and the
      number of pages before it
    - ``through``: only with ``store=``: as in :class:`TableReport`

    A frame of :meth:`Sandbox.expected` has an empty dict.
    """

    query: str | list[str]
    """The query as text; a list where gathered scans do not adjoin."""
    host: str
    """The service's host name."""
    read_at: str
    """When the read began, by the service's clock: ISO 8601 text in UTC."""
    pages: int
    """Pages read."""
    resumed_after_pages: int
    """Earlier pages whose points are not in the frame."""
    through: NotRequired[list[StoreShareDict]]
    """Only with ``store=``: what came through which feed of the store."""


class RangeCoverage(TypedDict):
    """What of a range has been read from the service: ``coverage`` of a :class:`StoreProvenance`.

    Also JSON in the metadata of the Arrow stream's schema, under ``siteline.coverage``. Times are
    ISO 8601 text in UTC, ranges are half-open.

    - ``complete``: whether all of the range was read
    - ``read``, ``unread``: the parts that were read to the end of a chain, and those that were not
    - ``forgotten``: the unread parts that :meth:`Store.forget` removed
    - ``settled``: the settled parts; ``None`` for :meth:`Store.as_of`
    - ``newest``: the newest instant of the feed that was read, or ``None``
    """

    newest: str | None
    """The newest instant of the feed that was read."""
    read: list[list[str]]
    """The parts that were read, as (start, end)."""
    unread: list[list[str]]
    """The parts that were not read, as (start, end)."""
    forgotten: list[list[str]]
    """The unread parts whose points were removed, as (start, end)."""
    settled: list[list[str]] | None
    """The settled parts, as (start, end)."""
    complete: bool
    """Whether all of the range was read."""


class StoreProvenance(TypedDict):
    """``frame.attrs["siteline"]`` of a pandas frame from a :class:`Store`: what was selected.

    - ``store``, ``feed``, ``query``: the store's path, the feed's name, and the feed's query
    - ``sequence``: the number of the newest page in it, for :meth:`Store.as_of`
    - ``start``, ``end``: the requested range, ISO 8601 text in UTC, or ``None``
    - ``machine``, ``device``, ``tag``, ``series``: what was picked; ``None`` for all
    - ``settled_only``, ``flagged``, ``unread``: as given to :meth:`Store.points`
    - ``coverage``: a :class:`RangeCoverage`: what of the range has been read from the service
    - ``since``: only for :meth:`Store.changes`: the sequence number that changes are relative to
    """

    store: str
    """The store's path."""
    feed: str
    """The feed's name."""
    query: str
    """The feed's query as text."""
    sequence: int
    """The number of the newest page in it."""
    start: str | None
    """The start of the range: ISO 8601 text in UTC."""
    end: str | None
    """The end of the range: ISO 8601 text in UTC."""
    machine: list[str] | None
    """The ids of machines that were picked; ``None`` for all."""
    device: list[str] | None
    """The same for devices."""
    tag: list[str] | None
    """The same for tags."""
    series: list[tuple[str | None, ...]] | None
    """The series that were picked, each its five ids; ``None`` for all."""
    settled_only: bool
    """Whether windows that may still change are omitted."""
    flagged: Literal["keep", "drop", "only"]
    """What was done with flagged points."""
    unread: Literal["error", "warn", "keep"]
    """What was done where a part of the range was not read."""
    coverage: RangeCoverage
    """What of the range has been read from the service."""
    since: NotRequired[int]
    """Only for changes: the sequence number that they are relative to."""


class CatalogueReport(TypedDict):
    """What was found where in a discovery body: ``catalogue.report``.

    Paths are such as ``sites[].lines[].lineId``: ``[]`` stands for the items of a list, ``{}`` for
    the values of a mapping, whose names are ids.
    """

    listed: int
    """Series that discovery lists."""
    seen: int
    """Series that only data had."""
    seen_is_complete: bool
    """Whether the client remembers all series of its pages: at most 1,048,576."""
    repeated: int
    """Series that discovery lists again; the first one stands."""
    not_ended: bool
    """Whether the body has a cursor, so that it may be a part."""
    series: list[str]
    """Where the series are."""
    ids: dict[str, list[str]]
    """Where each of the five ids is, by the names of the columns."""
    names: list[str]
    """Where names are."""
    units: list[str]
    """Where units are."""
    not_recognised: list[str]
    """Members that are not in the catalogue."""
