"""The shape of the service's replies, for a service with other member names.

>>> siteline.shapes.Shape(array="items").array
'items'
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from siteline._core import _check
from siteline._discovery_shape import DiscoveryShape
from siteline._keywords import strict

__all__ = ["DiscoveryShape", "Shape"]

_IDENTITY = ("siteId", "lineId", "machineId", "deviceId", "tagGuid")


@strict
@dataclass(frozen=True, kw_only=True)
class Shape:
    """The member names and formats that the interface document does not specify.

    The defaults follow the document. siteline detects the others, and gives them in ``report`` of a
    table or page. Pass only those that you know.

    Raises:
        ConfigError: An unknown value, or two equal names of one level.

    >>> siteline.shapes.Shape(array="items", timestamp="epoch_milliseconds").array
    'items'
    """

    array: str | None = None
    """The top-level array of series. By default the one member with points in its elements."""
    timestamp: Literal["detect", "iso", "epoch_seconds", "epoch_milliseconds"] = "detect"
    """The format of timestamps. ``"detect"``: text is ISO 8601, and a number is in the unit that
    brings it nearer to the range of the query."""
    missing_cursor: Literal["error", "end"] = "error"
    """The meaning of a page without ``nextCursor``. With ``"end"`` it is the last page."""
    error_member: str = "error"
    """The top-level member that marks an error in a reply with status 200. With an ``s`` after its
    name it is a list of errors, which may be empty."""
    points: str = "points"
    """The array of points of a series."""
    next_cursor: str = "nextCursor"
    """The top-level member with the cursor of the next page."""
    identity: tuple[str, str, str, str, str] = _IDENTITY
    """The five ids of a series."""
    timestamp_member: str = "timestamp"
    """The timestamp of a point."""
    value: str = "value"
    """Its value."""
    minimum: str = "minimum"
    """Its lowest reading."""
    maximum: str = "maximum"
    """Its highest reading."""
    sample_count: str = "sampleCount"
    """Its number of readings."""
    discovery: DiscoveryShape | None = None
    """The members of a discovery response."""

    def __post_init__(self) -> None:
        """Reject wrong names."""
        identity: Any = self.identity
        if isinstance(identity, list):
            object.__setattr__(self, "identity", tuple(identity))
        _check(asdict(self), False)
