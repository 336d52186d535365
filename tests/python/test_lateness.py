"""When points come: audits, the estimate of their delays, and what a verdict claims."""

import copy
import pickle
import re
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
import siteline
from kit.feeds import make_feed, stored_points, true_points
from kit.markup import drawn
from kit.memory_store import MemoryStore

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
H, D = 3_600, 86_400
START = datetime(2026, 11, 1, tzinfo=UTC)


def part(count=0, late=0, quantiles=None, looked=None):
    """What the core finds: a delay for all quantiles, or six of them."""
    if isinstance(quantiles, int):
        quantiles = [quantiles] * 6
    return {"count": count, "late": late, "quantiles": quantiles, "looked": looked}


def lateness_of(points=None, revisions=None, **options):
    record = {"points": points or part(), "revisions": revisions or part(), "settled": 30 * D}
    return siteline.Lateness(make_feed(**options), record)


def test_quantiles_are_timedeltas():
    delays = lateness_of(part(100, 2, [60, H, 2 * H, 3 * H, 4 * H, D], 2 * D)).points
    assert delays == siteline.Delays(100, 2, timedelta(minutes=1), HOUR, 2 * HOUR, 3 * HOUR, DAY)
    assert lateness_of().revisions == siteline.Delays(0, 0, None, None, None, None, None)
    assert lateness_of().looked is None


def test_equal_latenesses_are_equal_and_can_be_pickled():
    one = lateness_of(part(50, 0, 60, D), part(2, 0, H, D))
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    assert len({one, lateness_of(part(50, 0, 60, D), part(2, 0, H, D)), lateness_of()}) == 2


@pytest.mark.fault("S21")
@pytest.mark.parametrize(
    ("points", "revisions", "suggested", "words"),
    [
        (part(), part(), None, "hardly anything was read twice"),
        (part(9, 0, H, D), part(), None, "hardly anything was read twice"),
        (
            part(900, 0, H, 2 * D),
            part(),
            2 * HOUR,
            "2 h would have been long enough for 99.9 %; nothing",
        ),
        (
            part(900, 0, 80_000, 3 * D),
            part(),
            DAY,
            "it is long enough for 99.9 %; nothing was looked at after 3",
        ),
        # Reads too far apart: it may have come after the lateness.
        (part(900, 0, H, 3 * D), part(90, 0, 40 * H, 3 * D), None, "not known yet; nothing"),
        (part(900, 0, H, 12 * H), part(), None, "not known yet; nothing was looked at after 12 h"),
        (
            part(900, 6, 70 * H, 9 * D),
            part(),
            4 * DAY,
            "6 points came or changed after it: 4 d would",
        ),
        (part(900, 0, H, 9 * D), part(9, 3, 30 * H, 9 * D), 1.5 * DAY, "3 points came or changed"),
        (
            part(900, 6, 70 * H, 3 * D),
            part(),
            None,
            "up to the last look: it is too short; nothing",
        ),
    ],
)
def test_a_verdict_claims_only_what_was_looked_at(points, revisions, suggested, words):
    lateness = lateness_of(points, revisions, audit_pages=4)
    assert lateness.suggested == suggested
    for text in (lateness.verdict, str(lateness), drawn(lateness).text):
        assert words in text
        assert ("nothing was looked at after" in text) == (lateness.points.count > 9)
    assert "suggested" in repr(lateness)


@pytest.mark.fault("S21")
@pytest.mark.parametrize("pages", [-1, 10**10, 1.5, "2"])
def test_a_number_of_audit_pages_is_a_whole_number(pages):
    with pytest.raises(siteline.QueryError, match=r"audit_pages=.* is not a whole number of 0"):
        make_feed(audit_pages=pages)


@pytest.mark.fault("S21")
@pytest.mark.parametrize("quantiles", [H, 80_000])
def test_without_audits_no_verdict_says_that_the_lateness_is_long_enough(quantiles):
    lateness = lateness_of(part(900, 0, quantiles, 2 * D))
    assert lateness.suggested is None
    assert "only audits show (audit_pages=); nothing was looked at after 2 d" in lateness.verdict
    assert "long enough" not in str(lateness)
    # What was seen to come late needs no audit.
    late = lateness_of(part(900, 6, 70 * H, 9 * D))
    assert late.suggested == 4 * DAY


def test_it_prints_a_table():
    text = str(lateness_of(part(50, 1, [60, 60, H, H, H, D], D), part(20, 0, 2 * H, D)))
    assert re.search(r"points +50 +1 +1 min +1 min +1 h +1 h +1 d", text)
    assert re.search(r"revisions +20 +0 +2 h", text)


def late_plant(sandbox, days, delay):
    """Buckets of five minutes, every 48th of them late by `delay`."""
    times = pd.date_range(START, periods=days * 288, freq="5min", tz="UTC")
    came = [
        time + timedelta(minutes=5) + (delay if number % 48 == 7 else timedelta(0))
        for number, time in enumerate(times)
    ]
    values = {"value": 1.0, "minimum": 0.0, "maximum": 2.0, "sample_count": 3}
    frame = pd.DataFrame({"timestamp": times, "available_at": came, **values})
    sandbox.load(frame, bucket="5m", line="L2")


def late_feed(**options):
    return make_feed(**{"since": START, "page_size": 500, **options})


