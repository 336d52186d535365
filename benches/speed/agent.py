"""What a client waits for its agent: a lease over a socket of the machine."""

from __future__ import annotations

import json
import socket
import statistics
import tempfile
import time

import siteline

from speed.outcome import Figures

LEASES = 1_000
PAGES = 4
"""Pages of each, between the one of a short process and the sixteen of a long read."""


def lease() -> Figures:
    """Take the median of a thousand: a token, and pages that a ledger in a file counts."""
    with tempfile.TemporaryDirectory() as folder, siteline.Sandbox() as sandbox:
        client = sandbox.client(ledger=f"{folder}/ledger.txt")
        with siteline.Agent(client) as agent:
            place, base_url, subject = agent.address.split("#")
            path = place.removeprefix("unix:")
            body = {"base_url": base_url, "subject": subject, "scopes": agent.state["scopes"]}
            wanted = json.dumps({**body, "pages": PAGES, "must_remain": 0, "reports": []})
            request = _request(wanted)
            seconds = [_asked(path, request) for _ in range(LEASES)]
            granted = agent.state["lent"]
    if granted != LEASES * PAGES:
        raise RuntimeError(f"{granted} pages were granted")
    return {"milliseconds": statistics.median(seconds) * 1e3}


def _request(body: str) -> bytes:
    head = "POST /v1/lease HTTP/1.1\r\nhost: siteline-agent\r\nsiteline-agent: 1\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


def _asked(path: str, request: bytes) -> float:
    # The socket alone: http.client takes a tenth of a millisecond for itself.
    started = time.perf_counter()
    answer = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(request)
        while more := connection.recv(65_536):
            answer += more
    taken = time.perf_counter() - started
    if b'"token"' not in answer:
        raise RuntimeError("no token")
    return taken
