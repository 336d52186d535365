"""Takes items from `pages()` and `records()`, and counts their requests."""

import siteline

from kit.waiting import wait_until

SIZE = 1_000
"""Points on a page."""
WAYS = ["pages", "records"]
"""The methods of a scan that return an iterator."""


def count_points(item):
    """Returns the number of points of an item, which is a page or a single point."""
    return len(item) if isinstance(item, siteline.Page) else 1


def take(items, pages, way):
    """Takes `pages` pages, or the points of as many pages."""
    return [next(items) for _ in range(pages if way == "pages" else pages * SIZE)]


class RequestCount:
    """Counts the data requests of a new client, in the client and in the sandbox."""

    dropped = 0
    """Number of iterators that were dropped early. Each may have counted an unserved request."""

    def __init__(self, sandbox, **options):
        self.sandbox, self.client = sandbox, sandbox.client(**options)
        self.before = self._totals()

    def _totals(self):
        return self.sandbox.stats.data_requests, self.client.allowance.used

    def _counts(self):
        return tuple(map(int.__sub__, self._totals(), self.before))

    def __call__(self):
        served, counted = self._counts()
        assert served <= counted <= served + max(1, self.dropped)
        return counted

    def wait_for(self, expected):
        """Waits until exactly this number of requests was made and served."""
        wait_until(lambda: self() >= expected and len(set(self._counts())) == 1)
        assert self() == expected
