"""The service of the benchmark for candidates: its URL, requests, and a connection to it."""

from __future__ import annotations

import http.client
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import siteline

from speed.render import START, end

IDS = ("siteId", "lineId", "machineId", "deviceId", "tagGuid")
KEY = ("site_id", "line_id", "machine_id", "device_id", "tag_guid", "timestamp")
VALUES = ("value", "minimum", "maximum", "sample_count")
COLUMNS = KEY + VALUES
PATH = "/api/customer/v1/data"
HEADERS = {"Authorization": "Bearer a-token-for-the-benchmark", "Accept": "application/json"}
Decoded = TypeVar("Decoded")


def base_url() -> str:
    """The base URL of the server."""
    return os.environ["SPEED_SERVER"]


def built() -> Path:
    """The folder of builds: pages, the wheel, the loops in Rust."""
    return Path(os.environ["SPEED_TARGET"])


def parameters(pages: str, stop: datetime | None = None) -> dict[str, str]:
    """The query of a chain's first request."""
    return {
        "siteId": pages,
        "from": f"{START:%Y-%m-%dT%H:%M:%SZ}",
        "to": f"{stop or end():%Y-%m-%dT%H:%M:%SZ}",
        "aggregationIntervalSeconds": "60",
        "pageSize": "10000",
    }


def target(pages: str, stop: datetime | None = None) -> str:
    """Path and query of a chain's first request, as siteline would send them."""
    return f"{PATH}?{urlencode(parameters(pages, stop))}"


def query(pages: str, stop: datetime | None = None) -> dict[str, Any]:
    """The same as arguments of ``Client.scan``."""
    start, stop = START, stop or end()
    return {"site": pages, "start": start, "end": stop, "interval": 60, "page_size": 10_000}


def credential() -> siteline.Credential:
    """The credential of siteline's clients."""
    return siteline.Credential("bench", built() / "bench-pages" / "key.pem")


def ours() -> tuple[Any, Callable[..., Any]]:
    """A client with a token and an open connection, and a function that scans a set of pages."""
    client = siteline.Client(base_url(), credential=credential(), labels=False)

    def scan(pages: str, stop: datetime | None = None) -> Any:
        return client.scan(**query(pages, stop))

    if len(scan("tiny").collect()) != 10:
        raise RuntimeError("the tiny page does not have 10 points")
    return client, scan


class Connection:
    """A kept connection of the standard library, open from the start: it has read the tiny page."""

    def __init__(self, **headers: str) -> None:
        """Connect; ``headers`` are sent in addition."""
        self._connection = http.client.HTTPConnection(urlsplit(base_url()).netloc)
        self._headers = HEADERS | headers
        self.get(target("tiny"))

    def get(self, path: str) -> bytes:
        """One body, not decoded; read by its Content-Length, in one call."""
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"the server answered {response.status}")
        return body

    def pages(
        self, pages: str, decode: Callable[[bytes], tuple[str | None, Decoded]]
    ) -> Iterator[Decoded]:
        """Every page of a chain, decoded; ``decode`` returns the next cursor and the content."""
        path = first = target(pages)
        while True:
            cursor, decoded = decode(self.get(path))
            yield decoded
            if cursor is None:
                return
            path = f"{first}&cursor={quote(cursor)}"


def output(*command: str | Path, **options: Any) -> str:
    """What a program prints; raises if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stderr[-2000:]}")
    return str(done.stdout)
