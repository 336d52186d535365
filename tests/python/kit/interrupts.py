"""Sends SIGINT to this process while a call waits."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Interrupted(BaseException):
    """Raised by the handler of SIGINT, at most once for each call."""


def interrupted(
    call: Callable[[], object],
    *,
    when: Callable[[], object] = lambda: None,
    otherwise: Callable[[], object] = lambda: None,
) -> bool:
    """Returns whether SIGINT ended the call.

    `when` returns when the call waits; it runs in another thread. The signal is sent until the call
    has ended, because Python loses it in some callbacks. If it has no effect within a minute,
    `otherwise` has to end the call, and the test fails instead of waiting without end.
    """
    begun, ended, armed = threading.Event(), threading.Event(), [True]

    def handle(number, frame):
        if armed:
            armed.clear()
            raise Interrupted

    def press():
        begun.wait()
        when()
        for _ in range(600):
            if ended.is_set():
                return
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(0.1)
        otherwise()

    before = signal.signal(signal.SIGINT, handle)
    presser = threading.Thread(target=press)
    presser.start()
    was_interrupted = False
    try:
        begun.set()
        call()
    except Interrupted:
        was_interrupted = True
    finally:
        armed.clear()
        ended.set()
        presser.join()
        signal.signal(signal.SIGINT, before)
    return was_interrupted
