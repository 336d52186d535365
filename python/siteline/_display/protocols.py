"""The attributes that rendering reads, as protocols with the names of the rendered classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from siteline.reports import PageReport, TableReport

    _State: TypeAlias = Literal["settled", "settling", "provisional", "unread", "forgotten"]

__all__: list[str] = []


class Pixel(TypedDict):
    """The values in one pixel of a line, scaled to 0..1."""

    x: int
    """The position from the left."""
    low: float
    """The lowest value."""
    high: float
    """The highest value."""


class SeriesPreview(TypedDict):
    """A series as a line."""

    ids: tuple[str | None, ...]
    """The five ids."""
    points: int
    """The number of points."""
    values: tuple[float, float] | None
    """The lowest and highest value; ``None`` without any."""
    stretches: list[list[Pixel]]
    """The line: stretches without a gap."""


class Preview(TypedDict):
    """The first series of some points, prepared for drawing."""

    range: tuple[int, int]
    """The start and end of the time axis, in microseconds since the Unix epoch."""
    more: bool
    """Whether there are more series."""
    series: list[SeriesPreview]
    """The series, in the order of the points."""


class SeriesInfo(Protocol):
    """A series of a catalogue."""

    @property
    def tag_guid(self) -> str | None: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def label(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def names(self) -> tuple[str | None, ...]: ...
    @property
    def members(self) -> dict[str, Any]: ...
    @property
    def listed(self) -> bool: ...


class Allowance(Protocol):
    """The daily allowance."""

    @property
    def used(self) -> int: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def left(self) -> int | None: ...
    @property
    def resets_at(self) -> datetime: ...
    @property
    def token_requests(self) -> int: ...


class Client(Protocol):
    """A client."""

    @property
    def base_url(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def allowance(self) -> Allowance: ...
    @property
    def clock_skew(self) -> float | None: ...


class Query(Protocol):
    """A query."""

    @property
    def site(self) -> str | None: ...
    @property
    def line(self) -> str | None: ...
    @property
    def start(self) -> datetime | None: ...
    @property
    def end(self) -> datetime | None: ...
    @property
    def interval_seconds(self) -> int | None: ...
    @property
    def page_size(self) -> int | None: ...
    @property
    def filters(self) -> Mapping[str, Sequence[str]]: ...


class _PointSource(Protocol):
    """The points of a page or of a table."""

    def __len__(self) -> int: ...
    def records(self) -> Iterator[Mapping[str, Any]]: ...
    def _preview(self) -> Preview: ...
    def _provenance(self) -> Mapping[str, Any]: ...


class Columns(Protocol):
    """The columns of points, for frames and pictures."""

    def _columns(self) -> list[tuple[Any, ...]]: ...
    def _provenance(self) -> Mapping[str, Any]: ...


class Page(_PointSource, Protocol):
    """A page."""

    @property
    def report(self) -> PageReport: ...
    @property
    def bookmark(self) -> object | None: ...


class Table(_PointSource, Protocol):
    """A table."""

    @property
    def report(self) -> TableReport: ...


class Scan(Protocol):
    """A scan."""

    @property
    def query(self) -> Query: ...
    def _known(self) -> Table | None: ...


class Gathered(Protocol):
    """The tables of several scans."""

    @property
    def table(self) -> Table: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[object]: ...


class Feed(Protocol):
    """A feed."""

    @property
    def name(self) -> str: ...
    @property
    def since(self) -> datetime: ...
    @property
    def settle_lag(self) -> timedelta: ...
    @property
    def overlap(self) -> timedelta: ...
    @property
    def lateness(self) -> timedelta: ...
    @property
    def window(self) -> timedelta: ...
    def _asks(self) -> str: ...


class FeedOverview(TypedDict):
    """How far a feed of a store is settled and read, and its sequence number."""

    feed: Feed
    settled_through: datetime | None
    read_through: datetime | None
    newest: datetime | None
    sequence: int


class Store(Protocol):
    """A store, with an overview of its feeds."""

    @property
    def path(self) -> object: ...
    def _overview(self) -> Sequence[FeedOverview]: ...


class Points(Protocol):
    """Points of a store.

    The preview: the selection as text, the series of the first points, these points, their number,
    whether there are more, what of the range has been read, and whether that is all of it.
    """

    def _preview(
        self,
    ) -> tuple[str, Preview, Iterator[Mapping[str, Any]], int, bool, str, bool]: ...


class CoverageWindow(Protocol):
    """A part of a window that is in one state."""

    @property
    def start(self) -> datetime: ...
    @property
    def end(self) -> datetime: ...
    @property
    def state(self) -> _State: ...
    @property
    def read_at(self) -> datetime | None: ...
    @property
    def empty(self) -> bool | None: ...
    @property
    def set_aside(self) -> datetime | None: ...


class Coverage(Protocol):
    """The windows of a feed, in order of time."""

    @property
    def feed(self) -> Feed: ...
    @property
    def now(self) -> datetime: ...
    @property
    def settled_through(self) -> datetime | None: ...
    @property
    def read_through(self) -> datetime | None: ...
    @property
    def newest(self) -> datetime | None: ...
    @property
    def spans(self) -> Mapping[_State, timedelta]: ...
    def __iter__(self) -> Iterator[CoverageWindow]: ...


class Delays(Protocol):
    """How late some points came."""

    @property
    def count(self) -> int: ...
    @property
    def late(self) -> int: ...
    def _quantiles(self) -> Sequence[str | None]: ...


class Lateness(Protocol):
    """How late the points and revisions of a feed came."""

    @property
    def feed(self) -> Feed: ...
    @property
    def lateness(self) -> timedelta: ...
    @property
    def points(self) -> Delays: ...
    @property
    def revisions(self) -> Delays: ...
    @property
    def looked(self) -> timedelta | None: ...
    @property
    def suggested(self) -> timedelta | None: ...
    @property
    def verdict(self) -> str: ...
    def _curve(self, kind: str) -> list[tuple[int, float]]: ...


class Task(Protocol):
    """One range that a sync or a scan reads."""

    @property
    def feed(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def start(self) -> datetime: ...
    @property
    def end(self) -> datetime: ...
    @property
    def pages(self) -> int | None: ...


class FeedReport(Protocol):
    """What a sync did for one feed."""

    @property
    def name(self) -> str: ...
    @property
    def set_aside(self) -> Sequence[object]: ...
    @property
    def pages(self) -> int: ...
    @property
    def inserted(self) -> int: ...
    @property
    def revised(self) -> int: ...
    @property
    def unchanged(self) -> int: ...
    @property
    def flagged(self) -> int: ...
    @property
    def settled_through(self) -> datetime | None: ...
    @property
    def read_through(self) -> datetime | None: ...
    @property
    def newest(self) -> datetime | None: ...


class SyncReport(Protocol):
    """What a sync did."""

    @property
    def feeds(self) -> Mapping[str, FeedReport]: ...
    @property
    def pages(self) -> int: ...
    @property
    def requests(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def ended_by(self) -> str | None: ...
    @property
    def resumes_at(self) -> datetime | None: ...
    @property
    def todo(self) -> Sequence[Task]: ...
    @property
    def allowance(self) -> Allowance: ...
    @property
    def now(self) -> datetime: ...


class Plan(Protocol):
    """What the next sync, or a read of scans, would read."""

    @property
    def tasks(self) -> Sequence[Task]: ...
    @property
    def pages(self) -> int | None: ...
    @property
    def fits(self) -> bool | None: ...
    @property
    def allowance(self) -> Allowance: ...
    @property
    def reserve(self) -> int: ...
    @property
    def set_aside(self) -> int: ...
    @property
    def now(self) -> datetime: ...
    @property
    def kind(self) -> Literal["sync", "scan"]: ...


class Check(Protocol):
    """One check of a diagnosis."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def seen(self) -> str: ...
    @property
    def do(self) -> str | None: ...


class Diagnosis(Protocol):
    """What the doctor has found."""

    @property
    def checks(self) -> Sequence[Check]: ...
    @property
    def first_fail(self) -> Check | None: ...
    @property
    def sends(self) -> str: ...
