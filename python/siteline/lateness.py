"""How late points and revisions of a feed come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from siteline._counts import counted
from siteline._escape import escaped
from siteline._times import duration

if TYPE_CHECKING:
    from siteline._core import Feed
    from siteline.plots import Plot

__all__ = ["Delays", "Lateness"]

# The fewest points that say something about rare delays.
_ENOUGH = 20
_HOUR, _DAY = 3_600, 86_400
# A suggestion is rounded up to one of these, in seconds.
_ROUND = [
    *(_HOUR * hours for hours in (1, 2, 3, 4, 6, 8, 12, 18)),
    *(_DAY * days for days in (1, 1.5, 2, 3, 4, 5, 7, 10, 14, 21, 30)),
]


@dataclass(frozen=True)
class Delays:
    """How long after the end of their buckets points came: see :class:`Lateness`.

    - ``count``: the number of points that say something: those whose bucket was read again
    - ``late``: of these, those that came after the feed's lateness
    - ``median``, ``p90``, ``p95``, ``p99``: the quantiles of the delay; ``longest``: the longest;
      each a ``timedelta``, ``None`` without points

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> _ = client.sync(feed, store)
    >>> store.lateness("line-2").revisions.count
    0
    """

    count: int
    """The number of points whose bucket was read again."""
    late: int
    """The points that came after the lateness."""
    median: timedelta | None
    """The median delay."""
    p90: timedelta | None
    """The 90 % quantile of the delay."""
    p95: timedelta | None
    """The 95 % quantile of the delay."""
    p99: timedelta | None
    """The 99 % quantile of the delay."""
    longest: timedelta | None
    """The longest delay."""

    def _quantiles(self) -> list[str | None]:
        delays = (self.median, self.p90, self.p95, self.p99, self.longest)
        return [None if delay is None else duration(delay) for delay in delays]


class Lateness:
    """How late points and revisions of a feed come, and which lateness that suggests.

    - ``points``: :class:`Delays` of the points; ``revisions``: of their new values
    - ``lateness``: that of the feed; ``settled``: how much time is settled
    - ``looked``: the longest time after which buckets were still looked at, or ``None``
    - ``suggested``: a lateness within which 99.9 % came; ``None`` where the data do not show one,
      as without audits, unless points were seen to come after it
    - ``verdict``: the suggestion and its reason, as text

    Made by :meth:`Store.lateness`, and by :meth:`from_state` for a store of yours.

    A delay is the time from the end of a point's bucket until the service has the point. A read
    only shows that it came since the read before; reads at many ages give an estimate.
    A :class:`Feed` with ``audit_pages=`` reads at all ages, before and after the lateness; without
    them nothing is known of the time between two reads, nor of that after the last.

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> _ = client.sync(feed, store)
    >>> print(store.lateness("line-2"))
    Lateness of line-2, 1 d: too little data: hardly anything was read twice.
    """

    __slots__ = ("__weakref__", "_feed", "_record")

    def __init__(self, feed: Feed, record: dict[str, Any]) -> None:
        """Store what was found; made by :meth:`siteline.Store.lateness`."""
        self._feed = feed
        self._record = record

    @classmethod
    def from_state(cls, state: bytes) -> Lateness:
        """Return what the audits of a feed show: for a :class:`StoreTarget`, or a pull.

        ``state`` are the bytes that were stored last for the feed; those of a damaged one are a
        :class:`StoreCorrupt`. It has what the newest 200 audits found, where the target said what
        they changed (``apply()``, or ``pages.applied()`` of a pull); a :class:`Store` also counts
        all other reads. Without ``audit_pages=`` nothing is known.

        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      since="2026-11-15T00:00Z", audit_pages=4)
        >>> states = {}
        >>> for page, state in client.sync_pages(feed, states):
        ...     states.update(state)
        >>> print(siteline.Lateness.from_state(states["line-2"]))
        Lateness of line-2, 1 d: too little data: hardly anything was read twice.
        """
        from siteline.store import Store

        return Store._lateness_of(state)

    @property
    def feed(self) -> Feed:
        """The feed."""
        return self._feed

    @property
    def settled(self) -> timedelta:
        """How much time is settled."""
        return timedelta(seconds=self._record["settled"])

    @property
    def lateness(self) -> timedelta:
        """The lateness of the feed."""
        return self.feed.lateness

    @property
    def looked(self) -> timedelta | None:
        """The longest time after which buckets were still looked at."""
        seconds = self._record["points"]["looked"]
        return None if seconds is None else timedelta(seconds=seconds)

    @property
    def points(self) -> Delays:
        """The delays of the points."""
        return _delays(self._record["points"])

    @property
    def revisions(self) -> Delays:
        """The delays of new values of points."""
        return _delays(self._record["revisions"])

    def __eq__(self, other: object) -> bool:
        """Compare the feeds and what was found."""
        if not isinstance(other, Lateness):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        """Hash the feed and what was found."""
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return (self._feed, self.points, self.revisions, self.looked, self.settled)

    @property
    def suggested(self) -> timedelta | None:
        """A lateness within which 99.9 % came; ``None`` where the data do not show one.

        Without audits nothing shows what comes after the lateness: no shorter one is suggested.
        """
        return self._assess()[0]

    @property
    def verdict(self) -> str:
        """The suggestion and its reason, as text."""
        return self._assess()[1]

    def _curve(self, kind: str) -> list[tuple[int, float]]:
        """The share of the points, or of the revisions, that had come by each delay in seconds."""
        return [(seconds, share / 1_000_000) for seconds, share in self._record[kind]["curve"]]

    def plot(self, *, title: str | None = None, width: int = 900) -> Plot:
        """Draw the share that has come by each delay, with the lateness as a line.

        Of several feeds together: :func:`siteline.plots.lateness`, which has the details.

        >>> store = siteline.Store("plant.siteline")
        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      since="2026-11-15T00:00Z")
        >>> _ = client.sync(feed, store)
        >>> store.lateness("line-2").plot()
        <Plot Lateness of line-2>
        """
        from siteline import plots

        return plots.lateness(self, title=title, width=width)

    def _assess(self) -> tuple[timedelta | None, str]:
        looked = self.looked
        if self.points.count + self.revisions.count < _ENOUGH or looked is None:
            return None, "too little data: hardly anything was read twice"
        suggested, found = self._judge(looked)
        return suggested, f"{found}; nothing was looked at after {duration(looked)}"

    def _judge(self, looked: timedelta) -> tuple[timedelta | None, str]:
        parts = [self._record["points"], self._record["revisions"]]
        # Nearly all came within this.
        most = max(part["quantiles"][4] for part in parts if part["quantiles"])
        late = sum(part["late"] for part in parts)
        came = f"{counted(late, 'point')} came or changed after it"
        if late and most * 1.5 > looked.total_seconds():
            return None, f"{came}, up to the last look: it is too short"
        if late and most > self.lateness.total_seconds():
            longer = _rounded(most * 1.1)
            return longer, f"{came}: {duration(longer)} would have been long enough for 99.9 %"
        # Reads that were too far apart do not show when something came.
        if looked <= self.lateness or most > self.lateness.total_seconds():
            return None, "not known yet"
        shorter = _rounded(most * 1.25)
        if not self.feed.audit_pages:
            seen = f"99.9 % of what was seen came within {duration(shorter)}"
            return None, f"{seen}; what comes after the lateness only audits show (audit_pages=)"
        if shorter < self.lateness:
            return shorter, f"{duration(shorter)} would have been long enough for 99.9 %"
        return self.lateness, "it is long enough for 99.9 %"

    def __repr__(self) -> str:
        """Name the feed, the counts and the suggestion."""
        suggested = "nothing" if self.suggested is None else duration(self.suggested)
        points, revisions = self.points.count, self.revisions.count
        return (
            f"<Lateness of {escaped(self.feed.name)}: {counted(points, 'point')}, "
            f"{counted(revisions, 'revision')}, suggested {suggested}>"
        )

    def __str__(self) -> str:
        """Print the conclusion, and the quantiles as a table."""
        lines = [
            f"Lateness of {escaped(self.feed.name)}, {duration(self.lateness)}: {self.verdict}."
        ]
        if self.points.count or self.revisions.count:
            names = ("count", "late", "half", "90 %", "95 %", "99 %", "all")
            lines.append(f"  {'':<10}" + "".join(f"{name:>10}" for name in names))
            for name, one in (("points", self.points), ("revisions", self.revisions)):
                delays = "".join(f"{delay or '-':>10}" for delay in one._quantiles())
                lines.append(f"  {name:<10}{one.count:>10,}{one.late:>10,}{delays}")
            lines.append("  (from the end of a bucket until the service had the point; estimated)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import sync_html

        return sync_html.lateness(self)


def _delays(part: dict[str, Any]) -> Delays:
    quantiles = part["quantiles"] or [None] * 6
    half, p90, p95, p99, _, longest = (
        None if seconds is None else timedelta(seconds=seconds) for seconds in quantiles
    )
    return Delays(part["count"], part["late"], half, p90, p95, p99, longest)


def _rounded(seconds: float) -> timedelta:
    """Round up to one of the lengths in ``_ROUND``, or to days."""
    days = -(-seconds // _DAY)
    return timedelta(seconds=next((one for one in _ROUND if one >= seconds), days * _DAY))
