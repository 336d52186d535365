"""A chain read with the standard library: one connection, kept alive."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from typing import TypeVar
from urllib.parse import quote, urlsplit

from speed.service import base_url, target

HEADERS = {"Authorization": "Bearer a-token-for-the-benchmark", "Accept": "application/json"}

Decoded = TypeVar("Decoded")


class Connection:
    """A connection that is open from the start: it has read the tiny page."""

    def __init__(self, **headers: str) -> None:
        """Connect; ``headers`` are sent in addition."""
        place = urlsplit(base_url())
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port)
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
