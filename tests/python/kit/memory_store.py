"""A `siteline.targets.StoreTarget` in memory."""

import contextlib
import threading


class MemoryStore:
    """Stores each point with the number of the page request that brought it."""

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
        # No later statement can fail, so both are stored or neither is.
        self.rows, self.states[feed] = rows, state
        return inserted, revised, unchanged

    def points(self, feed="line-2"):
        """Returns the points of a feed: ids and timestamp -> the four numbers."""
        return {key[1:]: values for key, (_, values) in self.rows.items() if key[0] == feed}


class LockedStore(MemoryStore):
    """Records when feeds are locked and unlocked."""

    def __init__(self):
        super().__init__()
        self.locks = []

    @contextlib.contextmanager
    def lock(self, feed):
        self.locks.append(f"+{feed}")
        # Without `finally`: collecting a generator as garbage does not count as an exit.
        yield
        self.locks.append(f"-{feed}")
