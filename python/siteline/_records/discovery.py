"""The resources that the service lists as readable."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from siteline._escape import escaped
from siteline._handles import WithHtml
from siteline._keywords import explain, strict
from siteline._records.differences import DiscoveryDiff, differences


@explain
class Discovery(WithHtml, Mapping[str, Any]):
    """The body of the discovery response, unchanged.

    A mapping over the JSON object. The interface does not describe its members. ``raw`` contains
    the bytes, and ``Discovery(raw)`` restores it.

    >>> resources = client.discover()
    >>> sorted(resources) == sorted(json.loads(resources.raw))
    True
    """

    _html = "series_html.discovery"

    __module__ = "siteline.types"

    @strict
    def __init__(self, raw: bytes) -> None:
        """Parse a body: the bytes of one JSON object."""
        self._raw = bytes(raw)
        self._body: dict[str, Any] = json.loads(self._raw)

    @property
    def raw(self) -> bytes:
        """The bytes of the body."""
        return self._raw

    def diff(self, earlier: Mapping[str, Any]) -> DiscoveryDiff:
        """Return what was added, removed or changed since an earlier discovery response.

        A removed resource no longer exists or is no longer authorised. The order of members and
        items does not count.

        >>> resources = client.discover()
        >>> resources.diff(siteline.types.Discovery(resources.raw))
        <DiscoveryDiff 0 added, 0 removed, 0 changed>
        """
        return differences(dict(earlier), self._body)

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
        """List the names of the members."""
        return f"<Discovery {', '.join(map(escaped, self._body))}>"

    def __reduce__(self) -> tuple[type[Discovery], tuple[bytes]]:
        """Pickle the bytes."""
        return (type(self), (self._raw,))
