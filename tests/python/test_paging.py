"""Chains: read to an explicit null, or an error with a bookmark to resume from."""

import dataclasses
import itertools
import pickle

import pandas as pd
import pytest
import siteline
from kit.keys import private_key
from kit.ranges import DAY, NOW
from kit.threads import run_in_threads
from siteline.testing import Variant

VARIANTS = [
    Variant(page_counts="envelopes", envelope_points=30, timestamps="epoch_s", extra_members=True),
    Variant(array="items", order="time", timestamps="epoch_ms", spaced=True),
    Variant(timestamps="iso_offset", end_inclusive=True, omit_nulls=True, integer_ids=True),
    Variant(timestamps="iso_fraction"),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_every_variant_of_the_service_gives_the_same_frame(variant):
    with siteline.Sandbox(seed=5, now=NOW, variant=variant) as sandbox:
        query = {**DAY, "site": "S1"}
        scan = sandbox.client(labels=False).scan(
            **query, page_size=100 if variant.page_counts == "points" else 3
        )
        frame = scan.to_pandas()
        truth = sandbox.expected(**query).to_pandas()
        report = scan.collect().report
        assert report.pages > 3
    # Whether `to` belongs to the range is not documented: points at `to` are kept and counted.
    at_the_end = frame["timestamp"] == pd.Timestamp(DAY["end"])
    assert at_the_end.sum() == report.outside_range
    assert at_the_end.any() == variant.end_inclusive
    pd.testing.assert_frame_equal(frame, truth, check_exact=True)


def test_a_bookmark_is_accepted_only_unchanged_and_for_its_own_query_and_subject(sandbox):
    client = sandbox.client(labels=False)
    scan = client.scan(**DAY, page_size=100)
    bookmark = next(scan.pages()).bookmark
    again = siteline.types.Bookmark.from_bytes(pickle.loads(pickle.dumps(bookmark)).to_bytes())
    assert again == bookmark
    assert hash(again) == hash(bookmark)
    # dataclasses.asdict() would return the cursor.
    assert not dataclasses.is_dataclass(bookmark)
    with pytest.raises(AttributeError, match="read-only"):
        bookmark.pages = 3
    assert len(scan.resume(again).to_pandas()) == len(sandbox.expected(**DAY)) - 100
    data = bytes(bookmark)
    with pytest.raises(siteline.errors.BookmarkError):
        siteline.types.Bookmark.from_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(siteline.errors.BookmarkError, match="query"):
        client.scan(**{**DAY, "interval": "1m"}, page_size=100).resume(bookmark)
    key = private_key()
    other = siteline.Client(
        sandbox.base_url,
        clock=sandbox.clock,
        credential=siteline.Credential(sandbox.enroll(key.public_jwk), key),
    )
    with pytest.raises(siteline.errors.BookmarkError, match="subject"):
        other.scan(**DAY, page_size=100).resume(bookmark)


def test_a_read_is_resumed_only_with_its_own_partial_table(sandbox):
    client = sandbox.client(labels=False)

    def stopped(max_pages, **change):
        with pytest.raises(siteline.errors.PageLimitReached) as caught:
            client.scan(**{**DAY, **change}, page_size=100, max_pages=max_pages).collect()
        return caught.value

    scan = client.scan(**DAY, page_size=100)
    two, four, other = stopped(2), stopped(4), stopped(2, line="L1")
    complete = scan.collect()
    # Pages 3 and 4 would be missing or outdated, or the points would belong to another query.
    for bookmark, onto in (
        (four.bookmark, two.partial),
        (two.bookmark, four.partial),
        (two.bookmark, other.partial),
        (two.bookmark, complete),
        (two.bookmark, sandbox.expected(**DAY)),
    ):
        with pytest.raises(siteline.errors.QueryError, match="onto="):
            scan.resume(bookmark, onto=onto)
    wider = client.scan(**DAY, page_size=100, extra_columns=["quality"])
    with pytest.raises(siteline.errors.QueryError, match="extra columns"):
        wider.resume(two.bookmark, onto=two.partial)
    stored = siteline.types.Bookmark.from_bytes(two.bookmark.to_bytes())
    resumed = scan.resume(stored, onto=two.partial)
    assert resumed.to_pandas().equals(complete.to_pandas())


def test_every_failure_in_the_middle_of_a_chain_carries_a_bookmark_and_a_partial_table(sandbox):
    """A read ends by a status, a body, a limit, a deadline or closing."""
    complete = sandbox.client(labels=False).scan(**DAY, page_size=1_000).to_pandas()
    faults = {
        siteline.errors.ServiceUnavailable: {"status": 503, "times": 9},
        siteline.errors.CursorRejected: {"status": 410},
        siteline.errors.ScopeError: {"status": 403, "error": "insufficient_scope"},
        siteline.errors.RateLimited: {"status": 429, "retry_after": "600"},
        siteline.errors.AllowanceExhausted: {"status": 429, "retry_after": "53578"},
        siteline.errors.CursorLoop: {"repeat_cursor": True},
        siteline.errors.ProtocolError: {"body": b'{"series": [], "nextCursor": 7}'},
        siteline.errors.TruncatedBody: {"body": b'{"series": [', "times": 9},
        siteline.errors.TransportError: {"cut": 0, "times": 9},
    }
    for expected, fault in faults.items():
        client = sandbox.client(labels=False)
        sandbox.fault(on="data", **{"skip": 2, "times": 1, **fault})
        with pytest.raises(expected) as caught:
            client.scan(**DAY, page_size=1_000).collect()
        sandbox.clear_faults()
        error = caught.value
        assert len(error.partial) == 2_000, error
        bookmark = pickle.loads(pickle.dumps(error.bookmark))
        assert bookmark == error.bookmark
        assert bookmark.pages == 2
        resumed = sandbox.client(labels=False).scan(**DAY, page_size=1_000)
        resumed = resumed.resume(bookmark, onto=error.partial)
        assert resumed.to_pandas().equals(complete)
        assert resumed.collect().report.resumed_after_pages == 0


def test_a_record_iterator_shared_by_eight_threads_returns_each_point_once(sandbox):
    records = sandbox.client(labels=False).scan(**DAY, page_size=200).records(named=True)
    got = list(itertools.chain(*run_in_threads(8, lambda: list(records))))
    assert len(got) == len(set(got)) == len(sandbox.expected(**DAY))
