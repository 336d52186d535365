"""Runs a job again and again: waits for its turns, and ends when it is asked to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

from siteline.cli.stopping import Stop, Stopped

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    from siteline.cli.schedule import Ended, Schedule
    from siteline.cli.systemd import Notifier

__all__ = ["Loop", "PassedTime"]

_LONGEST_SLEEP = 60.0
_Result = TypeVar("_Result")


def _sleep(seconds: float) -> None:
    """Sleep, by the second: a signal that comes just before a sleep begins is heard after it."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 1.0))


class PassedTime:
    """Seconds since it was made, with those in which the machine slept.

    The clock that never steps stands still while a machine sleeps, and the other one may be set:
    what it is ahead by is time that passed, and what it is set back by is not.
    """

    def __init__(
        self,
        steady: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin at 0."""
        self._steady, self._wall = steady, wall
        self._read = (steady(), wall())
        self._passed = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        now = (self._steady(), self._wall())
        steady, wall = (now[at] - self._read[at] for at in (0, 1))
        self._read = now
        # A wall clock is also corrected by little, which is no sleep.
        self._passed += wall if wall > steady + 1 else steady
        return self._passed


class Loop(Generic[_Result]):
    """A job, and what it is run with. Nothing here reads a clock or sleeps but what it is given."""

    def __init__(
        self,
        run: Callable[[], tuple[Ended, _Result]],
        tell: Callable[[_Result, float], None],
        schedule: Schedule,
        notifier: Notifier,
        stop: Stop,
        *,
        passed: Callable[[], float] | None = None,
        sleep: Callable[[float], object] = _sleep,
    ) -> None:
        """Take what runs once, and what tells of a run with the seconds until the next."""
        self._run, self._tell = run, tell
        self._schedule, self._notifier, self._stop = schedule, notifier, stop
        self._passed = passed or PassedTime()
        self._sleep = sleep

    def go(self) -> signal.Signals:
        """Run until a signal comes, which is returned. What a run raises ends it."""
        try:
            while True:
                begun = self._passed()
                self._notifier.ready()
                self._notifier.alive()
                with self._stop.after_a_page():
                    ended, result = self._run()
                    now = self._passed()
                    due = self._schedule.due(begun, now, ended)
                    self._tell(result, due - now)
                self._wait(due)
        except Stopped:
            assert self._stop.signal is not None
            return self._stop.signal
        finally:
            self._notifier.stopping()

    def _wait(self, due: float) -> None:
        """Wait in parts, so that a machine that slept is not late by as long as it slept."""
        longest = min(_LONGEST_SLEEP, self._notifier.alive_every or _LONGEST_SLEEP)
        while (left := due - self._passed()) > 0:
            self._notifier.alive()
            with self._stop.at_once():
                self._sleep(min(left, longest))
