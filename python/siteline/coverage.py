"""Which windows of a feed were never read, may still change, or are settled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload

from siteline._times import with_times

if TYPE_CHECKING:
    from datetime import tzinfo

    import pandas as pd

    from siteline._core import Feed
    from siteline.plots import Plot

    _State: TypeAlias = Literal["settled", "settling", "provisional", "unread", "forgotten"]

__all__ = ["Coverage", "CoverageWindow"]

_STATES: tuple[_State, ...] = ("settled", "settling", "provisional", "unread", "forgotten")


class CoverageWindow(NamedTuple):
    """A part of a window that is in one state.

    - ``start``, ``end``: half-open, UTC
    - ``state``: ``"unread"`` (never read to the end of a chain), ``"provisional"`` (read, and may
      still change), ``"settling"`` (its lateness is over: the next sync reads it for its final
      values), ``"settled"`` (read after its lateness), ``"forgotten"`` (removed by
      :meth:`Store.forget`: it is not read again)
    - ``read_at``: when the newest read of it began, by the service's time, or ``None``
    - ``settled_at``: when the read that settled it began, or ``None``
    - ``empty``: whether it was read and has no points; ``None`` where it was never read, and where
      only the state of the feed is known (:meth:`Coverage.from_state`)
    - ``set_aside``: until when a sync does not read it, because the service did not end its chain

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> _ = client.sync(feed, store)
    >>> first = store.coverage("line-2", now=sandbox.clock.now())[0]
    >>> first.state, first.empty, first.start.isoformat()
    ('settled', False, '2026-11-15T00:00:00+00:00')
    """

    start: datetime
    """The start, inclusive."""
    end: datetime
    """The end, exclusive."""
    state: Literal["unread", "provisional", "settling", "settled", "forgotten"]
    """``"unread"``, ``"provisional"``, ``"settling"``, ``"settled"`` or ``"forgotten"``."""
    read_at: datetime | None
    """When the newest read of it began."""
    settled_at: datetime | None
    """When the read that settled it began."""
    empty: bool | None
    """Whether it was read and has no points."""
    set_aside: datetime | None
    """Until when a sync does not read it."""

    @classmethod
    def _restore(cls, record: dict[str, Any], holds_points: bool | None) -> CoverageWindow:
        record = with_times(record, "start", "end", "read_at", "set_aside")
        read_at = record["read_at"]
        settled_at = read_at if record["state"] == "settled" else None
        empty = None if read_at is None or holds_points is None else not holds_points
        return cls(**record, settled_at=settled_at, empty=empty)


class Coverage(Sequence[CoverageWindow]):
    """The windows of a feed, ascending and without gaps.

    They reach from the feed's ``since`` to ``now`` less the settle lag; the feed begins at the end
    of what was forgotten.

    A sequence of :class:`CoverageWindow`. It prints as a calendar: a row for each month, or for
    each day where windows are shorter than a day; notebooks draw it.

    - ``feed``: the :class:`Feed` as the store has it; ``now``: the time that the states are for

    Made by :meth:`Store.coverage`, and by :meth:`from_state` for a store of yours.

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> _ = client.sync(feed, store)
    >>> coverage = store.coverage("line-2", now=sandbox.clock.now())
    >>> coverage.settled_through.isoformat(), coverage.spans["unread"]
    ('2026-11-19T00:00:00+00:00', datetime.timedelta(0))
    """

    __slots__ = ("__weakref__", "_feed", "_now", "_windows")

    def __init__(self, feed: Feed, now: datetime, windows: Sequence[CoverageWindow]) -> None:
        """Store the windows; made by :meth:`siteline.Store.coverage`."""
        self._feed = feed
        self._now = now
        self._windows = tuple(windows)

    @classmethod
    def from_state(cls, state: bytes, now: datetime | str | None = None) -> Coverage:
        """Return the coverage that a state has: for a :class:`StoreTarget`, or a pull.

        - ``state``: the bytes that were stored last for the feed; those of a damaged one are a
          :class:`StoreCorrupt`
        - ``now``: the time that it is for: this machine's by default, or that of a later read

        ``empty`` of its windows is ``None``: which of them have points, only their store knows.

        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      since="2026-11-15T00:00Z")
        >>> states = {}
        >>> for page, state in client.sync_pages(feed, states):
        ...     states.update(state)
        >>> siteline.Coverage.from_state(states["line-2"]).settled_through.isoformat()
        '2026-11-19T00:00:00+00:00'
        """
        from siteline.store import Store

        return Store._coverage_of(state, now)

    @classmethod
    def _restore(cls, feed: Feed, record: dict[str, Any]) -> Coverage:
        windows = [CoverageWindow._restore(*window) for window in record["windows"]]
        return cls(feed, with_times(record, "now")["now"], windows)

    @property
    def feed(self) -> Feed:
        """The feed as the store has it."""
        return self._feed

    @property
    def now(self) -> datetime:
        """The time that the states are for."""
        return self._now

    @overload
    def __getitem__(self, index: int) -> CoverageWindow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[CoverageWindow, ...]: ...
    def __getitem__(self, index: int | slice) -> CoverageWindow | tuple[CoverageWindow, ...]:
        """Return one window, or several."""
        return self._windows[index]

    def __len__(self) -> int:
        """Count the windows; parts of a window in different states count separately."""
        return len(self._windows)

    def __iter__(self) -> Iterator[CoverageWindow]:
        """Iterate over the windows in order of time."""
        return iter(self._windows)

    def __eq__(self, other: object) -> bool:
        """Compare feed, time and windows."""
        if not isinstance(other, Coverage):
            return NotImplemented
        return (self.feed, self.now, self._windows) == (other.feed, other.now, other._windows)

    def __hash__(self) -> int:
        """Hash feed, time and windows."""
        return hash((self.feed, self.now, self._windows))

    @property
    def _kept(self) -> list[CoverageWindow]:
        """The windows from what was forgotten on."""
        return [window for window in self._windows if window.state != "forgotten"]

    @property
    def settled_through(self) -> datetime | None:
        """Everything from the feed's beginning up to this time is settled, or ``None``."""
        through = None
        for window in self._kept:
            if window.state != "settled":
                break
            through = window.end
        return through

    @property
    def read_through(self) -> datetime | None:
        """Everything from the feed's beginning up to this time was read, or ``None``."""
        through = None
        for window in self._kept:
            if window.state == "unread":
                break
            through = window.end
        return through

    @property
    def newest(self) -> datetime | None:
        """The newest instant that was read, perhaps with unread windows before it, or ``None``."""
        return max((one.end for one in self._kept if one.state != "unread"), default=None)

    @property
    def spans(self) -> dict[_State, timedelta]:
        """The total time in each of the five states."""
        spans = dict.fromkeys(_STATES, timedelta(0))
        for window in self._windows:
            spans[window.state] += window.end - window.start
        return spans

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each window; ``state`` is a category, ``empty`` is ``boolean``."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            from siteline.frames import missing

            raise missing(error, "pandas", "to_pandas()") from error.__cause__
        frame = pd.DataFrame(list(self._windows), columns=list(CoverageWindow._fields))
        for name in ("start", "end", "read_at", "settled_at"):
            frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
        frame["state"] = pd.Categorical(frame["state"], categories=list(_STATES))
        frame["empty"] = frame["empty"].astype("boolean")
        return frame

    def to_svg(self) -> str:
        """Return the calendar as an SVG document, for light and for dark pages."""
        from siteline._display import coverage_svg

        return coverage_svg.document(self)

    def plot(self, *, tz: str | tzinfo = "UTC", title: str | None = None, width: int = 900) -> Plot:
        """Draw a cell for each day, in the colours of the states.

        Of several feeds together, and in more detail: :func:`siteline.plots.coverage`. The calendar
        of one feed, a row for each month, is :meth:`to_svg`.

        >>> store = siteline.Store("plant.siteline")
        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      since="2026-11-15T00:00Z")
        >>> _ = client.sync(feed, store)
        >>> store.coverage("line-2", now=sandbox.clock.now()).plot(tz="Europe/Berlin")
        <Plot Coverage of line-2>
        """
        from siteline import plots

        return plots.coverage(self, tz=tz, title=title, width=width)

    def __repr__(self) -> str:
        """Print the calendar."""
        from siteline._display import coverage_text

        return coverage_text.lines(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import sync_html

        return sync_html.coverage(self)
