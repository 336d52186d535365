"""How late points and revisions of a feed came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from siteline import html_sync

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteline._siteline import Feed

    _Counted = Sequence[tuple[int, int]]

__all__ = ["Delays", "Lateness"]

# Fewer tell nothing about the rare ones.
_ENOUGH = 20
# Of a hundred thousand late points a hundred may be later than what is suggested.
_SHARE = 0.999
_HOUR, _DAY = 3_600, 86_400
_ROUND = [
    *(_HOUR * hours for hours in (1, 2, 3, 4, 6, 8, 12, 18)),
    *(_DAY * days for days in (1, 1.5, 2, 3, 4, 5, 7, 10, 14, 21, 30)),
]


@dataclass(frozen=True)
class Delays:
    """How long after the end of their buckets some points were first read: see :class:`Lateness`.

    - ``count``: how many points
    - ``median``, ``p90``, ``p99``: so long or less for half, 90 and 99 of a hundred; ``longest``;
      each a ``timedelta``, ``None`` without points

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> _ = client.sync(feed, store)
    >>> store.lateness("line-2").revisions
    Delays(count=0, median=None, p90=None, p99=None, longest=None)
    """

    count: int
    """How many points."""
    median: timedelta | None
    """So long or less, for half of them."""
    p90: timedelta | None
    """So long or less, for 90 of a hundred."""
    p99: timedelta | None
    """So long or less, for 99 of a hundred."""
    longest: timedelta | None
    """The longest."""

    def _spans(self) -> list[str | None]:
        shares = (self.median, self.p90, self.p99, self.longest)
        return [None if at is None else _span(at) for at in shares]


class Lateness:
    """How late points and revisions of a feed came, and which lateness that suggests.

    - ``points``: of points that were not there when their range was read for the first time;
      ``revisions``: of other values for points that were: :class:`Delays`
    - ``lateness``: that of the feed; ``settled``: how much time is settled
    - ``suggested``: a lateness that would have been long enough; ``None`` where too little is known
    - ``verdict``: the same in words

    A delay reaches from the end of a point's bucket to the read that brought it, so it is an upper
    bound: between two reads nobody looks. Most points that are late are seen when their window is
    read for its final values, however soon they had come.

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> _ = client.sync(feed, store)
    >>> print(store.lateness("line-2"))
    Lateness of line-2, 1 d: ...
    """

    __slots__ = ("_feed", "_points", "_revisions", "_settled")

    def __init__(
        self, feed: Feed, points: _Counted, revisions: _Counted, settled: timedelta
    ) -> None:
        """Wrap what a store counted; made by :meth:`siteline.Store.lateness`."""
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
        """How late points came that were not there at the first read."""
        return _delays(self._points)

    @property
    def revisions(self) -> Delays:
        """How late other values came for points that were."""
        return _delays(self._revisions)

    def __eq__(self, other: object) -> bool:
        """Compare the feed and what was counted."""
        if not isinstance(other, Lateness):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        """Hash the feed and what was counted."""
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return (self._feed, self._points, self._revisions, self._settled)

    @property
    def suggested(self) -> timedelta | None:
        """A lateness that would have been long enough; ``None`` where too little is known."""
        return self._judged()[0]

    @property
    def verdict(self) -> str:
        """What is suggested, and why, in words."""
        return self._judged()[1]

    def _judged(self) -> tuple[timedelta | None, str]:
        both = sorted([*self._points, *self._revisions])
        count = sum(many for _, many in both)
        if not self.settled:
            return None, "too little is known: no window is settled yet"
        if not count:
            return self.lateness, "nothing late has been seen: nothing speaks against it"
        if count < _ENOUGH:
            return None, f"too little is known: {_many(count, 'late point')} so far"
        latest = _quantile(both, _SHARE)
        # Seen at the reading for final values: it came before that, and nobody knows when.
        final = (self.lateness + self.feed.window + timedelta(days=1)).total_seconds()
        if latest > final:
            asked = _rounded(latest)
            return asked, f"points came after that: {_span(asked)} would have been long enough"
        if latest >= self.lateness.total_seconds():
            return self.lateness, "late points were there by the final reading: it is long enough"
        shorter = _rounded(latest * 1.25)
        if shorter < self.lateness:
            return shorter, f"{_span(shorter)} would have been long enough"
        return self.lateness, "it is long enough"

    def __repr__(self) -> str:
        """Tell the counts and what is suggested."""
        suggested = "nothing" if self.suggested is None else _span(self.suggested)
        points, revisions = self.points.count, self.revisions.count
        return (
            f"<Lateness of {self.feed.name}: {_many(points, 'late point')}, "
            f"{_many(revisions, 'revision')}, suggested {suggested}>"
        )

    def __str__(self) -> str:
        """Print the quantiles as a table, and the verdict."""
        lines = [f"Lateness of {self.feed.name}, {_span(self.lateness)}: {self.verdict}."]
        if self.points.count or self.revisions.count:
            lines.append(f"  {'':<12} {'count':>9} {'half':>9} {'90 %':>9} {'99 %':>9} {'all':>9}")
            for name, one in (("late points", self.points), ("revisions", self.revisions)):
                spans = " ".join(f"{span or '-':>9}" for span in one._spans())
                lines.append(f"  {name:<12} {one.count:>9,} {spans}")
            lines.append("  (from the end of the bucket to the read that brought it)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return html_sync.lateness(self)


def _delays(counted: _Counted) -> Delays:
    count = sum(many for _, many in counted)
    if not count:
        return Delays(0, None, None, None, None)
    at = [timedelta(seconds=_quantile(counted, share)) for share in (0.5, 0.9, 0.99, 1.0)]
    return Delays(count, *at)


def _quantile(counted: _Counted, share: float) -> float:
    """The delay that so large a share has at most."""
    wanted = share * sum(many for _, many in counted)
    seen = 0
    for seconds, many in sorted(counted):
        seen += many
        if seen >= wanted:
            return seconds
    return max(seconds for seconds, _ in counted)


def _rounded(seconds: float) -> timedelta:
    """Up to a length that people use."""
    days = -(-seconds // _DAY)
    return timedelta(seconds=next((one for one in _ROUND if one >= seconds), days * _DAY))


def _span(length: timedelta) -> str:
    seconds = round(length.total_seconds())
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", 60)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds} s"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
