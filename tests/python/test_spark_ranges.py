"""The offsets of a stream, and the ranges that its batches read."""

from datetime import UTC, datetime, timedelta

import pytest
import siteline
from hypothesis import given, settings
from hypothesis import strategies as st
from siteline.spark._partitions import Density
from siteline.spark._ranges import Offset, advance, expected, ranges

SINCE = datetime(2026, 11, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def feed(**times):
    return siteline.Feed("stream", start=SINCE, interval="1h", page_size=100, **times)


def at(hours):
    return SINCE + hours * HOUR


def hours(found):
    return [tuple((bound - SINCE) / HOUR for bound in one) for one in found]


@pytest.mark.parametrize(
    ("before", "after", "read"),
    [
        ((0, 0), (48, 48), [(0, 48)]),  # the first fill, older than the lateness
        ((48, 48), (72, 48), [(48, 72)]),  # settled data is in no overlap
        ((72, 48), (73, 48), [(71, 73)]),  # fresh, with its overlap
        ((73, 48), (73, 72), [(48, 72)]),  # a day that has become due
        ((97, 48), (98, 72), [(48, 72), (96, 98)]),  # both, apart
        ((73, 48), (74, 72), [(48, 74)]),  # both, and each bucket once
        ((73, 48), (73, 48), []),
    ],
)
def test_a_batch_reads_what_is_fresh_with_its_overlap_and_what_is_due(before, after, read):
    before, after = (Offset(*map(at, one)) for one in (before, after))
    assert hours(ranges(before, after, feed())) == read
    assert Offset.from_dict(before.to_dict()) == before


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=20),
    st.integers(2, 40),
    st.floats(0, 60),
    st.sampled_from(["0s", "1h", "90m", "5h"]),
    st.sampled_from(["5m", "1d", "30h"]),
    st.sampled_from(["6h", "1d", "2d"]),
)
def test_all_is_read_and_once_more_after_its_lateness_in_batches_of_so_many_pages(
    waits, pages, rate, overlap, lateness, window
):
    one = feed(overlap=overlap, lateness=lateness, window=window)
    density, offset, now = Density(rate, 100.0), Offset(SINCE, SINCE), SINCE
    newest: dict[datetime, datetime] = {}
    for wait in waits:
        now += wait * HOUR
        while (after := advance(offset, now, one, density, pages)) != offset:
            assert after.read >= offset.read
            assert offset.settled <= after.settled <= after.read
            found = ranges(offset, after, one)
            assert found
            lengths = [density.pages((end - start) / HOUR) for start, end in found]
            needed = [density.pages(7), density.pages(1)]  # an overlap with a bucket, and one more
            assert sum(lengths) <= max(pages, sum(needed))
            for start, end in found:
                for bucket in range(int((start - SINCE) / HOUR), int((end - SINCE) / HOUR)):
                    newest[at(bucket)] = now
            offset = after
        whole = int((now - one.settle_lag - SINCE) / HOUR) if now > SINCE + one.settle_lag else 0
        assert set(newest) == {at(bucket) for bucket in range(whole)}
        assert offset.read == max(SINCE, at(whole))
        due = now - one.lateness - one.window
        for bucket, read in newest.items():
            if bucket < due:
                assert read >= bucket + HOUR + one.lateness - one.window or bucket < offset.settled
            if bucket < offset.settled:
                assert read >= bucket + HOUR + one.lateness
        assert offset.settled >= min(offset.read, due) or due < SINCE


@pytest.mark.parametrize(("pages", "rate"), [(1, 0.0), (3, 0.2), (7, 0.01), (40, 1.0)])
def test_where_nothing_is_known_or_few_points_are_a_page_is_at_most_31_days(rate, pages):
    start, density = Offset(SINCE, SINCE), Density(rate, 100.0)
    after = advance(start, SINCE + 9999 * DAY, feed(), density, pages)
    assert DAY <= after.read - SINCE <= pages * 31 * DAY
    assert expected(density, ranges(start, after, feed()), feed()) <= pages
