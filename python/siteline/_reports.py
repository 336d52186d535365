"""The dicts that the reports of scans and catalogues are."""

from typing import Literal, TypedDict

__all__: list[str] = []


class ScanReport(TypedDict):
    """:attr:`Scan.report`: what in a query may mean something else than it seems.

    - ``bounds_off_grid``: ``"start"``, ``"end"``: the bounds that lie within a bucket, so that the
      buckets given do not begin or end there. The grid is the multiples of the interval in UTC
    - ``not_listed``: ids of the query that the service does not list, such as ``'line "L9"'``, by
      the newest ``discover()`` of the client; empty before it, and where its body, which the
      interface does not show (§4.2), has no ids that siteline recognises
    """

    bounds_off_grid: list[Literal["start", "end"]]
    """The bounds that lie within a bucket."""
    not_listed: list[str]
    """Ids of the query that the service does not list."""


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
