"""The dict that the report of a scan is."""

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
