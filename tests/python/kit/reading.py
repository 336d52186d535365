"""The iterators of a scan."""

import siteline

SIZE = 1_000
"""Points on a page."""
WAYS = ["pages", "records"]
"""The methods of a scan that return an iterator."""


def count_points(item):
    """Returns the number of points of an item, which is a page or a single point."""
    return len(item) if isinstance(item, siteline.Page) else 1
