"""A `StoreTarget` in memory that flags points that a complete read no longer contains."""


class FlaggingStore:
    """Stores the values of each point, the newest page that contained it, and a flag.

    With `renews_all=False` it behaves as siteline's targets: a whole page does not change the page
    numbers of unchanged points.
    """

    def __init__(self, *, renews_all=True):
        self.renews_all = renews_all
        self.rows, self.states = {}, {}

    def state(self, feed):
        return self.states.get(feed)

    def apply(self, feed, page, state):
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
        self.rows, self.states[feed] = rows, state
        unchanged = (0 if page is None else len(page)) - inserted - revised
        return inserted, revised, unchanged, withdrawn

    def points(self, feed="line-2", *, withdrawn=None):
        """Returns the points of a feed: ids and timestamp -> the four numbers."""
        rows = {key[1:]: row for key, row in self.rows.items() if key[0] == feed}
        return {key: row[0] for key, row in rows.items() if withdrawn in (None, row[2])}
