"""A day that is read page by page or point by point, and what that costs."""

import time

import siteline

NOW = "2026-11-20T00:00:00Z"
DAY = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z", "interval": "5m"}
SIZE = 1_000
WAYS = ["pages", "records"]


def until(true):
    """Another thread brings it about; it is only waited for."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def points(item):
    return len(item) if isinstance(item, siteline.Page) else 1


def take(items, pages, way):
    """So many pages, all their points where they are taken one by one."""
    return [next(items) for _ in range(pages if way == "pages" else pages * SIZE)]


class Asked:
    """A client, and the data requests of its sandbox from here on, as both count them."""

    given_up = 0
    """Iterators that were dropped on the way: each may have counted one that was never served."""

    def __init__(self, sandbox, **options):
        self.sandbox, self.client = sandbox, sandbox.client(**options)
        self.before = self._counts()

    def _counts(self):
        return self.sandbox.stats["data_requests"], self.client.allowance.used

    def __call__(self):
        seen, counted = map(int.__sub__, self._counts(), self.before)
        assert seen <= counted <= seen + max(1, self.given_up)
        return counted

    def until(self, expected):
        until(lambda: self() >= expected and self._is_settled())
        assert self() == expected

    def _is_settled(self):
        seen, counted = map(int.__sub__, self._counts(), self.before)
        return seen == counted
