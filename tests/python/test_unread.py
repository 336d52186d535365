"""Reads of a store never omit points silently: unread ranges are errors or warnings."""

import pickle
import random
import warnings
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
import siteline
from kit.feeds import make_feed, rows_by_key, stored_points, true_points
from kit.ranges import NOW

SINCE = datetime(2026, 11, 15, tzinfo=UTC)
NEWEST = datetime(2026, 11, 19, 23, 55, tzinfo=UTC)
HOURS = timedelta(hours=1)


def day(number, days=1):
    start = datetime(2026, 11, number, tzinfo=UTC)
    return start, start + timedelta(days=days)


def iso(*times):
    return [time.isoformat().replace("+00:00", "Z") for time in times]


@pytest.fixture(scope="module")
def partial(tmp_path_factory):
    """A store. The allowance ended during the sync, in the chain of 16 November."""
    path = tmp_path_factory.mktemp("unread") / "plant.siteline"
    feed = make_feed(page_size=100)
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path) as store:
        report = sandbox.client(daily_allowance=40).sync(feed, store)
        assert not report.complete
        yield sandbox, store, report


@pytest.fixture
def store(partial):
    return partial[1]


def is_read(store, start, end):
    """Returns whether the coverage contains the whole range."""
    windows = store.coverage("line-2", now=NEWEST + HOURS)
    unread = [one for one in windows if one.state == "unread"]
    return (
        start >= SINCE
        and end <= NEWEST
        and not any(w.start < end and start < w.end for w in unread)
    )


def test_no_named_range_gives_fewer_points_than_the_service_has(partial):
    sandbox, store, _ = partial
    true = true_points(sandbox, NEWEST)
    draw = random.Random(7)
    outcomes = {"equal": 0, "error": 0, "cut": 0}
    for _ in range(150):
        start = SINCE + HOURS * draw.randrange(-30, 150)
        end = start + HOURS * draw.randrange(1, 60)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                given = stored_points(store, "line-2", start, end)
            except siteline.errors.UnreadRange as error:
                spans, given = error.spans, None
        if given is None:
            assert not is_read(store, start, min(end, max(NEWEST, start)))
            assert spans
            assert all(start <= one < other <= end for one, other in spans)
            outcomes["error"] += 1
            continue
        expected = {key: row for key, row in true.items() if start <= key[5] < end}
        assert given == expected
        assert is_read(store, start, min(end, NEWEST))
        assert len(warned) == (end > NEWEST)
        outcomes["cut" if end > NEWEST else "equal"] += 1
    assert min(outcomes.values()) > 5, outcomes


@pytest.mark.parametrize(
    "read",
    [
        lambda points: points.to_pandas(),
        lambda points: points.to_polars(),
        lambda points: points.to_arrow(),
        len,
        lambda points: list(points.records()),
        lambda points: pa.RecordBatchReader.from_stream(points),
    ],
)
def test_an_unread_day_is_an_error_however_it_is_read(store, read):
    with pytest.raises(
        siteline.errors.UnreadRange, match='feed "line-2": unread: 2026-11-17'
    ) as caught:
        read(store.read("line-2", *day(17)))
    assert caught.value.spans == (day(17),)
    assert isinstance(caught.value, siteline.errors.StoreError)
    assert 'unread="warn"' in caught.value.hint
    assert "client.sync()" in caught.value.hint
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.spans, str(again)) == (caught.value.spans, str(caught.value))


def test_a_range_up_to_now_ends_at_the_newest_instant_with_one_warning_and_a_mark(store):
    start, end = day(19, days=2)
    with pytest.warns(siteline.SitelineWarning, match="its points end there") as warned:
        frame = store.read("line-2", start, end).to_pandas()
    assert len(warned) == 1
    assert warned[0].filename == __file__
    coverage = frame.attrs["siteline"]["coverage"]
    assert coverage == {
        "newest": iso(NEWEST)[0],
        "read": [iso(start, NEWEST)],
        "unread": [iso(NEWEST, end)],
        "forgotten": [],
        "settled": [],
        "complete": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_end = store.read("line-2", start).to_pandas()
    assert open_end.equals(frame)
    assert open_end.attrs["siteline"]["coverage"]["complete"]


def test_without_a_range_what_is_not_wholly_read_is_left_out_with_one_warning(partial):
    sandbox, store, _ = partial
    with pytest.warns(siteline.SitelineWarning, match="these parts are omitted") as warned:
        given = stored_points(store)
    assert len(warned) == 1
    true = true_points(sandbox, NEWEST)
    read = {key: row for key, row in true.items() if key[5] < day(16)[0] or key[5] >= day(19)[0]}
    assert given == read
    kept = stored_points(store, unread="keep")
    half = {key for key in kept if key[5] < day(18)[0]} - given.keys()
    assert half, "the points of the unfinished chain"
    assert len({key[:5] for key in half}) < len({key[:5] for key in true}), "only some series"


def test_a_feed_that_was_never_read_is_an_error(partial, tmp_path):
    sandbox, _, _ = partial
    with siteline.Store(tmp_path / "plant.siteline") as store:
        feed = make_feed(page_size=50)
        report = sandbox.client(daily_allowance=1).sync(feed, store)
        assert (report["line-2"].newest, report.read_through) == (None, None)
        for range_, options in (((), {}), (day(16), {}), (("-7d",), {}), ((), {"as_of": report})):
            with pytest.raises(siteline.errors.UnreadRange, match="no range has been read"):
                store.read(feed, *range_, **options)
        with pytest.warns(siteline.SitelineWarning, match="no range has been read"):
            assert len(store.read(feed, unread="warn")) == 0
        kept = store.read(feed, unread="keep").to_pandas()
        assert len(kept) == 50
        assert not kept.attrs["siteline"]["coverage"]["complete"], "the mark stays"
        with pytest.warns(siteline.SitelineWarning, match="have arrived"):
            assert len(store.changes(feed, since=0)) == 50
        with pytest.raises(siteline.errors.QueryError, match='"error", "warn" and "keep"'):
            store.read(feed, unread="Keep")


def test_changes_lose_no_point_of_a_chain_that_has_not_ended(partial, tmp_path):
    sandbox, _, _ = partial
    with siteline.Store(tmp_path / "plant.siteline") as store:
        feed = make_feed(page_size=100)
        client = sandbox.client(daily_allowance=40)
        first = client.sync(feed, store)
        with pytest.warns(siteline.SitelineWarning, match="have arrived are returned"):
            upserted = rows_by_key(store.changes(feed, since=0))
        with pytest.raises(siteline.errors.UnreadRange):
            len(store.changes(feed, 0, *day(17)))
        second = sandbox.client().sync(feed, store)
        upserted.update(rows_by_key(store.changes(feed, since=first)))
        assert second.complete
        assert upserted == true_points(sandbox, NEWEST)
