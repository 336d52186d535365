"""The service of the benchmark, on loopback: ``python -m speed.server FOLDER`` prints its port.

It answers with rendered pages at little cost: sendfile copies them into the socket. Each connection
has a thread; HTTP/1.1, kept alive. ``siteId`` of a query names the set of pages. Two sets are not
rendered:

- ``a5``: the pages of ``a`` five times, each with its own cursor
- ``slow``: an hour of the query's range on each page, answered after 50 ms

Any assertion gets a token (§4.1); the token is not checked.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from functools import lru_cache
from pathlib import Path
from socket import MSG_MORE
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import NamedTuple
from urllib.parse import parse_qs

from speed.render import envelope, page

DELAY = 0.05
"""The response time of a page of ``slow``, in seconds."""
_TOKEN = (
    b'{"access_token":"a-token-for-the-benchmark","token_type":"Bearer","expires_in":600,'
    b'"scope":"customer.discovery.read customer.data.read"}'
)
_PARAMETERS = re.compile(r"[?&](siteId|cursor)=([^& ]*)")


class Body(NamedTuple):
    """A body: the first ``size`` bytes of a file, then ``tail``."""

    file: int
    size: int
    tail: bytes = b""
    encoding: str = ""


class Server(ThreadingTCPServer):
    """The server, which listens until it is closed."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path) -> None:
        """Serve the pages of this folder."""
        super().__init__(("127.0.0.1", 0), _Connection)
        self._folder = folder
        self._bodies: dict[tuple[str, str, bool], Body] = {}
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def body(self, pages: str, cursor: str, zipped: bool) -> Body:
        """The body for a set of pages and a cursor; its file stays open."""
        key = (pages, cursor, zipped)
        if key not in self._bodies:
            number = int(cursor[1:])
            self._bodies[key] = self._repeated(number) if pages == "a5" else self._rendered(*key)
        return self._bodies[key]

    def _rendered(self, pages: str, cursor: str, zipped: bool) -> Body:
        if pages.startswith("gzip") and not zipped:
            pages = pages.replace("gzip-b", "b").replace("gzip", "a")
        encoding = "gzip" if pages.startswith("gzip") else ""
        path = self._folder / pages / f"{cursor[1:]}.json{'.gz' if encoding else ''}"
        return Body(os.open(path, os.O_RDONLY), path.stat().st_size, encoding=encoding)

    def _repeated(self, number: int) -> Body:
        """A page of five repetitions: with another cursor."""
        pages = self._folder / "a"
        count = len(list(pages.iterdir()))
        path = pages / f"{number % count:03d}.json"
        size = path.read_bytes().rindex(b'"nextCursor":')
        following = b'"p%03d"' % (number + 1) if number + 1 < 5 * count else b"null"
        return Body(os.open(path, os.O_RDONLY), size, b'"nextCursor":' + following + b"}")

    def server_close(self) -> None:
        """Stop listening, and close the files."""
        self.shutdown()
        super().server_close()
        for body in self._bodies.values():
            os.close(body.file)


class _Connection(StreamRequestHandler):
    server: Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while line := self.rfile.readline().decode():
                length, zipped = 0, False
                while header := self.rfile.readline().strip().lower():
                    name, _, value = header.partition(b":")
                    if name == b"content-length":
                        length = int(value)
                    elif name == b"accept-encoding":
                        zipped = b"gzip" in value
                self.rfile.read(length)
                self._answer(line, zipped)

    def _answer(self, line: str, zipped: bool) -> None:
        parameters = {"cursor": "p000"} | dict(_PARAMETERS.findall(line))
        if line.startswith("POST "):
            self._send(_TOKEN)
        elif parameters["siteId"] == "slow":
            due = time.monotonic() + DELAY
            body = _hour(line.split()[1])
            time.sleep(max(0.0, due - time.monotonic()))
            self._send(body)
        else:
            self._send_file(self.server.body(parameters["siteId"], parameters["cursor"], zipped))

    def _send(self, body: bytes) -> None:
        self.connection.sendall(_head(len(body)) + body)

    def _send_file(self, body: Body) -> None:
        head = _head(body.size + len(body.tail), body.encoding)
        self.connection.sendall(head, MSG_MORE)
        sent = 0
        while sent < body.size:
            sent += os.sendfile(self.connection.fileno(), body.file, sent, body.size - sent)
        if body.tail:
            self.connection.sendall(body.tail)


@lru_cache(maxsize=4)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


def _head(length: int, encoding: str = "") -> bytes:
    coded = f"Content-Encoding: {encoding}\r\n" if encoding else ""
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: {_date(int(time.time()))}\r\n"
        f"{coded}Content-Length: {length}\r\n\r\n"
    ).encode()


def _hour(target: str) -> bytes:
    """A page of ``slow``: the cursor is the number of the hour in the range of the query."""
    query = parse_qs(target.partition("?")[2])
    begin, to = (datetime.fromisoformat(query[name][0]).astimezone(UTC) for name in ("from", "to"))
    number = int(query.get("cursor", ["h0"])[0][1:])
    begin += timedelta(hours=number)
    stop = min(begin + timedelta(hours=1), to)
    minutes = range(int(begin.timestamp()) // 60, int(stop.timestamp()) // 60)
    envelopes = [
        envelope((("S1", "L1", "M1", "D1", f"T{tag}"), [_slow_point(tag, at) for at in minutes]))
        for tag in range(2)
    ]
    return page(envelopes, f'"h{number + 1}"' if stop < to else "null")


@lru_cache(maxsize=100_000)
def _slow_point(tag: int, minute: int) -> tuple[object, ...]:
    at = datetime.fromtimestamp(minute * 60, UTC)
    value = minute * 7919 % 1000 / 10 + tag
    return f"{at:%Y-%m-%dT%H:%M:%SZ}", value, value - 1, value + 1, minute % 60 + 1


if __name__ == "__main__":
    with Server(Path(sys.argv[1])) as running:
        print(running.server_address[1], flush=True)
        # The parent closes stdin.
        sys.stdin.read()
