"""Items of `pages()` and `records()`, and the requests that they cost."""

import siteline

from kit.waiting import wait_until

SIZE = 1_000
"""Points on a page."""
WAYS = ["pages", "records"]
"""The methods of a scan that return an iterator."""


def count_points(item):
    """The number of points of an item: a page, or one point."""
    return len(item) if isinstance(item, siteline.Page) else 1


def take(items, pages, way):
    """Take this many pages, or the points of this many pages."""
    return [next(items) for _ in range(pages if way == "pages" else pages * SIZE)]


class RequestCount:
    """A client, and its data requests since now, as it and the sandbox count them."""

    dropped = 0
    """Iterators dropped half way: each may have counted a request that was not served."""

    def __init__(self, sandbox, **options):
        self.sandbox, self.client = sandbox, sandbox.client(**options)
        self.before = self._totals()

    def _totals(self):
        return self.sandbox.stats["data_requests"], self.client.allowance.used

    def _counts(self):
        return tuple(map(int.__sub__, self._totals(), self.before))

    def __call__(self):
        served, counted = self._counts()
        assert served <= counted <= served + max(1, self.dropped)
        return counted

    def wait_for(self, expected):
        """Wait until exactly this many requests were made and served."""
        wait_until(lambda: self() >= expected and len(set(self._counts())) == 1)
        assert self() == expected
