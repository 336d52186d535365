"""The dict that the report of a catalogue is."""

from typing import TypedDict

__all__: list[str] = []


class CatalogueReport(TypedDict):
    """What was found where in a discovery body: ``catalogue.report``.

    Paths are such as ``sites[].lines[].lineId``: ``[]`` stands for the items of a list, ``{}`` for
    the values of a mapping, whose names are ids.
    """

    listed: int
    """Series that discovery lists."""
    seen: int
    """Series that only data had."""
    seen_is_complete: bool
    """Whether the client remembers all series of its pages: at most 1,048,576."""
    repeated: int
    """Series that discovery lists again; the first one stands."""
    not_ended: bool
    """Whether the body has a cursor, so that it may be a part."""
    series: list[str]
    """Where the series are."""
    ids: dict[str, list[str]]
    """Where each of the five ids is, by the names of the columns."""
    names: list[str]
    """Where names are."""
    units: list[str]
    """Where units are."""
    not_recognised: list[str]
    """Members that are not in the catalogue."""
