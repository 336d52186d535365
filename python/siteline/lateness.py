"""How late points and revisions of a feed came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from siteline._counts import counted
from siteline._times import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteline._siteline import Feed

    # Delays in seconds, each with the number of points that came so late.
    _Counts = Sequence[tuple[int, int]]

__all__ = ["Delays", "Lateness"]

# The fewest late points that say something about rare delays.
_ENOUGH = 20
# The share of late points that came within the suggested lateness.
_SHARE = 0.999
_HOUR, _DAY = 3_600, 86_400
# A suggestion is rounded up to one of these, in seconds.
_ROUND = [
    *(_HOUR * hours for hours in (1, 2, 3, 4, 6, 8, 12, 18)),
    *(_DAY * days for days in (1, 1.5, 2, 3, 4, 5, 7, 10, 14, 21, 30)),
]


@dataclass(frozen=True)
class Delays:
    """How long after the end of their buckets some points were first read: see :class:`Lateness`.

    - ``count``: the number of points
    - ``median``, ``p90``, ``p99``: the quantiles of the delay; ``longest``: the longest delay; each
      a ``timedelta``, ``None`` without points

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> _ = client.sync(feed, store)
    >>> store.lateness("line-2").revisions
    Delays(count=0, median=None, p90=None, p99=None, longest=None)
    """

    count: int
    """The number of points."""
    median: timedelta | None
    """The median delay."""
    p90: timedelta | None
    """The 90 % quantile of the delay."""
    p99: timedelta | None
    """The 99 % quantile of the delay."""
    longest: timedelta | None
    """The longest delay."""

    def _quantiles(self) -> list[str | None]:
        delays = (self.median, self.p90, self.p99, self.longest)
        return [None if delay is None else duration(delay) for delay in delays]


class Lateness:
    """How late points and revisions of a feed came, and which lateness that suggests.

    - ``points``: :class:`Delays` of the points that the first read of their range did not bring
    - ``revisions``: :class:`Delays` of the points whose values changed
    - ``lateness``: that of the feed; ``settled``: how much time is settled
    - ``suggested``: a lateness that would have been long enough; ``None`` with too little data
    - ``verdict``: the suggestion and its reason, as text

    A delay is the time from the end of a point's bucket to the read that brought it. It is an upper
    bound: the point may have been available any time after the previous read of its window.

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> _ = client.sync(feed, store)
    >>> print(store.lateness("line-2"))
    Lateness of line-2, 1 d: ...
    """

    __slots__ = ("_feed", "_points", "_revisions", "_settled")

    def __init__(self, feed: Feed, points: _Counts, revisions: _Counts, settled: timedelta) -> None:
        """Store the counts; made by :meth:`siteline.Store.lateness`."""
        self._feed = feed
        self._points = tuple((seconds, count) for seconds, count in points)
        self._revisions = tuple((seconds, count) for seconds, count in revisions)
        self._settled = settled

    @property
    def feed(self) -> Feed:
        """The feed."""
        return self._feed

    @property
    def settled(self) -> timedelta:
        """How much time is settled."""
        return self._settled

    @property
    def lateness(self) -> timedelta:
        """The lateness of the feed."""
        return self.feed.lateness

    @property
    def points(self) -> Delays:
        """The delays of the points that the first read of their range did not bring."""
        return _delays(self._points)

    @property
    def revisions(self) -> Delays:
        """The delays of the points whose values changed."""
        return _delays(self._revisions)

    def __eq__(self, other: object) -> bool:
        """Compare the feeds and the counts."""
        if not isinstance(other, Lateness):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        """Hash the feed and the counts."""
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return (self._feed, self._points, self._revisions, self._settled)

    @property
    def suggested(self) -> timedelta | None:
        """A lateness that would have been long enough; ``None`` with too little data."""
        return self._assess()[0]

    @property
    def verdict(self) -> str:
        """The suggestion and its reason, as text."""
        return self._assess()[1]

    def _assess(self) -> tuple[timedelta | None, str]:
        both = sorted([*self._points, *self._revisions])
        count = _total(both)
        if not self.settled:
            return None, "too little data: no window is settled yet"
        if not count:
            return self.lateness, "no late points so far: it is long enough"
        if count < _ENOUGH:
            return None, f"too little data: only {counted(count, 'late point')} so far"
        latest = _quantile(both, _SHARE)
        # The final read of a window brings its late points with a delay of at most this.
        final = (self.lateness + self.feed.window + timedelta(days=1)).total_seconds()
        if latest > final:
            longer = _rounded(latest)
            return longer, f"points came later: {duration(longer)} would have been long enough"
        if latest >= self.lateness.total_seconds():
            return self.lateness, "the final reads brought all late points: it is long enough"
        shorter = _rounded(latest * 1.25)
        if shorter < self.lateness:
            return shorter, f"{duration(shorter)} would have been long enough"
        return self.lateness, "it is long enough"

    def __repr__(self) -> str:
        """Name the feed, the counts and the suggestion."""
        suggested = "nothing" if self.suggested is None else duration(self.suggested)
        points, revisions = self.points.count, self.revisions.count
        return (
            f"<Lateness of {self.feed.name}: {counted(points, 'late point')}, "
            f"{counted(revisions, 'revision')}, suggested {suggested}>"
        )

    def __str__(self) -> str:
        """Print the conclusion, and the quantiles as a table."""
        lines = [f"Lateness of {self.feed.name}, {duration(self.lateness)}: {self.verdict}."]
        if self.points.count or self.revisions.count:
            lines.append(f"  {'':<12} {'count':>9} {'half':>9} {'90 %':>9} {'99 %':>9} {'all':>9}")
            for name, one in (("late points", self.points), ("revisions", self.revisions)):
                delays = " ".join(f"{delay or '-':>9}" for delay in one._quantiles())
                lines.append(f"  {name:<12} {one.count:>9,} {delays}")
            lines.append("  (from the end of the bucket to the read that brought it)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import sync_html

        return sync_html.lateness(self)


def _total(counts: _Counts) -> int:
    return sum(count for _, count in counts)


def _delays(counts: _Counts) -> Delays:
    count = _total(counts)
    if not count:
        return Delays(0, None, None, None, None)
    delays = [timedelta(seconds=_quantile(counts, share)) for share in (0.5, 0.9, 0.99, 1.0)]
    return Delays(count, *delays)


def _quantile(counts: _Counts, share: float) -> float:
    """Return a quantile of the delay, in seconds."""
    rank = share * _total(counts)
    seen = 0
    for seconds, count in sorted(counts):
        seen += count
        if seen >= rank:
            return seconds
    return max(seconds for seconds, _ in counts)


def _rounded(seconds: float) -> timedelta:
    """Round up to one of the lengths in ``_ROUND``, or to days."""
    days = -(-seconds // _DAY)
    return timedelta(seconds=next((one for one in _ROUND if one >= seconds), days * _DAY))
