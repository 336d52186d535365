"""The keys of the dicts that siteline returns.

Each is a plain ``dict`` at run time; the classes here declare the keys and the types of their
values for type checkers.

>>> def late(report: siteline.TableReport) -> int:
...     return report["outside_range"] + report["off_grid"]
>>> late(scan.collect().report)
0
"""

# Without `from __future__ import annotations`: Python needs the annotations as objects to find at
# run time which keys are optional.
from typing import Literal, NotRequired, TypedDict

__all__ = [
    "AllowanceDict",
    "CatalogueReport",
    "CheckDict",
    "DiagnosisDict",
    "FeedReportDict",
    "PageReport",
    "Provenance",
    "PublicJwk",
    "RangeCoverage",
    "ScanReport",
    "SetAsideDict",
    "StoreProvenance",
    "StoreShareDict",
    "SyncReportDict",
    "TableReport",
    "TaskDict",
]


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

    >>> report: siteline.PageReport = next(scan.pages()).report
    >>> report["points"], report["series"], report["timestamp_forms"]
    (30, 5, ['iso'])
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

    >>> scan.report["bounds_off_grid"]
    []
    >>> resources = client.discover()
    >>> client.scan(site="S1", line="L9", start="2026-11-01", interval="1h").report["not_listed"]
    ['line "L9"']
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

    >>> report: siteline.TableReport = scan.collect().report
    >>> report["pages"], report["points"], report["revised"], report["unknown_members"]
    (3, 72, 0, [])
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

    >>> store = siteline.Store("plant.siteline")
    >>> scan = client.scan(site="S1", interval="1h", start="2026-11-17", end="2026-11-19T12:00Z",
    ...                    store=store)
    >>> share: siteline.StoreShareDict = scan.collect().report["through"][0]
    >>> share["feed"], share["from_store"]
    ('data site=S1 interval=1h', [])
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

    >>> source: siteline.Provenance = scan.to_pandas().attrs["siteline"]
    >>> source["host"], source["read_at"], source["pages"]
    ('127.0.0.1', '2026-11-20T00:00:00Z', 3)
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
    through: NotRequired[list["StoreShareDict"]]
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

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> report = client.sync(feed, store)
    >>> day = store.points(feed, "2026-11-16T00:00Z", "2026-11-17T00:00Z").to_pandas()
    >>> coverage: siteline.RangeCoverage = day.attrs["siteline"]["coverage"]
    >>> coverage["complete"], coverage["read"]
    (True, [['2026-11-16T00:00:00Z', '2026-11-17T00:00:00Z']])
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

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> report = client.sync(feed, store)
    >>> source: siteline.StoreProvenance = store.points(feed).to_pandas().attrs["siteline"]
    >>> source["feed"], source["flagged"], source["sequence"] == report["line-2"].sequence
    ('line-2', 'keep', True)
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
    coverage: "RangeCoverage"
    """What of the range has been read from the service."""
    since: NotRequired[int]
    """Only for changes: the sequence number that they are relative to."""


class PublicJwk(TypedDict):
    """A public key as a JSON Web Key, for enrollment (§2.1). It is not secret.

    - ``kty``, ``alg``, ``use``: ``"RSA"``, ``"RS256"``, ``"sig"``
    - ``n``, ``e``: modulus and exponent, unsigned, big-endian, base64url
    - ``kid``: the RFC 7638 thumbprint of the key

    >>> jwk: siteline.PublicJwk = siteline.PrivateKey.generate(2048).public_jwk
    >>> jwk["kty"], jwk["alg"], jwk["use"], jwk["e"]
    ('RSA', 'RS256', 'sig', 'AQAB')
    """

    kty: str
    """The key's type: ``"RSA"``."""
    n: str
    """The modulus: unsigned, big-endian, base64url."""
    e: str
    """The public exponent: unsigned, big-endian, base64url."""
    kid: str
    """The RFC 7638 thumbprint: SHA-256, base64url."""
    alg: str
    """The signature algorithm: ``"RS256"``."""
    use: str
    """The use of the key: ``"sig"``."""


class AllowanceDict(TypedDict):
    """The daily allowance in :meth:`SyncReport.to_dict`: the members of :class:`Allowance`.

    - ``used``, ``limit``, ``left``: requests of the day; ``limit`` and ``left`` are ``None`` where
      no limit is known (§8)
    - ``resets_at``: when the count is reset, ISO 8601 text in UTC

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> allowance: siteline.AllowanceDict = report.to_dict()["allowance"]
    >>> allowance["limit"], allowance["resets_at"]
    (None, '2026-11-21T00:00:00Z')
    """

    used: int
    """Requests counted today."""
    limit: int | None
    """Requests a day; ``None`` where no limit is known."""
    left: int | None
    """Requests left today; ``None`` where no limit is known."""
    resets_at: str
    """When the count is reset: ISO 8601 text in UTC."""


class TaskDict(TypedDict):
    """A :class:`Task` in :meth:`SyncReport.to_dict`: its fields, times as ISO 8601 text in UTC.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", page_size=50,
    ...                      since="2026-11-15T00:00Z")
    >>> frugal = sandbox.client(daily_allowance=2)
    >>> report = frugal.sync(feed, siteline.Store("plant.siteline"))
    >>> task: siteline.TaskDict = report.to_dict()["todo"][0]
    >>> task["feed"], task["why"]
    ('line-2', 'resume')
    """

    feed: str
    """The feed's name."""
    why: Literal["resume", "reread", "edge", "settle", "audit", "fill"]
    """Why it is read: see :class:`Task`."""
    start: str
    """The start of the range."""
    end: str
    """The end of the range."""
    pages: int | None
    """Expected pages; ``None`` where there is no estimate."""


