"""Coverage: figures, text and drawings."""

import pickle
from datetime import UTC, datetime, timedelta

import siteline
from kit.feeds import make_feed
from kit.markup import drawn

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def window(start, end, state, read_at=None, empty=None):
    settled = read_at if state == "settled" else None
    return siteline.types.CoverageWindow(start, end, state, read_at, settled, empty, None)


def sample(feed=None, days=40):
    """Forty days: settled (some empty), due, provisional, and an hour of the newest unread."""
    feed = feed or make_feed(start="2026-10-11T00:00Z")
    first, windows = feed.start, []
    for n in range(days):
        start = first + n * DAY
        read = start + 3 * DAY
        state = "settled" if n < days - 4 else "due" if n < days - 3 else "provisional"
        if n == 7:
            windows.append(window(start, start + DAY, "unread"))
        elif n == days - 1:
            windows.append(window(start, start + 22 * HOUR, "provisional", read, False))
            windows.append(window(start + 22 * HOUR, start + 23 * HOUR, "unread"))
        else:
            windows.append(window(start, start + DAY, state, read, n in (12, 13)))
    return siteline.types.Coverage(feed, first + days * DAY, tuple(windows))


def test_a_coverage_is_a_sequence_of_windows():
    coverage = sample()
    assert len(coverage) == 41
    assert coverage[0].state == "settled"
    assert coverage[-1].state == "unread"
    assert len(coverage[2:4]) == 2
    assert coverage.settled_through == datetime(2026, 10, 18, tzinfo=UTC), "up to the gap"
    assert coverage.read_through == datetime(2026, 10, 18, tzinfo=UTC), "up to the gap"
    assert coverage.newest == coverage[-2].end
    assert coverage.spans == {
        "settled": 35 * DAY, "due": DAY, "provisional": 2 * DAY + 22 * HOUR,
        "unread": DAY + HOUR, "forgotten": 0 * DAY,
    }  # fmt: skip
    assert pickle.loads(pickle.dumps(coverage)) == coverage
    assert hash(coverage) == hash(sample())


def test_it_prints_a_row_for_each_month():
    lines = repr(sample()).splitlines()
    assert lines[0] == (
        "Coverage of line-2 at 2026-11-20 00:00 UTC: settled through 2026-10-18 00:00, "
        "read through 2026-10-18 00:00, with gaps up to 2026-11-19 22:00"
    )
    assert lines[1] == "  2026-10  " + " " * 10 + "█" * 7 + "·" + "█" * 4 + "▁▁" + "█" * 7
    assert lines[2] == "  2026-11  " + "█" * 15 + "▓" + "▒" * 3
    assert lines[3] == (
        "  █ settled 35 d   ▓ due 1 d   ▒ provisional 2.9 d   · unread 25 h   ▁ read, empty 2 d"
    )


def test_a_long_coverage_shows_the_newest_rows():
    coverage = sample(make_feed(start="2016-01-01T00:00Z"), days=10 * 365)
    text = repr(coverage)
    assert len(text.splitlines()) == 27
    assert "earlier rows" in text
    assert len(coverage._repr_html_()) < 400_000
    assert "… 84 earlier" in drawn(coverage).text, "the omitted rows are counted"
    assert "earlier" not in drawn(sample()).text


def test_an_empty_coverage_is_shown_too():
    feed = make_feed()
    coverage = siteline.types.Coverage(feed, feed.start, [])
    assert repr(coverage) == "Coverage of line-2 at 2026-11-15 00:00 UTC: nothing read yet"
    assert "nothing read yet" in drawn(coverage).text
    assert (coverage.settled_through, coverage.read_through) == (None, None)
    assert len(coverage.to_pandas()) == 0


def test_the_calendar_draws_each_window_and_a_legend():
    reader = drawn(sample())
    rects = [attrs for tag, attrs in reader.seen if tag == "rect"]
    assert len(rects) == 41 + 5, "the windows, and the legend"
    assert sum(attrs["fill"] == "none" for attrs in rects) == 2 + 1
    assert "2026-10-18 00:00 to 2026-10-19 00:00: unread, never read" in reader.text
    assert "no points" in reader.text


def test_to_pandas_gives_a_row_for_each_window():
    frame = sample().to_pandas()
    assert list(frame.columns) == list(siteline.types.CoverageWindow.__dataclass_fields__)
    assert frame["state"].value_counts()["settled"] == 35
    assert frame["empty"].sum() == 2
    assert frame["empty"].isna().sum() == 2
    assert str(frame["read_at"].dtype) == "datetime64[us, UTC]"
