"""A store of one's own, as small as it can be: two dicts. See `siteline.StoreTarget`."""

from __future__ import annotations

import contextlib
import threading

IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid", "timestamp"]
FEED = {"site": "S1", "line": "L2", "interval": "5m", "since": "2026-11-15T00:00Z"}


class MemoryStore:
    """Keeps each point with the number of the page request that brought it."""

    def __init__(self):
        self.rows, self.states, self.pages, self.threads = {}, {}, [], set()

    def state(self, feed):
        self.threads.add(threading.get_ident())
        return self.states.get(feed)

    def apply(self, feed, page, state):
        self.threads.add(threading.get_ident())
        inserted = revised = unchanged = 0
        rows = dict(self.rows)
        for record in page.records() if page is not None else ():
            key = (feed, *tuple(record.values())[:6])
            values = tuple(record.values())[6:]
            version, known = rows.get(key, (0, None))
            if page.sequence < version or known == values:
                unchanged += 1
                continue
            inserted, revised = inserted + (known is None), revised + (known is not None)
            rows[key] = (page.sequence, values)
        if page is not None:
            self.pages.append((page.sequence, page.is_last, page.query))
        # Both or neither: from here on nothing can fail.
        self.rows, self.states[feed] = rows, state
        return inserted, revised, unchanged

    def points(self, feed="line-2"):
        """The points of a feed: ids and timestamp, then the four numbers."""
        return {key[1:]: values for key, (_, values) in self.rows.items() if key[0] == feed}


class LockedStore(MemoryStore):
    """Says which feed is held, and when."""

    def __init__(self):
        super().__init__()
        self.held = []

    @contextlib.contextmanager
    def lock(self, feed):
        self.held.append(f"+{feed}")
        try:
            yield
        finally:
            self.held.append(f"-{feed}")


def truth(sandbox, end, **options):
    """What the service knows now, in the same form."""
    asked = {"site": "S1", "line": "L2", "interval": "5m", "start": "2026-11-15T00:00Z"}
    table = sandbox.truth(**{**asked, **options}, end=end)
    return {tuple(row.values())[:6]: tuple(row.values())[6:] for row in table.records()}
