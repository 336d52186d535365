"""The service of the benchmark, on loopback: ``python -m speed.server FOLDER`` prints its port.

It answers with rendered pages at little cost: sendfile copies them into the socket. Each connection
has a thread; HTTP/1.1, kept alive. ``siteId`` of a query names the set of pages; besides the
rendered sets there are:

- ``a5``: the pages of ``a`` five times, each with its own cursor
- ``slow``: an hour of the query's range on each page, answered after 50 ms

Any assertion gets a token (§4.1); the token is not checked.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import parse_qs

DELAY = 0.05
"""The response time of a page of ``slow``, in seconds."""
_LAPS = {"a5": ("a", 5)}
_TOKEN = (
    b'{"access_token":"a-token-for-the-benchmark","token_type":"Bearer","expires_in":600,'
    b'"scope":"customer.discovery.read customer.data.read"}'
)
_PARAMETERS = re.compile(rb"[?&](siteId|cursor)=([^& ]*)")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_GZIP = re.compile(rb"\r\naccept-encoding:[^\r]*gzip", re.IGNORECASE)


class Body(NamedTuple):
    """A body: the first ``size`` bytes of a file, then ``tail``."""

    file: int
    size: int
    tail: bytes = b""
    encoding: bytes = b""


class Server:
    """The server, which listens until it is closed."""

    def __init__(self, folder: Path) -> None:
        """Serve the pages of this folder."""
        self._folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._bodies: dict[tuple[bytes, bytes, bool], Body | None] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read = b""
        with connection, contextlib.suppress(OSError):
            while True:
                while b"\r\n\r\n" not in read:
                    more = connection.recv(65536)
                    if not more:
                        return
                    read += more
                head, _, read = read.partition(b"\r\n\r\n")
                length = _LENGTH.search(head)
                while length and len(read) < int(length[1]):
                    read += connection.recv(65536)
                read = read[int(length[1]) :] if length else read
                self._answer(connection, head)

    def _answer(self, connection: socket.socket, head: bytes) -> None:
        if head.startswith(b"POST "):
            connection.sendall(_head(len(_TOKEN)) + _TOKEN)
            return
        parameters = dict(_PARAMETERS.findall(head))
        pages, cursor = parameters.get(b"siteId", b""), parameters.get(b"cursor", b"p000")
        if pages == b"slow":
            due = time.monotonic() + DELAY
            body = _hour(head.split(b" ", 2)[1].decode())
            time.sleep(max(0.0, due - time.monotonic()))
            connection.sendall(_head(len(body)) + body)
            return
        found = self._body(pages, cursor, _GZIP.search(head) is not None)
        if found is None:
            connection.sendall(_head(0, b"404 Not Found"))
            return
        size = found.size + len(found.tail)
        connection.sendall(_head(size, encoding=found.encoding), socket.MSG_MORE)
        sent = 0
        while sent < found.size:
            sent += os.sendfile(connection.fileno(), found.file, sent, found.size - sent)
        if found.tail:
            connection.sendall(found.tail)

    def _body(self, pages: bytes, cursor: bytes, zipped: bool) -> Body | None:
        key = (pages, cursor, zipped)
        if key not in self._bodies:
            self._bodies[key] = self._find(pages.decode(), cursor.decode(), zipped)
        return self._bodies[key]

    def _find(self, pages: str, cursor: str, zipped: bool) -> Body | None:
        """The body for a set of pages and a cursor; its file stays open."""
        if not re.fullmatch(r"[a-z0-9-]+", pages) or not re.fullmatch(r"p\d{3}", cursor):
            return None
        number = int(cursor[1:])
        if pages in _LAPS:
            return self._lap(*_LAPS[pages], number)
        if pages.startswith("gzip") and not zipped:
            pages = pages.replace("gzip-b", "b").replace("gzip", "a")
        for name, encoding in ((f"{number:03d}.json", b""), (f"{number:03d}.json.gz", b"gzip")):
            path = self._folder / pages / name
            if path.exists():
                return Body(os.open(path, os.O_RDONLY), path.stat().st_size, encoding=encoding)
        return None

    def _lap(self, pages: str, laps: int, number: int) -> Body | None:
        """A page of a set that is read so many times: with another cursor."""
        count = len(list((self._folder / pages).iterdir()))
        if number >= laps * count:
            return None
        path = self._folder / pages / f"{number % count:03d}.json"
        size = path.read_bytes().rindex(b'"nextCursor":')
        following = b'"p%03d"' % (number + 1) if number + 1 < laps * count else b"null"
        return Body(os.open(path, os.O_RDONLY), size, b'"nextCursor":' + following + b"}")

    def close(self) -> None:
        """Stop listening, and close the files."""
        self._listener.close()
        for body in self._bodies.values():
            if body:
                os.close(body.file)

    def __enter__(self) -> Self:
        """Leaving the block closes the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


@lru_cache(maxsize=4)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


def _head(length: int, status: bytes = b"200 OK", encoding: bytes = b"") -> bytes:
    coded = b"Content-Encoding: %b\r\n" % encoding if encoding else b""
    return (
        b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nDate: %b\r\n%bContent-Length: %d\r\n\r\n"
    ) % (status, _date(int(time.time())), coded, length)


def _hour(target: str) -> bytes:
    """A page of ``slow``: the cursor is the number of the hour in the range of the query."""
    query = parse_qs(target.partition("?")[2])
    begin, to = (datetime.fromisoformat(query[name][0]).astimezone(UTC) for name in ("from", "to"))
    number = int(query.get("cursor", ["h0"])[0][1:])
    begin += timedelta(hours=number)
    stop = min(begin + timedelta(hours=1), to)
    following = f'"h{number + 1}"' if stop < to else "null"
    first, last = (int(at.timestamp()) // 60 for at in (begin, stop))
    envelopes = ",".join(_slow_envelope(tag, first, last) for tag in range(2))
    return f'{{"series":[{envelopes}],"nextCursor":{following}}}'.encode()


def _slow_envelope(tag: int, first: int, last: int) -> str:
    points = ",".join(_slow_point(tag, minute) for minute in range(first, last))
    return (
        f'{{"siteId":"S1","lineId":"L1","machineId":"M1","deviceId":"D1","tagGuid":"T{tag}",'
        f'"points":[{points}]}}'
    )


@lru_cache(maxsize=100_000)
def _slow_point(tag: int, minute: int) -> str:
    at = datetime.fromtimestamp(minute * 60, UTC)
    value = minute * 7919 % 1000 / 10 + tag
    return (
        f'{{"timestamp":"{at:%Y-%m-%dT%H:%M:%SZ}","value":{value},"minimum":{value - 1},'
        f'"maximum":{value + 1},"sampleCount":{minute % 60 + 1}}}'
    )


def main() -> None:
    """Serve until the parent closes stdin."""
    with Server(Path(sys.argv[1])) as server:
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
