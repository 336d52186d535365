"""A state machine drives a client and the sandbox, and compares them with a model.

A read returns exactly the points of the model, or raises a typed error with a bookmark that
continues it.
"""

import pytest
import siteline
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from kit.examples import examples

pytestmark = pytest.mark.once

LINE = {"site": "S1", "line": "L1", "interval": "1h", "start": "2026-11-17"}
DAYS = ("2026-11-18", "2026-11-19")
NOW = "2026-11-20T12:00Z"
FAULTS = {
    "unavailable": {"status": 503},
    "throttled": {"status": 429, "retry_after": 3},
    "used up": {"status": 429, "retry_after": 20_000},
    "unauthorized": {"status": 401},
    "not allowed": {"status": 403},
    "cut": {"cut": 40},
    "reset": {"reset": True},
    "another service": {"body": "<html>log in</html>"},
    "not a page": {"on": "data", "drop": ["nextCursor"]},
    "no date": {"headers": {"Date": None}},
    "an hour ahead": {"headers": {"Date": "Fri, 20 Nov 2026 13:00:00 GMT"}},
    "the same cursor": {"on": "data", "repeat_cursor": True},
    "tokens forgotten": {"forget_tokens": True},
    "cursors forgotten": {"on": "data", "forget_cursors": True},
}
TYPED = (
    siteline.errors.AllowanceExhausted,
    siteline.errors.AuthenticationError,
    siteline.errors.ClockSkewError,
    siteline.errors.CursorLoop,
    siteline.errors.CursorRejected,
    siteline.errors.ProtocolError,
    siteline.errors.RateLimited,
    siteline.errors.RequestRejected,
    siteline.errors.ScopeError,
    siteline.errors.ServiceUnavailable,
    siteline.errors.TransportError,
    siteline.errors.TruncatedBody,
)


def rows(table):
    return [tuple(record) for record in table.records(named=True)]


class Chain(RuleBasedStateMachine):
    """One query at a time: its pages are taken, fail, are resumed or collected.

    Waits have jitter, which hypothesis does not know. So no rule has a precondition: one that
    cannot be followed does nothing.
    """

    @initialize(
        order=st.sampled_from(["series", "time"]),
        envelopes=st.booleans(),
        allowance=st.sampled_from([None, 9]),
    )
    def start(self, order, envelopes, allowance):
        counts = {"page_counts": "envelopes", "envelope_points": 7} if envelopes else {}
        self.sandbox = siteline.Sandbox(
            now=NOW,
            late=False,
            daily_allowance=allowance,
            token_rate=1_000,
            variant=siteline.testing.Variant(order=order, **counts),
        )
        self.client = self.sandbox.client()
        # Otherwise the truth has another order than the pages.
        self.in_order = order == "series" and not envelopes
        self.scan = self.pages = self.error = None
        self.read = []

    def teardown(self):
        self.sandbox.close()

    @rule(
        on=st.sampled_from(["data", "data", "token"]),
        name=st.sampled_from(sorted(FAULTS)),
        times=st.integers(1, 5),
        skip=st.integers(0, 4),
    )
    def fault(self, on, name, times, skip):
        self.sandbox.fault(**{"on": on, "times": times, "skip": skip, **FAULTS[name]})

    @rule(minutes=st.integers(1, 700))
    def pass_time(self, minutes):
        self.sandbox.clock.advance(60 * minutes)

    @rule()
    def another_process(self):
        self.client = self.sandbox.client()

    @rule(end=st.sampled_from(DAYS), page_size=st.integers(1, 60))
    def begin(self, end, page_size):
        self.query = {**LINE, "end": end}
        self.model = rows(self.sandbox.expected(**self.query))
        self.scan = self.client.scan(**self.query, page_size=page_size)
        self.pages = self.scan.pages()
        self.read, self.error = [], None

    @rule(count=st.integers(1, 8))
    def take(self, count):
        for _ in range(count if self.pages else 0):
            try:
                page = next(self.pages, None)
            except TYPED as error:
                self.fail(error)
                return
            if page is None:
                self.compare(self.read, len(self.model))
                self.pages = None
                return
            self.read += rows(page)
            self.compare(self.read, len(self.read))

    @rule(clear=st.booleans())
    def resume(self, clear):
        if clear:
            self.sandbox.clear_faults()
        if self.error is None:
            return
        error, self.error = self.error, None
        scan = self.client.scan(**self.query, page_size=self.scan.query.page_size)
        bookmark = error.bookmark
        self.scan = scan if bookmark is None else scan.resume(bookmark)
        if bookmark is None:
            self.read = []
        self.pages = self.scan.pages()

    @rule()
    def resume_onto_what_was_read(self):
        """Reads the rest and merges it with the partial table."""
        if self.error is None:
            return
        bookmark, partial = self.error.bookmark, self.error.partial
        if bookmark is None or partial is None:
            return
        again = self.client.scan(**self.query, page_size=self.scan.query.page_size)
        self.collect(again.resume(bookmark, onto=partial))

    @rule()
    def collect_anew(self):
        if self.scan is None:
            return
        self.collect(self.client.scan(**self.query, page_size=self.scan.query.page_size))

    def collect(self, scan):
        self.pages, self.error, self.read = None, None, []
        try:
            table = scan.collect()
        except TYPED as error:
            self.fail(error)
            if error.partial is not None:
                self.read = rows(error.partial)
                self.compare(self.read, len(self.read))
            return
        self.compare(rows(table), len(self.model))

    def compare(self, found, count):
        """The points are this number of points of the model, none twice."""
        assert len(found) == count == len(set(found))
        if self.in_order:
            assert found == self.model[:count]
        assert set(found) <= set(self.model)

    def fail(self, error):
        """An error: the points before its bookmark have been read."""
        self.pages, self.error = None, error
        if isinstance(error, siteline.errors.CursorRejected):
            # The service has forgotten the position: only a new chain helps.
            self.error = self.scan = None
        elif error.bookmark is None:
            assert self.read == []


def test_a_chain_gives_exactly_what_the_model_says_or_an_error_to_resume_from():
    machine = Chain.TestCase
    machine.settings = settings(
        max_examples=examples(20, 150),
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    machine("runTest").runTest()