@pytest.mark.fault("S21")
@pytest.mark.sandbox(now=START)
def test_audits_find_what_comes_after_the_lateness_and_its_window_is_read_again(
    client, sandbox, store, caplog
):
    late_plant(sandbox, 40, 3 * DAY)
    # An audit of one page reads a part of a day only.
    feed = late_feed(audit_pages=4, page_size=100)
    late = pages = 0
    for _ in range(30):
        sandbox.clock.advance("1d")
        report = client.sync(feed, store)
        assert report.complete
        late += report["line-2"].late
        pages = max(pages, report.pages)
    lateness = store.lateness(feed)
    assert late > 0
    said = "came or changed after the lateness of 1d: their window is read again"
    assert any(
        said in one.getMessage() for one in caplog.records if getattr(one, "feed", "") == "line-2"
    )
    assert lateness.points.late >= late
    assert "came or changed after it" in lateness.verdict
    assert lateness.suggested in (4 * DAY, 5 * DAY)
    assert lateness.looked > 5 * DAY
    # A target that keeps no log of its pages knows nearly as much.
    of_audits = siteline.Lateness.from_state(store.state("line-2"))
    assert of_audits.suggested in (3 * DAY, 4 * DAY, 5 * DAY)
    assert lateness.points.late >= of_audits.points.late >= 0.8 * late
    assert of_audits.looked > 5 * DAY
    assert (of_audits.feed, of_audits.settled) == (lateness.feed, lateness.settled)
    # The windows in which something was found have been read again as a whole, and are settled.
    settled = store.coverage(feed, now=sandbox.clock.now())
    assert {window.state for window in settled if window.end < sandbox.clock.now() - 3 * DAY} == {
        "settled"
    }
    days = [START + number * DAY for number in range(24)]
    whole = [
        stored_points(store, feed, day, day + DAY) == true_points(sandbox, day + DAY, start=day)
        for day in days
    ]
    assert sum(whole) >= 20, "an audit of a part of a day mends that day"
    # An edge, a settling read, four audits, and a window for each audit that found something.
    assert pages <= 2 * 3 + 4 + 4 * 3


@pytest.mark.fault("S21")
@pytest.mark.sandbox(now=START)
def test_without_audits_points_are_lost_and_the_verdict_does_not_deny_it(client, sandbox, store):
    late_plant(sandbox, 12, 3 * DAY)
    feed = late_feed()
    for _ in range(10):
        sandbox.clock.advance("1d")
        client.sync(feed, store)
    lateness = store.lateness(feed)
    assert lateness.looked < 3 * DAY
    assert re.search(r"nothing was looked at after \d", lateness.verdict)
    assert lateness.suggested is None
    assert lateness.points.late == 0


@pytest.mark.fault("S21")
@pytest.mark.sandbox(now=START)
def test_audits_stay_within_their_pages_a_day(client, sandbox, store):
    late_plant(sandbox, 12, timedelta(0))
    plain, audited = late_feed(), late_feed(name="audited", audit_pages=3)
    days = {}
    for _ in range(8 * 8):
        sandbox.clock.advance("3h")
        expected = client.sync(plain, store).pages
        report = client.sync(audited, store)
        assert report["audited"].late == 0
        day = sandbox.clock.now().date()
        days[day] = days.get(day, 0) + report.pages - expected
    assert max(days.values()) == 3
    assert min(days.values()) >= 0
    assert store.lateness("audited").looked > 2 * DAY
    assert [task.why for task in client.plan(audited, store).tasks] == []


@pytest.mark.sandbox(now=START)
@pytest.mark.parametrize("tells", [True, False])
def test_a_pull_that_does_not_say_what_a_page_changed_has_no_lateness(client, sandbox, tells):
    late_plant(sandbox, 12, 3 * DAY)
    states, known = {}, MemoryStore()
    for _ in range(10):
        sandbox.clock.advance("1d")
        pages = client.sync_pages(late_feed(audit_pages=4, page_size=100), states)
        for page, state in pages:
            counts = known.apply("line-2", page, state["line-2"])
            if tells:
                pages.applied(*counts)
            states.update(state)
    lateness = siteline.Lateness.from_state(states["line-2"])
    assert (lateness.points.count > 100) == tells
    assert (lateness.looked is not None) == tells
    if tells:
        assert lateness.points.late > 0


def test_a_damaged_state_has_no_lateness():
    with pytest.raises(siteline.StoreCorrupt):
        siteline.Lateness.from_state(b"something else")


def test_audit_pages_may_be_changed(client, store):
    client.sync(make_feed(), store)
    with pytest.raises(siteline.FeedChanged, match="audit_pages was none, is 4"):
        client.sync(make_feed(audit_pages=4), store)
    store.redefine(make_feed(audit_pages=4))
    assert client.sync(make_feed(audit_pages=4), store).complete
    assert store.feeds["line-2"].audit_pages == 4
    assert pickle.loads(pickle.dumps(make_feed(audit_pages=4))).audit_pages == 4


def test_a_store_measures_late_points_and_revisions(sandbox, store):
    client, feed = sandbox.client(), make_feed(audit_pages=4)
    for _ in range(20):
        client.sync(feed, store)
        sandbox.clock.advance("6h")
    lateness = store.lateness(feed)
    assert lateness.points.count > 1_000
    assert lateness.revisions.count > 20
    assert timedelta(0) < lateness.points.median <= lateness.points.longest < 3 * DAY
    assert lateness.suggested <= 1.5 * DAY
