"""Chains: read to an explicit null, or an error with a bookmark to resume from."""

import itertools
import json
import pickle
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
import siteline
from kit.ranges import DAY, NOW
from kit.threads import run_in_threads
from kit.waiting import wait_until

SHAPES = {
    "as the document draws it": {},
    "array named otherwise, epoch milliseconds, time first": {
        "array": "data",
        "timestamps": "epoch_ms",
        "order": "time",
    },
    "envelopes counted, epoch seconds, spaced, more members": {
        "array": "items",
        "timestamps": "epoch_s",
        "page_counts": "envelopes",
        "envelope_points": 30,
        "spaced": True,
        "extra_members": True,
    },
    "offsets, end inclusive, nulls left out, complete-number ids": {
        "timestamps": "iso_offset",
        "end_inclusive": True,
        "omit_nulls": True,
        "integer_ids": True,
    },
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_shape_of_the_service_gives_the_same_frame(shape):
    with siteline.Sandbox(seed=5, now=NOW, **shape) as sandbox:
        query = {**DAY, "site": "S1"}
        scan = sandbox.client().data(**query, page_size=100 if "page_counts" not in shape else 3)
        frame = scan.to_pandas()
        truth = sandbox.truth(**query).to_pandas()
        report = scan.collect().report
        assert report["pages"] > 3
    # Whether `to` belongs to the range is not documented: points at `to` are kept and counted.
    at_the_end = frame["timestamp"] == pd.Timestamp(DAY["end"])
    assert at_the_end.sum() == report["outside_range"]
    assert at_the_end.any() == ("end_inclusive" in shape)
    pd.testing.assert_frame_equal(frame, truth, check_exact=True)


@pytest.mark.fault("P3")
def test_a_cursor_arrives_byte_for_byte(sandbox):
    with siteline.Sandbox(now=NOW, record_wire=True) as sandbox:
        client = sandbox.client()
        nasty = "~/+=%&# ?é\u2028\x01" + "x" * 8_000
        sandbox.fault(on="data", nth=1, members={"nextCursor": nasty})
        sandbox.fault(on="data", nth=2, status=410)
        with pytest.raises(siteline.CursorRejected):
            list(client.data(**DAY, page_size=100).pages())
        target = next(text for text in sandbox.wire if "cursor=" in text).split(" ")[1]
        assert parse_qs(urlsplit(target).query, keep_blank_values=True)["cursor"] == [nasty]


@pytest.mark.fault("P7")
def test_all_other_parameters_stay_identical_along_the_chain_and_in_retries():
    with siteline.Sandbox(now=NOW, record_wire=True) as sandbox:
        client = sandbox.client()
        sandbox.fault(on="data", every=3, status=503)
        list(client.data(**DAY, page_size=100, filters={"machineId": ["M1", "M2"]}).pages())
        targets = [
            text.split(" ")[1]
            for text in sandbox.wire
            if text.startswith("GET /api/customer/v1/data")
        ]
        assert len(targets) > 6
        assert len({target.split("&cursor=")[0] for target in targets}) == 1
        # Every third request failed and was repeated unchanged.
        assert all(targets[n] == targets[n + 1] for n in range(2, len(targets) - 1, 3))


@pytest.mark.fault("P1")
@pytest.mark.parametrize(
    "fault", [{"repeat_cursor": True, "nth": 2}, {"cycle_cursors": 2, "skip": 1, "times": 99}]
)
def test_a_repeated_cursor_is_an_error_and_never_the_end(sandbox, fault):
    client = sandbox.client()
    sandbox.fault(on="data", **fault)
    with pytest.raises(siteline.CursorLoop) as caught:
        client.data(**DAY, page_size=50).to_pandas()
    assert caught.value.partial is not None
    assert client.allowance.used < 8


@pytest.mark.fault("P2")
def test_max_pages_raises_with_a_bookmark_and_never_stops_quietly(sandbox):
    client = sandbox.client()
    complete = client.data(**DAY, page_size=100).to_pandas()
    scan = client.data(**DAY, page_size=100, max_pages=2)
    with pytest.raises(siteline.QueryError, match="max_pages=2") as caught:
        scan.to_pandas()
    assert len(caught.value.partial) == 200
    rest = client.data(**DAY, page_size=100).resume(
        caught.value.bookmark, onto=caught.value.partial
    )
    assert rest.to_pandas().equals(complete)


@pytest.mark.fault("J2")
def test_a_page_without_a_cursor_is_never_treated_as_the_last():
    with siteline.Sandbox(now=NOW, omit_last_cursor=True) as sandbox:
        client = sandbox.client()
        with pytest.raises(siteline.ProtocolError, match="nextCursor"):
            client.data(**DAY, page_size=100).to_pandas()
        known = siteline.Shape(missing_cursor="end")
        frame = client.data(**DAY, page_size=100, shape=known).to_pandas()
        assert len(frame) == len(sandbox.truth(**DAY))


@pytest.mark.fault("P5")
def test_an_empty_page_with_a_cursor_is_not_the_last(sandbox):
    client = sandbox.client()
    sandbox.fault(on="data", nth=2, empty_page=True)
    frame = client.data(**DAY, page_size=100).to_pandas()
    assert len(frame) == len(sandbox.truth(**DAY))


@pytest.mark.fault("P4", "P6")
@pytest.mark.parametrize(
    ("status", "error", "word"),
    [
        (400, "CursorRejected", "cursor"),
        (410, "CursorRejected", "cursor"),
        (414, "RequestRejected", "cursor"),
        (431, "RequestRejected", "cursor"),
    ],
)
def test_a_cursor_refused_in_the_middle_of_a_chain_is_its_own_error(sandbox, status, error, word):
    client = sandbox.client()
    sandbox.fault(on="data", nth=3, status=status)
    with pytest.raises(getattr(siteline, error), match=word) as caught:
        client.data(**DAY, page_size=100).to_pandas()
    assert caught.value.status == status
    assert len(caught.value.partial) == 200


@pytest.mark.fault("P4")
def test_a_cursor_too_long_for_a_url_is_refused_before_it_leaves(sandbox):
    client = sandbox.client()
    sandbox.fault(on="data", members={"nextCursor": "x" * 66_000})
    with pytest.raises(siteline.RequestRejected, match=r"a cursor of 66000 bytes") as caught:
        client.data(**DAY, page_size=100).collect()
    assert len(caught.value.attempts) == 1
    assert caught.value.status is None
    assert "xxx" not in str(caught.value)
    assert len(caught.value.partial) == 100
    assert client.allowance.used == sandbox.stats["data_requests"] == 1


@pytest.mark.fault("P8")
def test_an_iterator_shared_by_eight_threads_returns_each_page_once(sandbox):
    client = sandbox.client()
    scan = client.data(**DAY, page_size=20)
    pages = scan.pages()
    got = run_in_threads(8, lambda: sum(len(page) for page in pages))
    assert sum(got) == len(sandbox.truth(**DAY))
    one, two = scan.pages(), scan.pages()
    assert len(next(one)) == len(next(two)) == 20


@pytest.mark.fault("P9")
def test_an_iterator_that_is_dropped_makes_no_further_request(sandbox):
    client = sandbox.client()
    pages = client.data(**DAY, page_size=100).pages()
    next(pages)
    del pages
    for record in client.data(**DAY, page_size=100).records():
        assert record["site_id"] == "S1"
        break
    assert sandbox.stats["data_requests"] == 2


@pytest.mark.fault("P12")
def test_a_bookmark_is_accepted_only_unchanged_and_for_its_own_query_and_subject(sandbox):
    client = sandbox.client()
    scan = client.data(**DAY, page_size=100)
    bookmark = next(scan.pages()).bookmark
    again = siteline.Bookmark.from_bytes(pickle.loads(pickle.dumps(bookmark)).to_bytes())
    assert again == bookmark
    assert hash(again) == hash(bookmark)
    assert len(scan.resume(again).to_pandas()) == len(sandbox.truth(**DAY)) - 100
    data = bytes(bookmark)
    for position in range(0, len(data), 7):
        edited = bytearray(data)
        edited[position] ^= 1
        with pytest.raises(siteline.BookmarkError):
            siteline.Bookmark.from_bytes(bytes(edited))
    with pytest.raises(siteline.BookmarkError, match="query"):
        client.data(**{**DAY, "interval": "1m"}, page_size=100).resume(bookmark)
    key = siteline.PrivateKey.generate(2048)
    other = siteline.Client(
        sandbox.base_url,
        clock=sandbox.clock,
        credential=siteline.Credential(sandbox.enroll(key.public_jwk), key),
    )
    with pytest.raises(siteline.BookmarkError, match="subject"):
        other.data(**DAY, page_size=100).resume(bookmark)


def test_a_resumed_read_reports_the_pages_it_does_not_hold(sandbox):
    client = sandbox.client()
    scan = client.data(**DAY, page_size=1_000)
    assert scan.collect().report["resumed_after_pages"] == 0
    pages = list(scan.pages())
    assert [page.to_pandas().attrs["siteline"]["pages"] for page in pages] == [1] * len(pages)
    bookmark = pages[1].bookmark
    table = scan.resume(bookmark).collect()
    assert len(table) == sum(map(len, pages[2:]))
    assert table.report["resumed_after_pages"] == 2
    assert table.to_pandas().attrs["siteline"]["resumed_after_pages"] == 2
    assert "after 2 that are not in it" in repr(table)
    # The missing pages are still reported after the rest failed and was resumed again.
    sandbox.fault(on="data", nth=2, status=410)
    with pytest.raises(siteline.CursorRejected) as caught:
        scan.resume(bookmark).collect()
    assert caught.value.partial.report["resumed_after_pages"] == 2
    sandbox.clear_faults()
    again = scan.resume(caught.value.bookmark, onto=caught.value.partial).collect()
    assert again.report["resumed_after_pages"] == 2
    assert again.report["pages"] == len(pages) - 2
    assert again.to_pandas().equals(table.to_pandas())


def test_a_read_is_resumed_only_with_its_own_partial_table(sandbox):
    client = sandbox.client()

    def stopped(max_pages, **change):
        with pytest.raises(siteline.QueryError) as caught:
            client.data(**{**DAY, **change}, page_size=100, max_pages=max_pages).collect()
        return caught.value

    scan = client.data(**DAY, page_size=100)
    two, four, other = stopped(2), stopped(4), stopped(2, line="L1")
    complete = scan.collect()
    # Pages 3 and 4 would be missing or outdated, or the points would belong to another query.
    for bookmark, onto in (
        (four.bookmark, two.partial),
        (two.bookmark, four.partial),
        (two.bookmark, other.partial),
        (two.bookmark, complete),
        (two.bookmark, sandbox.truth(**DAY)),
    ):
        with pytest.raises(siteline.QueryError, match="onto="):
            scan.resume(bookmark, onto=onto)
    wider = client.data(**DAY, page_size=100, extra_columns=["quality"])
    with pytest.raises(siteline.QueryError, match="extra columns"):
        wider.resume(two.bookmark, onto=two.partial)
    stored = siteline.Bookmark.from_bytes(two.bookmark.to_bytes())
    resumed = scan.resume(stored, onto=two.partial)
    assert resumed.to_pandas().equals(complete.to_pandas())


def test_every_failure_in_the_middle_of_a_chain_carries_a_bookmark_and_a_partial_table(sandbox):
    """A read ends by a status, a body, a limit, a deadline or closing."""
    complete = sandbox.client().data(**DAY, page_size=1_000).to_pandas()
    faults = {
        siteline.ServiceUnavailable: {"status": 503, "times": 9},
        siteline.CursorRejected: {"status": 410},
        siteline.ScopeError: {"status": 403, "error": "insufficient_scope"},
        siteline.RateLimited: {"status": 429, "retry_after": "600"},
        siteline.AllowanceExhausted: {"status": 429, "retry_after": "53578"},
        siteline.CursorLoop: {"repeat_cursor": True},
        siteline.ProtocolError: {"body": b'{"series": [], "nextCursor": 7}'},
        siteline.TruncatedBody: {"body": b'{"series": [', "times": 9},
        siteline.TransportError: {"cut": 0, "times": 9},
    }
    for expected, fault in faults.items():
        client = sandbox.client()
        sandbox.fault(on="data", **{"skip": 2, "times": 1, **fault})
        with pytest.raises(expected) as caught:
            client.data(**DAY, page_size=1_000).collect()
        sandbox.clear_faults()
        check_that_it_resumes(sandbox, caught.value, complete)


def test_limits_of_the_client_carry_a_bookmark_and_a_partial_table(sandbox):
    complete = sandbox.client().data(**DAY, page_size=1_000).to_pandas()
    client = sandbox.client(daily_allowance=2)
    with pytest.raises(siteline.AllowanceExhausted) as caught:
        client.data(**DAY, page_size=1_000).collect()
    check_that_it_resumes(sandbox, caught.value, complete)
    # The pauses between attempts move the sandbox's clock past the deadline.
    sandbox.fault(on="data", skip=2, times=1, status=429, retry_after="50")
    with pytest.raises(siteline.DeadlineExceeded) as caught:
        sandbox.client().data(**DAY, page_size=1_000, deadline="20s").collect()
    check_that_it_resumes(sandbox, caught.value, complete)
    client = sandbox.client()
    pages = client.data(**DAY, page_size=1_000).pages()
    bookmark = next(pages).bookmark
    client.close()
    with pytest.raises(siteline.ClosedError) as caught:
        next(pages)
    assert caught.value.bookmark == bookmark


def check_that_it_resumes(sandbox, error, complete):
    assert len(error.partial) == 2_000, error
    again = pickle.loads(pickle.dumps(error))
    assert again.bookmark == error.bookmark
    assert again.bookmark.pages == 2
    resumed = sandbox.client().data(**DAY, page_size=1_000)
    resumed = resumed.resume(again.bookmark, onto=error.partial)
    assert resumed.to_pandas().equals(complete)
    assert resumed.collect().report["resumed_after_pages"] == 0


@pytest.mark.fault("P8")
def test_threads_that_collect_at_the_same_time_share_one_read(sandbox):
    client = sandbox.client()
    scan = client.data(**DAY, page_size=500)
    tables = run_in_threads(8, scan.collect)
    assert len(tables) == 8
    assert all(table is tables[0] for table in tables)
    assert client.allowance.used == tables[0].report["pages"]


@pytest.mark.fault("P8")
def test_a_record_iterator_shared_by_eight_threads_returns_each_point_once(sandbox):
    records = sandbox.client().data(**DAY, page_size=200).records(named=True)
    got = list(itertools.chain(*run_in_threads(8, lambda: list(records))))
    assert len(got) == len(set(got)) == len(sandbox.truth(**DAY))


@pytest.mark.fault("P11", "J16")
def test_a_duplicate_point_is_kept_once_from_its_latest_page(sandbox):
    times = pd.date_range("2026-11-01", periods=10, freq="1min", tz="UTC")
    sandbox.load(
        pd.DataFrame({"timestamp": times, "value": range(10), "sample_count": 1}), bucket="1m"
    )
    client = sandbox.client()
    pages = client.data(start=times[0], end="2026-11-02T00:00Z", interval="1m", page_size=4).pages()
    first = next(pages)
    # One more point before the cursor's position: the point at the edge is sent again, revised.
    sandbox.revise("2026-10-31T23:59:00Z", 99.0)
    scan = client.data(
        start="2026-10-31T23:00Z", end="2026-11-02T00:00Z", interval="1m", page_size=4
    )
    iterator = scan.pages()
    head = next(iterator)
    sandbox.revise("2026-10-31T23:58:00Z", 98.0)
    sandbox.revise(times[2], 77.0)
    rest = list(iterator)
    again = set(head.to_pandas()["timestamp"]) & set(rest[0].to_pandas()["timestamp"])
    assert again == {times[2]}
    assert len(first) == 4


@pytest.mark.fault("P11", "J16")
def test_a_point_on_two_pages_is_in_the_table_once_from_the_later_page(sandbox):
    ids = {"siteId": "S1", "lineId": "L1", "machineId": "M1", "deviceId": "D1", "tagGuid": "T1"}

    def page(*points, cursor=None):
        points = [
            {"timestamp": f"2026-11-01T00:{minute:02}:00Z", "value": value}
            for minute, value in points
        ]
        return json.dumps({"series": [{**ids, "points": points}], "nextCursor": cursor}).encode()

    bodies = [
        page((0, 1.0), (1, 2.0), (1, 3.0), (2, 4.0), cursor="a"),
        page((2, 40.0), (3, 5.0), (4, 6.0), cursor="b"),
        page((0, 1.0), (4, 60.0)),
    ]
    for n, body in enumerate(bodies, 1):
        sandbox.fault(on="data", nth=n, status=200, body=body)
    table = sandbox.client().data(**{**DAY, "interval": "1m"}).collect()
    assert [row.value for row in table.records(named=True)] == [1.0, 3.0, 40.0, 5.0, 60.0]
    report = table.report
    assert (report["points_read"], report["points"]) == (9, 5)
    assert (report["repeated"], report["revised"]) == (1, 3)


@pytest.mark.fault("D6")
def test_tokens_forgotten_by_the_service_lose_no_point(sandbox):
    client = sandbox.client()
    sandbox.fault(on="data", every=3, forget_tokens=True)
    pages = list(client.data(**DAY, page_size=100).pages())
    assert sum(map(len, pages)) == len(sandbox.truth(**DAY))


@pytest.mark.fault("T22")
def test_a_token_that_expires_in_the_middle_of_a_chain_is_renewed_and_the_cursor_is_kept(sandbox):
    client = sandbox.client()
    expected = len(sandbox.truth(**DAY))
    complete = -(-expected // 100)
    points = 0
    for taken, page in enumerate(client.data(**DAY, page_size=100).pages(), 1):
        points += len(page)
        # The clock must not advance by minutes during a request: the one for the page that is
        # read ahead is answered first.
        answered = taken if taken == 1 else min(taken + 1, complete)
        wait_until(lambda: sum(sandbox.stats["requests"]["data"].values()) >= answered)  # noqa: B023
        sandbox.clock.advance("4m")
    assert points == expected
    assert sandbox.stats["requests"]["data"].get(401, 0) == 0
    assert sandbox.stats["token_requests"] >= 3
