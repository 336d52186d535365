"""What the service says may be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Discovery"]


class Discovery(Mapping[str, Any]):
    """The body of the discovery response, as it came (§4.2).

    A mapping over the whole JSON object; its fields are the service's own, for the interface shows
    none of them. ``.raw`` keeps the bytes.

    >>> resources = client.discover()
    >>> sorted(resources) == sorted(json.loads(resources.raw))
    True
    """

    __slots__ = ("_body", "_raw")

    def __init__(self, raw: bytes) -> None:
        """Parse the body; the client has checked that it is one JSON object."""
        self._raw = bytes(raw)
        self._body: dict[str, Any] = json.loads(self._raw)

    @property
    def raw(self) -> bytes:
        """The body as it came."""
        return self._raw

    def __getitem__(self, name: str) -> Any:
        """Return one top-level member."""
        return self._body[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the top-level members."""
        return iter(self._body)

    def __len__(self) -> int:
        """Count the top-level members."""
        return len(self._body)

    def __repr__(self) -> str:
        """Name the members, not their contents."""
        return f"<Discovery {', '.join(self._body)}>"
