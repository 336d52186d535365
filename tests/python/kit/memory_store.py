"""A `siteline.targets.StoreTarget` in memory."""

import contextlib
import threading


class MemoryStore:
    """Stores the values of each point, the newest page that contained it, and if it is missing.

    A complete read withdraws the points that it no longer contains. With `renews_all=False` the
    store behaves as siteline's targets: a whole page does not change the page numbers of unchanged
    points.
    """

    def __init__(self, batch=None, *, renews_all=True):
        self.batch, self.renews_all = batch, renews_all
        self.rows, self.states, self.pages, self.threads = {}, {}, [], set()

    def state(self, feed):
        self.threads.add(threading.get_ident())
        return self.states.get(feed)

    def apply(self, feed, page, state):
        self.threads.add(threading.get_ident())
        rows, brought, inserted, revised, withdrawn = dict(self.rows), set(), 0, 0, 0
        renews = self.renews_all or page is None or not page.is_whole
        for record in page.records() if page is not None else ():
            key, values = (feed, *tuple(record.values())[:6]), tuple(record.values())[6:]
            known, newest, is_flagged = rows.get(key, (None, 0, False))
            brought.add(key)
            if page.sequence >= newest and (renews or known != values or is_flagged):
                inserted += known is None
                revised += known is not None and (known != values or is_flagged)
                rows[key] = (values, page.sequence, False)
        if page is not None and page.is_last:
            for key, (values, newest, is_flagged) in rows.items():
                is_in_range = key[0] == feed and page.query.start <= key[6] < page.query.end
                is_missing = newest < page.first_sequence and key not in brought
                if is_in_range and is_missing and not is_flagged:
                    rows[key] = (values, newest, True)
                    withdrawn += 1
        if page is not None:
            self.pages.append(page)
        # No later statement can fail, so both are stored or neither is.
        self.rows, self.states[feed] = rows, state
        unchanged = (0 if page is None else len(page)) - inserted - revised
        return inserted, revised, unchanged, withdrawn

    @property
    def sequences(self):
        """The numbers of the page requests that brought the pages."""
        return [page.sequence for page in self.pages]

    def points(self, feed="line-2", *, withdrawn=None):
        """Returns the points of a feed: ids and timestamp -> the four numbers."""
        rows = {key[1:]: row for key, row in self.rows.items() if key[0] == feed}
        return {key: row[0] for key, row in rows.items() if withdrawn in (None, row[2])}


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
