"""A hundred pages of 50 ms each: in sequence, and concurrently."""

from __future__ import annotations

import re
import socket
from datetime import timedelta
from urllib.parse import urlsplit

from speed.connection import HEADERS
from speed.outcome import Outcome, timed
from speed.render import START
from speed.service import base_url, ours, target

PAGES, PARTS = 100, 8
STOP = START + timedelta(hours=PAGES)
_CURSOR = re.compile(rb'"nextCursor":"([^"]*)"')


def siteline() -> Outcome:
    """siteline, one chain."""
    _, scan = ours()
    table, figures = timed(lambda: scan("slow", STOP).collect())
    return Outcome(figures, table.to_pandas)


def split() -> Outcome:
    """siteline, the range in eight parts that are read concurrently, and merged."""
    client, scan = ours()
    parts = scan("slow", STOP).split(PARTS)
    gathered, figures = timed(lambda: client.gather(parts, concurrency=PARTS))
    return Outcome(figures, gathered.to_pandas)


def bare() -> Outcome:
    """A socket in a loop: it searches for the cursor, and decodes nothing."""
    place = urlsplit(base_url())
    wire = socket.create_connection((place.hostname or "", place.port or 0))
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    headers = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    rest = f" HTTP/1.1\r\nHost: {place.netloc}\r\n{headers}\r\n".encode()

    def get(path: bytes) -> bytes:
        wire.sendall(b"GET " + path + rest)
        read = wire.recv(65536)
        while b"\r\n\r\n" not in read:
            read += wire.recv(65536)
        head, _, body = read.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(body) < length:
            body += wire.recv(65536)
        return body

    def work() -> list[bytes]:
        first = path = target("slow", STOP).encode()
        bodies = []
        while True:
            bodies.append(get(path))
            cursor = _CURSOR.search(bodies[-1])
            if cursor is None:
                return bodies
            path = first + b"&cursor=" + cursor[1]

    get(target("tiny").encode())
    with wire:
        bodies, figures = timed(work)
    return Outcome(figures, lambda: {"rows": sum(body.count(b'"timestamp"') for body in bodies)})
