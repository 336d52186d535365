"""The attributes that rendering reads, as protocols with the names of the rendered classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from siteline.table import Table
    from siteline.types import Allowance

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


class Scan(Protocol):
    """A scan."""

    @property
    def query(self) -> Query: ...
    @property
    def partial(self) -> Table | None: ...
    @property
    def bookmark(self) -> object: ...


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
