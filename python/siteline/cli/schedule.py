"""When the next run of ``siteline sync --every`` is due. Nothing here reads a clock or waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ended", "Schedule"]

_LONGEST_PAUSE = 3_600.0
_SHORTEST_PAUSE = 60.0


class Ended(NamedTuple):
    """How a run ended, as far as the next one depends on it."""

    status: int
    """The exit status that the run alone would have had."""
    resumes_in: float | None = None
    """Seconds until the time that the service or the ledger named, where one did."""
    is_failure: bool = False
    """Whether it is a failure that may last, so that the pauses grow."""


class Schedule:
    """Turns at whole multiples of a duration, each a little later by chance.

    All times are seconds since the first run began. ``chance`` gives numbers from 0 to 1.
    """

    def __init__(self, every: float, chance: Callable[[], float]) -> None:
        """Begin with a run at 0."""
        self._every = every
        self._chance = chance
        self._failures = 0

    def due(self, begun: float, now: float, ended: Ended) -> float:
        """Return when the next run is due, after one that began and has ended now."""
        if ended.is_failure:
            self._failures += 1
        elif ended.status != Exit.BUSY:
            # A run that another one kept out learned nothing of the service.
            self._failures = 0
        if ended.resumes_in is not None:
            # Where the named time is past by this clock, the next try must still not be at once.
            pause = max(ended.resumes_in, min(self._every, _SHORTEST_PAUSE))
            return now + pause + self._late(min(pause, self._every))
        turn = self._turn_after(now)
        if ended.is_failure and self._failures > 1:
            pause = min(self._every * 2.0 ** min(self._failures - 1, 40), _LONGEST_PAUSE)
            turn = max(turn, begun + pause)
        return turn + self._late(self._every)

    def _turn_after(self, now: float) -> float:
        """Return the first turn after now: those that a long run or a sleep missed are left out."""
        return (now // self._every + 1) * self._every

    def _late(self, length: float) -> float:
        """Return up to a tenth of this, so that many machines do not come together."""
        return self._chance() * length / 10
