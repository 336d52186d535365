"""Sends SIGINT to this process while a call waits."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Interrupted(BaseException):
    """Raised by the handler of SIGINT while the call runs."""


def interrupted(
    call: Callable[[], object],
    *,
    when: Callable[[], object] = lambda: None,
    otherwise: Callable[[], object] = lambda: None,
) -> bool:
    """Returns whether SIGINT ended the call.

    `when` runs in another thread and returns when the call waits. The signal is sent again each
    second until the call has ended, because Python loses exceptions that are raised in some of its
    callbacks. If the call has not ended after a minute, `otherwise` must end it, so that the test
    fails instead of waiting forever.
    """
    begun, ended = threading.Event(), threading.Event()

    def handle(number, frame):
        if begun.is_set() and not ended.is_set():
            raise Interrupted

    def press():
        begun.wait()
        when()
        for _ in range(60):
            if ended.is_set():
                return
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(1)
        otherwise()

    before = signal.signal(signal.SIGINT, handle)
    presser = threading.Thread(target=press)
    presser.start()
    has_returned = False
    try:
        # The outer block is for a second signal, which may arrive while the inner block ends.
        with contextlib.suppress(Interrupted):
            try:
                begun.set()
                call()
                has_returned = True
            finally:
                ended.set()
    finally:
        ended.set()
        presser.join()
        signal.signal(signal.SIGINT, before)
    return not has_returned