class SetAsideDict(TypedDict):
    """A :class:`SetAside` in :meth:`SyncReport.to_dict`: its fields, times as ISO 8601 text.

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> aside: list[siteline.SetAsideDict] = report.to_dict()["feeds"][0]["set_aside"]
    >>> aside
    []
    """

    start: str
    """The start, inclusive."""
    end: str
    """The end, exclusive."""
    until: str
    """When a sync tries it again by itself."""
    error: str
    """The class of the error that ended its last chain."""
    pages: int
    """The pages of that chain."""


class FeedReportDict(TypedDict):
    """A :class:`FeedReport` in :meth:`SyncReport.to_dict`: its fields, times as ISO 8601 text.

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> done: siteline.FeedReportDict = report.to_dict()["feeds"][0]
    >>> done["name"], done["inserted"] > 0, done["read_through"]
    ('line-2', True, '2026-11-19T23:00:00Z')
    """

    name: str
    """The feed's name."""
    chains: int
    """Chains read to their end."""
    pages: int
    """Pages read."""
    inserted: int
    """Points that were new."""
    revised: int
    """Points that had other values, or were flagged."""
    unchanged: int
    """Points that had the same values."""
    flagged: int
    """Points that a complete read of their range no longer brought."""
    sequence: int
    """The number of the newest page."""
    settled_through: str | None
    """Everything from the feed's beginning up to this time is settled."""
    read_through: str | None
    """Everything from the feed's beginning up to this time was read."""
    newest: str | None
    """The newest instant that was read."""
    late: int
    """Points that audits found to come or change after the lateness."""
    set_aside: list[SetAsideDict]
    """Ranges that are not read for a day."""


class SyncReportDict(TypedDict):
    """:meth:`SyncReport.to_dict`: data for ``json.dumps``, with times as ISO 8601 text in UTC.

    Its keys are the members of :class:`SyncReport`; ``feeds`` is a list in the order given;
    ``todo`` and ``allowance`` are plain data too.

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> line: siteline.SyncReportDict = report.to_dict()
    >>> line["complete"], line["todo"], json.loads(json.dumps(line)) == line
    (True, [], True)
    """

    now: str
    """The time that the sync was planned for."""
    complete: bool
    """Whether everything planned has been read."""
    ended_by: Literal["allowance", "max_pages", "set_aside"] | None
    """Why something is left to read."""
    resumes_at: str | None
    """When to sync again, where the allowance ended the sync or ranges are set aside."""
    pages: int
    """Pages read."""
    inserted: int
    """Points that were new."""
    revised: int
    """Points that had other values, or were flagged."""
    unchanged: int
    """Points that had the same values."""
    flagged: int
    """Points that a complete read of their range no longer brought."""
    requests: int
    """Requests made, repeats included."""
    settled_through: str | None
    """All feeds are settled from their beginning up to this time."""
    read_through: str | None
    """All feeds have been read up to this time."""
    feeds: list[FeedReportDict]
    """What was done for each feed, in the order given."""
    todo: list[TaskDict]
    """What is left to read."""
    allowance: AllowanceDict
    """The daily allowance at the end."""


class CheckDict(TypedDict):
    """A :class:`Check` of :meth:`Diagnosis.to_dict`.

    The attributes of the check, by their names.

    >>> check: siteline.CheckDict = siteline.doctor(client, offline=True).to_dict()["checks"][0]
    >>> check["id"], check["status"], check["do"]
    ('settings', 'ok', None)
    """

    id: str
    """Its name, which stays."""
    title: str
    """The same in words."""
    status: Literal["ok", "warn", "fail", "skipped"]
    """How it ended."""
    seen: str
    """What was seen, or why it was skipped."""
    do: str | None
    """What to do."""
    error: str | None
    """The class of the exception that a client raises for it, where it failed."""


class DiagnosisDict(TypedDict):
    """:meth:`Diagnosis.to_dict`: plain values.

    The attributes of the diagnosis, by their names; ``first_fail`` is the ``id`` of that check.

    >>> told: siteline.DiagnosisDict = siteline.doctor(client, offline=True).to_dict()
    >>> told["ok"], told["first_fail"], told["sends"]
    (True, None, 'nothing: it is offline')
    """

    ok: bool
    """Whether no check failed."""
    first_fail: str | None
    """The ``id`` of the first check that failed."""
    base_url: str | None
    """The address of the service."""
    subject: str | None
    """The subject of the credential."""
    sends: str
    """What it may send."""
    checks: list[CheckDict]
    """The checks, in the order of cause."""


class CatalogueReport(TypedDict):
    """What was found where in a discovery body: ``catalogue.report``.

    Paths are such as ``sites[].lines[].lineId``: ``[]`` stands for the items of a list, ``{}`` for
    the values of a mapping, whose names are ids.

    >>> report: siteline.CatalogueReport = client.series().report
    >>> report["listed"], report["series"], report["not_recognised"]
    (18, ['sites[].lines[].machines[].devices[].tags[]'], ['subject'])
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
