"""Points of feeds as a resource of dlt: ``pip install 'siteline[dlt]'``.

:func:`points` returns :class:`Points`, which a pipeline loads into any destination of dlt that can
merge. Late data, revisions and the allowance work as with :meth:`siteline.Client.sync`.

>>> import dlt
>>> import siteline.dlt
>>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start="2026-11-15T00:00Z")
>>> points = siteline.dlt.points(client, feed)
>>> info = dlt.pipeline("plant", destination="duckdb").run(points)
>>> points.report.complete
True
"""

from siteline.dlt._points import Points, points

__all__ = ["Points", "points"]
