"""A query without an end: :class:`Feed`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypedDict, cast

from siteline._core import FeedHandle
from siteline._escape import escaped
from siteline._handles import Itself
from siteline._html import WithHtml
from siteline._selection import feed_query
from siteline._times import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from siteline._core import _Duration, _Filter, _Instant

__all__ = ["Feed"]


class _Parts(TypedDict):
    name: str
    start: datetime
    site: str | None
    line: str | None
    interval: timedelta | None
    lateness: timedelta
    filters: dict[str, tuple[str, ...]]
    page_size: int | None
    settle_lag: timedelta
    overlap: timedelta
    window: timedelta
    audit_pages: int
    query: str


class Feed(Itself, WithHtml):
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

    __slots__ = ("_handle", "_parts")

    def __init__(
        self,
        name: str,
        *,
        start: _Instant,
        site: str | int | None = None,
        line: str | int | None = None,
        interval: _Duration | None = None,
        lateness: _Duration | None = "1d",
        filters: Mapping[str, _Filter] | None = None,
        page_size: int | None = None,
        settle_lag: _Duration | None = "5m",
        overlap: _Duration | None = "1h",
        window: _Duration | None = "1d",
        audit_pages: int = 0,
    ) -> None:
        """Make a feed. Sends nothing."""
        query = feed_query(site, line, interval, page_size, filters)
        times = (settle_lag, overlap, lateness, window)
        self._hold(FeedHandle(name, start, query, times, audit_pages))

    def _hold(self, handle: FeedHandle) -> None:
        state, (start, times, query) = handle.state(), handle.parts()
        width = state["interval_seconds"]
        parts = {
            **state,
            "start": start,
            "interval": None if width is None else timedelta(seconds=width),
            "filters": {name: tuple(values) for name, values in state["filters"]},
            **dict(zip(("settle_lag", "overlap", "lateness", "window"), times, strict=True)),
            "query": query,
        }
        self._handle, self._parts = handle, cast("_Parts", parts)

    @classmethod
    def _of(cls, handle: FeedHandle) -> Self:
        feed = cls.__new__(cls)
        feed._hold(handle)
        return feed

    @property
    def name(self) -> str:
        """The name of the feed in a store."""
        return self._parts["name"]

    @property
    def start(self) -> datetime:
        """The start, in UTC."""
        return self._parts["start"]

    @property
    def site(self) -> str | None:
        """The filter ``siteId``."""
        return self._parts["site"]

    @property
    def line(self) -> str | None:
        """The filter ``lineId``."""
        return self._parts["line"]

    @property
    def interval(self) -> timedelta | None:
        """The bucket width, sent as ``aggregationIntervalSeconds``."""
        return self._parts["interval"]

    @property
    def lateness(self) -> timedelta:
        """How long after its end a window is read again for its final values."""
        return self._parts["lateness"]

    @property
    def filters(self) -> dict[str, tuple[str, ...]]:
        """Further query parameters: the values of each name."""
        return dict(self._parts["filters"])

    @property
    def page_size(self) -> int | None:
        """Items per page, sent as ``pageSize``."""
        return self._parts["page_size"]

    @property
    def settle_lag(self) -> timedelta:
        """How far behind the service's time the feed is read."""
        return self._parts["settle_lag"]

    @property
    def overlap(self) -> timedelta:
        """How much of the newest known data each sync reads again."""
        return self._parts["overlap"]

    @property
    def window(self) -> timedelta:
        """The width of the windows."""
        return self._parts["window"]

    @property
    def audit_pages(self) -> int:
        """Pages a day for audits."""
        return self._parts["audit_pages"]

    def _asks(self) -> str:
        """Return the parameters of its queries, without their range."""
        return self._parts["query"]

    def __eq__(self, other: object) -> bool:
        """Compare all parts."""
        return self._handle == other._handle if isinstance(other, Feed) else NotImplemented

    def __hash__(self) -> int:
        """Hash all parts."""
        return hash(self._handle)

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[dict[str, Any]]]:
        """Pickle the parts."""
        return type(self)._restored, (self._handle.state(),)

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Self:
        return cls._of(FeedHandle.restore(state))

    def _text(self) -> str:
        return f"<Feed {escaped(self.name)}: {self._asks()}, start {iso(self.start)}>"
