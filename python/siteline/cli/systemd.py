"""Tells systemd how a service is doing: the protocol of ``sd_notify``."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

__all__ = ["Notifier"]


class Notifier:
    """Sends to ``NOTIFY_SOCKET``, and nothing where it is not set. A failure ends nothing."""

    def __init__(
        self, environ: Mapping[str, str] = os.environ, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the address and the watchdog's time from the environment."""
        self._socket = _connected(environ.get("NOTIFY_SOCKET", ""))
        self._now = now
        self._alive_at: float | None = None
        self._is_ready = False
        self.alive_every: float | None = _watchdog(environ) if self._socket is not None else None
        """How often :meth:`alive` must be called, in seconds; ``None`` where nobody watches."""

    def ready(self) -> None:
        """Say once that the service has begun."""
        if not self._is_ready:
            self._is_ready = True
            self._send("READY=1")

    def status(self, text: str) -> None:
        """Say what the service does, in one line."""
        self._send(f"STATUS={' '.join(text.split())}")

    def alive(self) -> None:
        """Say that the service goes on, no more often than the watchdog needs."""
        if self.alive_every is None:
            return
        now = self._now()
        if self._alive_at is None or now - self._alive_at >= self.alive_every / 2:
            self._alive_at = now
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the service ends."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()

    def _send(self, text: str) -> None:
        if self._socket is not None:
            # The sync matters more than what systemd knows of it.
            with suppress(OSError):
                self._socket.send(text.encode())


def _connected(address: str) -> socket.socket | None:
    if address[:1] not in ("/", "@"):
        return None
    import socket

    if not hasattr(socket, "AF_UNIX"):
        return None
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        made.connect("\0" + address[1:] if address[0] == "@" else address)
        made.setblocking(False)
    except OSError:
        made.close()
        return None
    return made


def _watchdog(environ: Mapping[str, str]) -> float | None:
    """Return half of the watchdog's time, as systemd recommends, where it is for this process."""
    wanted, process = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID")
    if not (wanted.isdecimal() and int(wanted)) or process not in (None, str(os.getpid())):
        return None
    return int(wanted) / 2_000_000
