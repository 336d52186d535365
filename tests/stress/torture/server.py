"""A server on loopback that answers, hangs, stalls or refuses, and records requests.

The first segment of the path selects how a data request is answered:

- ``/page``: one page, the last
- ``/endless``: page after page, each with a new cursor
- ``/two``: two pages of a chain, then no reply
- ``/silent``: no reply
- ``/stalled``: half a reply, until :meth:`Server.release`
- ``/busy``: 503 with ``Retry-After: 30``
- ``/exchange``: no reply to the token request, until :meth:`Server.release`

Token and discovery requests are answered in every mode but ``/exchange``.
"""

import contextlib
import http.client
import json
import select
import socket
import threading
import time
from typing import Self

_TOKEN = {
    "access_token": "a-token-for-a-torture",
    "token_type": "Bearer",
    "expires_in": 600,
    "scope": "customer.discovery.read customer.data.read",
}
_POINT = {"timestamp": "2026-11-01T00:00:00Z", "value": 1.5, "sampleCount": 6}
_SERIES = {"siteId": "S1", "lineId": "L1", "machineId": "M1", "deviceId": "D1", "tagGuid": "T1"}
_POLL = 0.01
"""How often a wait polls, in seconds."""


class Server:
    """Listens on loopback until it is closed; each connection has a thread."""

    def __init__(self, *, listening: bool = True) -> None:
        """Start; with ``listening=False`` no connection is accepted before :meth:`open`."""
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(128 if listening else 0)
        self.port: int = self._listener.getsockname()[1]
        self.closed_at: list[float] = []
        """When clients closed a connection that waited for a reply, on the monotonic clock."""
        self.requests: list[str] = []
        """The paths of all requests."""
        self._changed = threading.Condition()
        self._released = threading.Event()
        self._ended = threading.Event()
        self._fillers: list[socket.socket] = []
        if listening:
            self.open()
        else:
            self._fill()

    def _fill(self) -> None:
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self._fillers.append(filler)

    def open(self) -> None:
        for filler in self._fillers:
            filler.close()
        self._fillers.clear()
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, mode: str) -> str:
        return f"http://127.0.0.1:{self.port}/{mode}"

    def release(self) -> None:
        self._released.set()

    def await_request(self, part: str, *, count: int = 1, timeout: float = 60) -> None:
        """Wait until ``count`` requests have this part in their path."""

        def enough() -> bool:
            return self._count(part) >= count

        with self._changed:
            if not self._changed.wait_for(enough, timeout):
                raise TimeoutError(f"no request with {part!r} within {timeout} s")

    def await_close(self, *, count: int = 1, timeout: float = 60) -> float:
        """Wait until clients have closed ``count`` connections; return the time of the last."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.closed_at) >= count, timeout):
                raise TimeoutError(f"the connection was still open after {timeout} s")
            return self.closed_at[count - 1]

    def await_connecting(self, *, timeout: float = 60) -> None:
        """Wait until a client tries to connect; at once if the system has no /proc/net/tcp."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            try:
                with open("/proc/net/tcp", encoding="ascii") as table:
                    rows = [line.split() for line in table]
            except OSError:
                return
            connecting = [row for row in rows if row[2].endswith(f":{self.port:04X}")]
            if sum(row[3] in ("01", "02") for row in connecting) > len(self._fillers):
                return
            self._ended.wait(_POLL)
        raise TimeoutError(f"no client tried to connect within {timeout} s")

    def close(self) -> None:
        self._ended.set()
        self._released.set()
        for filler in self._fillers:
            filler.close()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _count(self, part: str) -> int:
        return sum(part in path for path in self.requests)

    def _record(self, path: str | None = None, closed: float | None = None) -> None:
        with self._changed:
            if path is not None:
                self.requests.append(path)
            if closed is not None:
                self.closed_at.append(closed)
            self._changed.notify_all()

    def _accept(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the listener was closed
            while not self._ended.is_set():
                if select.select([self._listener], [], [], 0.2)[0]:
                    connection, _ = self._listener.accept()
                    threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb") as reader, contextlib.suppress(OSError):
            while (request := reader.readline()).endswith(b"\n"):
                headers = http.client.parse_headers(reader)
                reader.read(int(headers.get("Content-Length", 0)))
                if not self._answer(connection, request.split()[1].decode("ascii")):
                    return

    def _answer(self, connection: socket.socket, path: str) -> bool:
        """Reply to one request; false if the connection must be closed."""
        self._record(path)
        mode = path.split("/")[1]
        if path.endswith("/token"):
            if mode == "exchange" and not self._hold(connection):
                return False
            connection.sendall(_reply(_TOKEN))
        elif path.endswith("/discovery"):
            connection.sendall(_reply({"sites": []}))
        elif mode == "silent" or (mode == "two" and self._count("/data") > 2):
            return self._hold(connection, for_good=True)
        elif mode == "stalled":
            reply = _reply(_page(None))
            connection.sendall(reply[:-40])
            if not self._hold(connection):
                return False
            connection.sendall(reply[-40:])
        elif mode == "busy":
            connection.sendall(_reply({}, "503 Service Unavailable\r\nRetry-After: 30"))
        else:
            cursor = f"c{len(self.requests)}" if mode in ("endless", "two") else None
            connection.sendall(_reply(_page(cursor)))
        return True

    def _hold(self, connection: socket.socket, *, for_good: bool = False) -> bool:
        """Send nothing; true once released, false once the client has closed the connection."""
        while for_good or not self._released.is_set():
            if self._ended.is_set():
                return False
            ready, _, _ = select.select([connection], [], [], _POLL)
            if ready:
                self._record(closed=time.monotonic())
                return False
        return True


def _page(cursor: str | None) -> dict[str, object]:
    return {"series": [{**_SERIES, "points": [_POINT]}], "nextCursor": cursor}


def _reply(body: object, status: str = "200 OK") -> bytes:
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
    return head.encode() + b"\r\n\r\n" + text
