"""How late the points and revisions of a feed arrive."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from siteline._core import _of_state
from siteline._counts import counted
from siteline._escape import escaped
from siteline._handles import WithHtml
from siteline._records.record import FrozenRecord
from siteline._times import duration
from siteline.feed import Feed

if TYPE_CHECKING:
    import altair as alt

# Minimum points for a statement about rare delays.
_ENOUGH = 20
_HOUR, _DAY = 3_600, 86_400
# A suggestion is rounded up to one of these, in seconds.
_ROUND = [
    *(_HOUR * hours for hours in (1, 2, 3, 4, 6, 8, 12, 18)),
    *(_DAY * days for days in (1, 1.5, 2, 3, 4, 5, 7, 10, 14, 21, 30)),
]


@dataclass(frozen=True)
class Delays(FrozenRecord):
    """The delays from the end of a bucket to the arrival of its point: see :class:`Lateness`."""

    count: int
    """The number of points in buckets that were read more than once."""
    late: int
    """The points that arrived after the lateness."""
    median: timedelta | None
    """The median delay; ``None`` without points."""
    p90: timedelta | None
    """The 90 % quantile of the delay."""
    p95: timedelta | None
    """The 95 % quantile of the delay."""
    p99: timedelta | None
    """The 99 % quantile of the delay."""
    longest: timedelta | None
    """The longest delay."""
    _nearly_all: timedelta | None = field(repr=False)
    _looked: timedelta | None = field(repr=False)
    # Seconds, and the share in millionths that has arrived by then.
    _curve: tuple[tuple[int, int], ...] = field(repr=False)

    @classmethod
    def _restore(cls, members: Mapping[str, Any]) -> Self:
        named = dict(members)
        names = ("median", "p90", "p95", "p99", "nearly_all", "longest")
        quantiles = named.pop("quantiles") or [None] * len(names)
        return super()._restore({**named, **dict(zip(names, quantiles, strict=True))})

    def _texts(self) -> list[str | None]:
        delays = (self.median, self.p90, self.p95, self.p99, self.longest)
        return [None if delay is None else duration(delay) for delay in delays]

    def _shares(self) -> list[tuple[int, float]]:
        return [(seconds, share / 1_000_000) for seconds, share in self._curve]


@dataclass(frozen=True, repr=False)
class Lateness(WithHtml, FrozenRecord):
    """How late the points and revisions of a feed arrive, and the lateness that this suggests.

    :meth:`Store.lateness` returns it, and :meth:`from_state` for your own store.

    A delay is the time from the end of a point's bucket until the service has the point. A read
    only shows that the point arrived since the read before, so delays are estimated from reads at
    many ages. A :class:`Feed` with ``audit_pages=`` is read at all ages. Without it, the time
    between two reads and after the last one is unknown.

    >>> print(store.lateness("line-2"))
    Lateness of line-2, 1 d: too little data: hardly anything was read twice.
    """

    _html = "sync_html.lateness"

    feed: Feed
    """The feed as the store has it."""
    settled: timedelta
    """The total length of the settled ranges."""
    points: Delays
    """The delays of the points."""
    revisions: Delays
    """The delays of new values of points."""

    @classmethod
    def from_state(cls, state: bytes) -> "Lateness":
        """Return what the audits of a feed show: for a :class:`StoreTarget`, or for ``sync_pages``.

        It has the newest 200 audits that the target reported, by ``apply()`` or
        ``pages.applied()``. A :class:`Store` counts all other reads too. Without ``audit_pages=``
        nothing is known.

        Raises:
            StoreCorrupt: The state is damaged.
        """
        return cls._restore(_of_state("lateness", state))

    @property
    def lateness(self) -> timedelta:
        """The lateness of the feed."""
        return self.feed.lateness

    @property
    def looked(self) -> timedelta | None:
        """The longest time after which buckets were still read; ``None`` if none was read again."""
        return self.points._looked

    @property
    def suggested(self) -> timedelta | None:
        """A lateness within which 99.9 % arrived; ``None`` if the data do not show one.

        Without audits the points after the lateness are unknown, so no shorter one is suggested.
        """
        return self._assess()[0]

    @property
    def verdict(self) -> str:
        """The suggestion and its reason, as text."""
        return self._assess()[1]

    def plot(self) -> "alt.VConcatChart":
        """Return an Altair chart of the share that has arrived by each delay.

        :func:`siteline.plots.lateness` draws several feeds, or another size.

        >>> store.lateness("line-2").plot().title.text
        'Lateness of line-2'
        """
        from siteline import plots

        return plots.lateness(self)

    def _assess(self) -> tuple[timedelta | None, str]:
        looked = self.looked
        if self.points.count + self.revisions.count < _ENOUGH or looked is None:
            return None, "too little data: hardly anything was read twice"
        suggested, found = self._judge(looked)
        return suggested, f"{found}; nothing was read again after {duration(looked)}"

    def _judge(self, looked: timedelta) -> tuple[timedelta | None, str]:
        known = [self.points._nearly_all, self.revisions._nearly_all]
        most = max(delay.total_seconds() for delay in known if delay is not None)
        late = self.points.late + self.revisions.late
        came = f"{counted(late, 'point')} arrived or changed after it"
        if late and most * 1.5 > looked.total_seconds():
            return None, f"{came}, up to the last look: it is too short"
        if late and most > self.lateness.total_seconds():
            longer = _rounded(most * 1.1)
            return longer, f"{came}: {duration(longer)} would have been long enough for 99.9 %"
        # Reads that were too far apart do not show when something arrived.
        if looked <= self.lateness or most > self.lateness.total_seconds():
            return None, "not known yet whether it is long enough"
        shorter = _rounded(most * 1.25)
        if not self.feed.audit_pages:
            seen = f"99.9 % of the points seen arrived within {duration(shorter)}"
            return None, f"{seen}; only audits show points after the lateness (audit_pages=)"
        if shorter < self.lateness:
            return shorter, f"{duration(shorter)} would have been long enough for 99.9 %"
        return self.lateness, "it is long enough for 99.9 %"

    def __repr__(self) -> str:
        """Summarize in one line."""
        suggested = "unknown" if self.suggested is None else duration(self.suggested)
        points = counted(self.points.count, "point")
        seen = f"{points}, {counted(self.revisions.count, 'revision')}"
        return f"<Lateness of {escaped(self.feed.name)}: {seen}, suggested lateness {suggested}>"

    def __str__(self) -> str:
        """Print the conclusion, and the quantiles as a table."""
        lines = [
            f"Lateness of {escaped(self.feed.name)}, {duration(self.lateness)}: {self.verdict}."
        ]
        if self.points.count or self.revisions.count:
            names = ("count", "late", "half", "90 %", "95 %", "99 %", "all")
            lines.append(f"  {'':<10}" + "".join(f"{name:>10}" for name in names))
            for name, one in (("points", self.points), ("revisions", self.revisions)):
                delays = "".join(f"{delay or '-':>10}" for delay in one._texts())
                lines.append(f"  {name:<10}{one.count:>10,}{one.late:>10,}{delays}")
            lines.append("  (from the end of a bucket until the service had the point; estimated)")
        return "\n".join(lines)


def _rounded(seconds: float) -> timedelta:
    """Round up to one of the lengths in ``_ROUND``, or to days."""
    days = -(-seconds // _DAY)
    return timedelta(seconds=next((one for one in _ROUND if one >= seconds), days * _DAY))
