"""The resources that the service lists as readable."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Discovery"]


class Discovery(Mapping[str, Any]):
    """The body of the discovery response, unchanged (§4.2).

    A mapping over the complete JSON object. The interface does not describe its members. ``.raw``
    has the bytes.

    >>> resources = client.discover()
    >>> sorted(resources) == sorted(json.loads(resources.raw))
    True
    """

    __slots__ = ("_body", "_raw")

    def __init__(self, raw: bytes) -> None:
        """Parse the body, which the client has checked to be one JSON object."""
        self._raw = bytes(raw)
        self._body: dict[str, Any] = json.loads(self._raw)

    @property
    def raw(self) -> bytes:
        """The bytes of the body."""
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
        """List the names of the members, without their values."""
        return f"<Discovery {', '.join(self._body)}>"
