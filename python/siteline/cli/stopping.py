"""Ends a command that serves until SIGTERM, SIGINT or SIGHUP."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any


def end_on_signals() -> None:
    """Installs handlers for SIGTERM, SIGHUP and SIGQUIT that end this process.

    Process 1 of a container needs them: the system delivers to it only signals that it handles.
    """
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    """Ends the process at once, with the exit status that shells report for the signal."""
    os._exit(128 + number)


class _Stopped(BaseException):
    """A signal arrived. Not an Exception, so that nothing handles it as an error."""


class Stop:
    """Catches the signals while it is entered; :meth:`wait` returns after the first one."""

    def __init__(self) -> None:
        """Catches nothing yet."""
        self._has_come = self._is_waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        """Catches the signals. Ignored signals stay ignored, as under nohup."""
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in (None, signal.SIG_IGN):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        """Restores the handlers. After a signal, more signals must not break an orderly end."""
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._has_come else handler)

    def wait(self, step: Callable[[], object]) -> None:
        """Repeats ``step`` until a signal arrives, which also ends a step."""
        with suppress(_Stopped):
            self._is_waiting = True
            while not self._has_come:
                step()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        is_first, self._has_come = not self._has_come, True
        # Only once: later signals must not end the output and the cleanup.
        if self._is_waiting and is_first:
            raise _Stopped
