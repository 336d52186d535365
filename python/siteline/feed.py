"""A query without an end: :class:`Feed`."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from siteline._core import _feed
from siteline._escape import escaped
from siteline._handles import WithHtml
from siteline._records.query import Filters, sent_text
from siteline._records.record import FrozenRecord
from siteline._selection import feed_query
from siteline._times import from_microseconds, iso

if TYPE_CHECKING:
    from siteline._core import _Duration, _Filter, _Instant

__all__ = ["Feed"]


@dataclass(frozen=True, init=False, repr=False)
class Feed(WithHtml, FrozenRecord):
    """A named query without an end, and the settings of its syncs.

    Feeds are immutable, hashable and picklable, and equal if all their parts are equal. A store
    keeps the definition of each feed, and refuses another one under the same name with
    :class:`FeedChanged`: see :meth:`Store.redefine`.

    Args:
        name: The name of the feed in a store.
        start: A datetime, ISO 8601 text, or a date, in UTC unless it has an offset. For a local day
            write its offset: ``"2026-11-01T00:00+01:00"``. A relative time (``"-7d"``) is resolved
            once, by the clock of this machine, and rounded down to a bucket: keep that feed,
            because a later start is another definition. A start inside a bucket is a warning.
        site: The filter ``siteId``.
        line: The filter ``lineId``.
        interval: The bucket width. By default the service decides.
        lateness: How long after its end a window is read again for its final values; 0 for never.
            :meth:`Store.lateness` shows whether that is long enough.
        filters: Further query parameters by name. A list repeats the parameter.
        page_size: Items per page. By default automatic, as of :meth:`Client.scan`.
        settle_lag: How far behind the service's time the feed is read.
        overlap: How much of the newest known data each sync reads again.
        window: The width of the windows in UTC: a day, a divisor of a day, or whole days.
        audit_pages: Pages a day that read old ranges again, before and after their lateness, from
            which :meth:`Store.lateness` learns when points arrive.

    Raises:
        QueryError: An argument is wrong.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1m",
    ...                      start="2026-11-01T00:00Z", lateness="12h")
    >>> feed
    <Feed line-2: siteId=S1 lineId=L2 aggregationIntervalSeconds=60, start 2026-11-01T00:00:00Z>
    >>> feed.lateness, feed.overlap
    (datetime.timedelta(seconds=43200), datetime.timedelta(seconds=3600))
    """

    _html = "sync_html.feed"

    name: str
    """The name of the feed in a store."""
    _: KW_ONLY
    start: datetime
    """The start, in UTC."""
    site: str | None = None
    """The filter ``siteId``."""
    line: str | None = None
    """The filter ``lineId``."""
    interval: timedelta | None = None
    """The bucket width, sent as ``aggregationIntervalSeconds``."""
    lateness: timedelta = timedelta(days=1)
    """How long after its end a window is read again for its final values."""
    page_size: int | None = None
    """The number of items on a page, sent as ``pageSize``."""
    settle_lag: timedelta = timedelta(minutes=5)
    """How far behind the service's time the feed is read."""
    overlap: timedelta = timedelta(hours=1)
    """How much of the newest known data each sync reads again."""
    window: timedelta = timedelta(days=1)
    """The width of the windows."""
    audit_pages: int = 0
    """Pages a day for audits."""
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Further query parameters: the values of each name. It cannot be changed."""

    @property
    def _state(self) -> dict[str, Any]:
        """The struct of the core. An annotation would be a field."""
        state: dict[str, Any] = vars(self)["_state"]
        return state

    def __init__(
        self,
        name: str,
        *,
        start: "_Instant",
        site: str | int | None = None,
        line: str | int | None = None,
        interval: "_Duration | None" = None,
        lateness: "_Duration | None" = "1d",
        filters: "Mapping[str, _Filter] | None" = None,
        page_size: int | None = None,
        settle_lag: "_Duration | None" = "5m",
        overlap: "_Duration | None" = "1h",
        window: "_Duration | None" = "1d",
        audit_pages: int = 0,
    ) -> None:
        """Make a feed. Sends nothing."""
        query = feed_query(site, line, interval, page_size, filters)
        times = (settle_lag, overlap, lateness, window)
        self._hold(_feed(name, start, query, times, audit_pages))

    def __post_init__(self) -> None:
        """Convert the arguments of a subclass that is a dataclass."""
        Feed.__init__(self, **{one.name: getattr(self, one.name) for one in fields(Feed)})

    def _hold(self, state: Mapping[str, Any]) -> None:
        """Set the fields from the struct of the core."""
        members = dict(state)
        members["interval"] = members.pop("interval_seconds")
        start = from_microseconds(members.pop("since") * 1_000_000)
        members["filters"] = Filters.of_pairs(members["filters"])
        vars(self).update({**self._read(members), "start": start, "_state": dict(state)})

    @classmethod
    def _restore(cls, members: Mapping[str, Any]) -> Self:
        feed = cls.__new__(cls)
        feed._hold(members)
        return feed

    def __eq__(self, other: object) -> bool:
        """Compare all parts. The class does not count: stores have no feeds of a user's class."""
        return self._state == other._state if isinstance(other, Feed) else NotImplemented

    def _member(self) -> str:
        return self.name

    def __repr__(self) -> str:
        """Return the parameters of its queries, and its start."""
        site, line = (() if one is None else (one,) for one in (self.site, self.line))
        parameters = sent_text(self, site, line) or "everything"
        return f"<Feed {escaped(self.name)}: {parameters}, start {iso(self.start)}>"
