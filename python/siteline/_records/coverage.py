"""The coverage of a feed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

from siteline._core import _of_state
from siteline._handles import WithHtml
from siteline._records.record import FrozenRecord
from siteline.feed import Feed

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    _State: TypeAlias = Literal["settled", "due", "provisional", "unread", "forgotten"]

_STATES: "tuple[_State, ...]" = ("settled", "due", "provisional", "unread", "forgotten")


@dataclass(frozen=True)
class CoverageWindow(FrozenRecord):
    """A part of a window that is in one state."""

    start: datetime
    """The start, inclusive, in UTC."""
    end: datetime
    """The end, exclusive."""
    state: Literal["settled", "due", "provisional", "unread", "forgotten"]
    """The state.

    - ``"unread"``: never read to the end of a chain
    - ``"provisional"``: read, and may still change
    - ``"due"``: its lateness has passed; the next sync reads its final values
    - ``"settled"``: read after its lateness
    - ``"forgotten"``: removed by :meth:`Store.forget`; it is not read again
    """
    read_at: datetime | None
    """When its newest read began, by the service's time."""
    settled_at: datetime | None
    """When the read that settled it began."""
    empty: bool | None
    """Whether it was read and contains no points.

    ``None`` if it was never read, and in :meth:`Coverage.from_state`."""
    skipped_until: datetime | None
    """Until when no sync reads it, because the service did not end its chain."""


@dataclass(frozen=True, repr=False)
class Coverage(WithHtml, FrozenRecord, Sequence[CoverageWindow]):
    """The windows of a feed, ascending and without gaps: a sequence of :class:`CoverageWindow`.

    They reach from the feed's ``start`` to ``now`` less the settle lag. ``settled_through`` and
    ``read_through`` count from the end of the forgotten windows.

    It prints as a calendar with a row for each month, or for each day if windows are shorter.
    :meth:`Store.coverage` returns it, and :meth:`from_state` for your own store.

    >>> coverage = store.coverage("line-2", now=sandbox.clock.now())
    >>> coverage.settled_through.isoformat(), coverage.spans["unread"]
    ('2026-11-19T00:00:00+00:00', datetime.timedelta(0))
    """

    _html = "sync_html.coverage"

    feed: Feed
    """The feed as the store has it."""
    now: datetime
    """The time that the states are for."""
    windows: tuple[CoverageWindow, ...]
    """The windows, in order of time."""

    @classmethod
    def from_state(cls, state: bytes, now: datetime | str | None = None) -> "Coverage":
        """Return the coverage of a feed's state: for a :class:`StoreTarget`, or for ``sync_pages``.

        ``empty`` of its windows is ``None``: only the store knows which contain points.

        Args:
            state: The bytes that were stored last for the feed.
            now: The time of the states. By default this machine's, or a later read's.

        Raises:
            StoreCorrupt: The state is damaged.

        >>> states = {}
        >>> for page, state in client.sync_pages(feed, states):
        ...     states.update(state)
        >>> siteline.types.Coverage.from_state(states["line-2"]).settled_through.isoformat()
        '2026-11-19T00:00:00+00:00'
        """
        return cls._restore(_of_state("coverage", state, now))

    @overload
    def __getitem__(self, index: int) -> CoverageWindow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[CoverageWindow, ...]: ...
    def __getitem__(self, index: int | slice) -> CoverageWindow | tuple[CoverageWindow, ...]:
        """Return one window, or several."""
        return self.windows[index]

    def __len__(self) -> int:
        """Count the windows; their parts in different states count separately."""
        return len(self.windows)

    @property
    def _kept(self) -> list[CoverageWindow]:
        return [window for window in self.windows if window.state != "forgotten"]

    @property
    def settled_through(self) -> datetime | None:
        """Everything from the feed's beginning up to this time is settled, or ``None``."""
        settled = takewhile(lambda one: one.state == "settled", self._kept)
        return max((one.end for one in settled), default=None)

    @property
    def read_through(self) -> datetime | None:
        """Everything from the feed's beginning up to this time was read, or ``None``."""
        read = takewhile(lambda one: one.state != "unread", self._kept)
        return max((one.end for one in read), default=None)

    @property
    def newest(self) -> datetime | None:
        """The newest instant that was read, perhaps with unread windows before it, or ``None``."""
        return max((one.end for one in self._kept if one.state != "unread"), default=None)

    @property
    def spans(self) -> "dict[_State, timedelta]":
        """The total time in each state."""
        spans = dict.fromkeys(_STATES, timedelta(0))
        for window in self.windows:
            spans[window.state] += window.end - window.start
        return spans

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row for each window; ``state`` is a category, ``empty`` is ``boolean``."""
        from siteline.frames import needing

        with needing("pandas", "to_pandas()"):
            import pandas as pd
        names = list(CoverageWindow.__dataclass_fields__)
        frame = pd.DataFrame({name: [getattr(one, name) for one in self.windows] for name in names})
        for name in ("start", "end", "read_at", "settled_at"):
            frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
        frame["state"] = pd.Categorical(frame["state"], categories=list(_STATES))
        frame["empty"] = frame["empty"].astype("boolean")
        return frame

    def plot(self) -> "alt.LayerChart":
        """Return an Altair chart in the colours of the states, with times in UTC.

        :func:`siteline.plots.coverage` draws several feeds, in another zone or size.

        >>> store.coverage("line-2", now=sandbox.clock.now()).plot().save("coverage.svg")
        """
        from siteline import plots

        return plots.coverage(self)

    def __repr__(self) -> str:
        """Print the calendar."""
        from siteline._display import calendar

        return calendar.lines(self)
