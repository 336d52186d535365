"""Ends a long job on SIGTERM and SIGINT: in a wait at once, in a run after its page."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["Stop", "Stopped", "end_on_signals", "is_default"]

_GRACE = 5.0
"""Seconds that a run has to get to the end of its page. Docker kills after ten."""


def end_on_signals() -> None:
    """Installs handlers for SIGTERM, SIGHUP and SIGQUIT that end this process.

    Process 1 of a container needs them: the system delivers to it only signals that it handles.
    """
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def is_default(handler: Any) -> bool:
    """Whether a signal with this handler ends the process at once."""
    return handler in (signal.SIG_DFL, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    """Ends the process at once, with the exit status that shells report for the signal."""
    os._exit(128 + number)


class Stopped(BaseException):
    """The process was asked to end. Not an Exception, so that nothing takes it for an error."""


class Stop:
    """Catches the signals while it is entered.

    A signal raises :class:`Stopped` at once inside :meth:`at_once`; elsewhere at the next
    :meth:`check`, and inside :meth:`after_a_page` also when the grace is over, or at a second
    signal.
    """

    def __init__(self, *, until_exit: bool = False, hangup: bool = False) -> None:
        """Catch nothing yet.

        ``until_exit``: once asked to end, the process ignores the signals. ``hangup``: SIGHUP is
        one of them, which comes when the terminal goes.
        """
        self._until_exit = until_exit
        names = ("SIGTERM", "SIGINT", *(["SIGHUP"] if hangup else []))
        self._caught = [getattr(signal, name) for name in names if hasattr(signal, name)]
        self.signal: signal.Signals | None = None
        """The signal that came first."""
        self._is_at_once = False
        self._is_graced = False
        self._has_raised = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        """Catch the signals, but for those that the process was started without, as by nohup."""
        for number in self._caught:
            if signal.getsignal(number) not in (None, signal.SIG_IGN):
                self._before[number] = signal.signal(number, self._on_signal)
        if hasattr(signal, "setitimer"):
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._on_alarm)
        return self

    def __exit__(self, *_: object) -> None:
        """Handle the signals as before."""
        self._end_grace()
        is_ending = self._until_exit and self.signal is not None
        for number, handler in self._before.items():
            # Who asks twice must not turn an orderly end into one by a signal.
            signal.signal(number, signal.SIG_IGN if is_ending else handler)

    def check(self) -> None:
        """Raise :class:`Stopped` if a signal has come."""
        if self.signal is not None:
            raise Stopped

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal end what is inside at any place."""
        self._is_at_once = True
        try:
            self.check()
            yield
        finally:
            self._is_at_once = False

    @contextmanager
    def after_a_page(self) -> Iterator[None]:
        """Let a signal end what is inside when its grace is over, where no check comes before."""
        self._is_graced = True
        try:
            self.check()
            yield
        finally:
            self._end_grace()

    def _end_grace(self) -> None:
        self._is_graced = False
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_first = self.signal is None
        self.signal = self.signal or signal.Signals(number)
        if not self._has_raised and (self._is_at_once or (self._is_graced and not is_first)):
            # Once: the third signal of who is impatient must not end what tells of the end.
            self._has_raised = True
            raise Stopped
        if is_first and self._is_graced:
            _explain()
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, _GRACE)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self._is_graced:
            raise Stopped


def _explain() -> None:
    """Tell a person why it goes on. Not by print(), which may be what the signal interrupted."""
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, b"\nending after this page; Ctrl-C again ends at once\n")
