"""The service of the benchmark, on loopback: ``python -m speed.server FOLDER`` prints its port.

It answers with rendered pages at little cost: sendfile copies them into the socket. Each connection
has a thread; HTTP/1.1, kept alive. ``siteId`` of a query names the set of pages. ``slow`` is not
rendered: an hour of the query's range on each page, answered after 50 ms.

Any assertion gets a token (§4.1); the token is not checked.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from datetime import datetime, timedelta
from email.utils import formatdate
from functools import lru_cache
from pathlib import Path
from socket import MSG_MORE
from socketserver import StreamRequestHandler, ThreadingTCPServer
from urllib.parse import parse_qs

from speed.render import envelope, page

DELAY = 0.05
"""The response time of a page of ``slow``, in seconds."""
_TOKEN = (
    b'{"access_token":"a-token-for-the-benchmark","token_type":"Bearer","expires_in":600,'
    b'"scope":"customer.discovery.read customer.data.read"}'
)
_PARAMETERS = re.compile(r"[?&](siteId|cursor)=([^& ]*)")


class Server(ThreadingTCPServer):
    """The server, which listens until it is closed."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path) -> None:
        """Serve the pages of this folder."""
        super().__init__(("127.0.0.1", 0), _Connection)
        self.folder = folder
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self) -> None:
        """Stop listening."""
        self.shutdown()
        super().server_close()


class _Connection(StreamRequestHandler):
    server: Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while line := self.rfile.readline().decode():
                length = 0
                while header := self.rfile.readline().strip().lower():
                    if header.startswith(b"content-length:"):
                        length = int(header[15:])
                self.rfile.read(length)
                self._answer(line)

    def _answer(self, line: str) -> None:
        parameters = {"cursor": "p000"} | dict(_PARAMETERS.findall(line))
        if line.startswith("POST "):
            self.connection.sendall(_head(len(_TOKEN)) + _TOKEN)
        elif parameters["siteId"] == "slow":
            due = time.monotonic() + DELAY
            body = _hour(line.split()[1])
            time.sleep(max(0.0, due - time.monotonic()))
            self.connection.sendall(_head(len(body)) + body)
        else:
            zipped = parameters["siteId"].startswith("gzip")
            name = f"{parameters['cursor'][1:]}.json{'.gz' if zipped else ''}"
            with (self.server.folder / parameters["siteId"] / name).open("rb") as file:
                size = file.seek(0, 2)
                self.connection.sendall(_head(size, zipped), MSG_MORE)
                self.connection.sendfile(file, 0)


@lru_cache(maxsize=4)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


def _head(length: int, zipped: bool = False) -> bytes:
    coded = "Content-Encoding: gzip\r\n" if zipped else ""
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: {_date(int(time.time()))}\r\n"
        f"{coded}Content-Length: {length}\r\n\r\n"
    ).encode()


def _hour(target: str) -> bytes:
    """A page of ``slow``: the cursor is the number of the hour in the range of the query."""
    query = parse_qs(target.partition("?")[2])
    begin, to = (datetime.fromisoformat(query[name][0]) for name in ("from", "to"))
    number = int(query.get("cursor", ["h0"])[0][1:])
    begin += timedelta(hours=number)
    minutes = min(60, (to - begin) // timedelta(minutes=1))
    times = (begin + timedelta(minutes=minute) for minute in range(minutes))
    points = [(f"{at:%Y-%m-%dT%H:%M:%SZ}", at.minute / 8, 0, 8, at.minute + 1) for at in times]
    envelopes = [envelope((("S1", "L1", "M1", "D1", tag), points)) for tag in ("T0", "T1")]
    return page(envelopes, f'"h{number + 1}"' if begin + timedelta(hours=1) < to else "null")


if __name__ == "__main__":
    with Server(Path(sys.argv[1])) as running:
        print(running.server_address[1], flush=True)
        # The parent closes stdin.
        sys.stdin.read()
