"""The reports of tables."""

from dataclasses import dataclass, field
from datetime import datetime

from siteline._records.record import FrozenRecord
from siteline._records.store import StoreShare

Range = tuple[datetime, datetime]


@dataclass(frozen=True, repr=False)
class ReadReport(FrozenRecord):
    """The assumptions, findings and counts of a read.

    >>> report = scan.collect().report
    >>> report.pages, report.points, report.arrays
    (3, 72, ('series',))
    """

    pages: int
    """Pages read."""
    points: int
    """Unique points. A page also counts repeats."""
    points_read: int
    """Points on the pages, repeats included."""
    filtered: int
    """Points of the pages that the read did not select."""
    series: int
    """Different series."""
    repeated: int
    """Points that were sent again with the same values."""
    revised: int
    """Points that were sent again with other values: the later win."""
    resumed_after_pages: int
    """Earlier pages that are not in the table; 0 if it is complete."""
    page_size: int | None
    """The page size that was requested; ``None`` if none was."""
    page_size_reason: str | None
    """``"given"``, ``"automatic"``, or ``"refused"`` if the service refused the automatic size."""
    names: str | None
    """Why there are no names for labels; ``None`` if there are, or none were wanted."""
    labels: str | None
    """The first part of the labels (``"machine"``), or ``"ids"``; ``None`` without labels."""
    not_listed: tuple[str, ...]
    """Ids of the query that the service does not list."""
    bounds_off_grid: tuple[str, ...]
    """The bounds that are inside a bucket."""
    through: tuple[StoreShare, ...]
    """The ranges that each feed of a store provided; empty without ``store=``."""
    read_at: datetime | None
    """When the read began, by the service's clock."""
    arrays: tuple[str, ...]
    """Names of the array of series, as they were detected."""
    timestamp_forms: tuple[str, ...]
    """Formats of the timestamps."""
    unknown_members: tuple[str, ...]
    """Unknown JSON members; at most 200."""
    outside_range: int
    """Points before the query's start, or at or after its end."""
    off_grid: int
    """Points with a timestamp that is not a multiple of the interval."""
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
    """Pages without ``nextCursor``, which end their chain."""

    def __repr__(self) -> str:
        """Show the fields with a value."""
        shown = (f"{name}={value!r}" for name, value in vars(self).items() if value)
        return f"ReadReport({', '.join(shown)})"


@dataclass(frozen=True)
class StoreReport(FrozenRecord):
    """The report of a table of a store.

    >>> store.read("line-2", final=True).report.complete
    True
    """

    store: str
    """The path of the store."""
    feed: str
    """The name of the feed."""
    sequence: int
    """The number of the newest page. ``store.read(as_of=...)`` returns the same points again."""
    start: datetime | None
    """The start of the range that was named."""
    end: datetime | None
    """The end of the range that was named."""
    final: bool
    """Whether it has only settled points."""
    withdrawn: int
    """The number of withdrawn points in it."""
    settled_through: datetime | None
    """Everything from the feed's start up to this time is settled."""
    read: tuple[Range, ...]
    """The parts of the range that were read to their end."""
    unread: tuple[Range, ...]
    """The parts that were not."""
    forgotten: tuple[Range, ...]
    """The unread parts with removed points."""
    settled: tuple[Range, ...] | None
    """The settled parts; ``None`` for a view of the past."""
    newest: datetime | None
    """The newest instant of the feed that was read."""
    complete: bool
    """Whether all of the range was read."""
    names: str | None
    """Why there are no names for labels; ``None`` if there are, or none were wanted."""
    labels: str | None
    """The first part of the labels (``"machine"``), or ``"ids"``; ``None`` without labels."""


@dataclass(frozen=True)
class SeriesReport(FrozenRecord):
    """The members of a discovery response in which the series of a table were found.

    In paths such as ``sites[].lines[].lineId``, ``[]`` means the items of a list and ``{}`` the
    values of a mapping with ids as names.

    >>> client.series().report.names
    ('sites[].lines[].machines[].devices[].tags[].name',)
    """

    listed: int
    """Series of the table that discovery lists."""
    seen: int
    """Series of the table that only data has."""
    seen_is_complete: bool
    """Whether these are all series of the client's pages: it remembers 1,048,576."""
    repeated: int
    """Series that discovery lists again; the first one counts."""
    not_ended: bool
    """Whether the body has a cursor, so that it may be a part."""
    series: tuple[str, ...]
    """The paths of the series."""
    ids: dict[str, tuple[str, ...]] = field(hash=False)
    """The paths of the five ids, by column."""
    names: tuple[str, ...]
    """The paths of names."""
    units: tuple[str, ...]
    """The paths of units."""
    not_recognised: tuple[str, ...]
    """Members that are not in the table."""
