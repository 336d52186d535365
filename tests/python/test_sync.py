"""`client.sync` into a `siteline.Store`: requests, report, cost and stored points."""

import pickle
from datetime import UTC, datetime

import pytest
import siteline
from kit.feeds import FEED, make_feed, stored_points, true_points
from kit.markup import read_html


def test_a_report_is_complete_and_prints_well(sandbox, store):
    client = sandbox.client(daily_allowance=5_000)
    feeds = [make_feed(), make_feed("line-1", line="L1")]
    report = client.sync(feeds, store)
    assert [one.name for one in report.feeds] == ["line-2", "line-1"]
    assert report["line-1"] == report.feeds[1]
    for name in ("pages", "inserted", "revised", "unchanged", "withdrawn"):
        assert getattr(report, name) == sum(getattr(one, name) for one in report.feeds)
    assert report.requests == report.pages == client.allowance.used
    assert report.settled_through == datetime(2026, 11, 19, tzinfo=UTC)
    assert report.read_through == datetime(2026, 11, 19, 23, 55, tzinfo=UTC)
    assert report.allowance == client.allowance
    assert (report.tasks, report.resumes_at) == ((), None)
    report.raise_for_incomplete()
    assert repr(report).startswith("<SyncReport complete: ")
    lines = str(report).splitlines()
    assert lines[0].startswith("Sync complete, 2026-11-20 00:00 UTC: ")
    assert len(lines) == 5
    assert "settled through 2026-11-19 00:00, read through 2026-11-19 23:55" in lines[2]
    with pytest.raises(KeyError):
        report["line-3"]


def test_a_sync_returns_when_the_allowance_ends_and_the_next_day_continues(sandbox, store):
    client, feed = sandbox.client(daily_allowance=12), make_feed(page_size=500)
    plan = client.plan(feed, store)
    assert plan.fits is None
    report = client.sync(feed, store)
    assert not report.complete
    assert report.requests == 12
    assert report.resumes_at == datetime(2026, 11, 21, tzinfo=UTC)
    assert report.tasks[0].feed == "line-2"
    assert "incomplete" in repr(report)
    assert "still to do" in str(report)
    for word in ("incomplete", "Still to do", "never read", "0 left", "line-2"):
        assert word in read_html(report).text
    with pytest.raises(siteline.errors.AllowanceExhausted) as caught:
        report.raise_for_incomplete()
    assert caught.value.retry_at == report.resumes_at
    assert caught.value.retryable
    assert len(store.read(feed, unread="keep")) == report.inserted > 5000
    spent = report.requests
    while not report.complete:
        sandbox.clock.advance("1d")
        report = client.sync(feed, store)
        spent += report.requests
        assert report.requests <= 12
    assert sandbox.stats.data_requests == spent
    end = report.settled_through
    assert stored_points(store, feed, None, end) == true_points(sandbox, end)


def test_a_sync_of_so_many_pages_says_what_ended_it_and_the_next_one_continues(sandbox, store):
    client, feed = sandbox.client(daily_allowance=1_000), make_feed(page_size=500)
    reported = []
    report = client.sync(feed, store, max_pages=5, progress=reported.append)
    assert (report.pages, report.requests, sandbox.stats.data_requests) == (5, 5, 5)
    assert (report.complete, report.ended_by, report.resumes_at) == (False, "max_pages", None)
    assert [now.done for now in reported] == [False] * 4 + [True]
    assert "still to do, as max_pages= ended the sync: " in str(report)
    again = pickle.loads(pickle.dumps(report))
    assert (again, hash(again), again.to_dict()["ended_by"]) == (report, hash(report), "max_pages")
    with pytest.raises(
        siteline.errors.PageLimitReached, match="after the 5 pages that max_pages= allows"
    ) as caught:
        report.raise_for_incomplete()
    assert caught.value.retryable
    report = client.sync(feed, store)
    assert report.ended_by is None
    report.raise_for_incomplete()
    assert stored_points(store, feed) == true_points(sandbox, report.read_through)


def test_a_plan_gives_the_cost_of_a_sync_and_whether_it_fits(sandbox, store):
    client, feed = sandbox.client(), make_feed(page_size=500)
    client.sync(feed, store)
    sandbox.clock.advance("1d")
    before = sandbox.stats.data_requests
    plan = client.plan(feed, store)
    assert sandbox.stats.data_requests == before
    assert plan.pages == sum(task.pages for task in plan.tasks) > 1
    assert f"{plan.pages} pages expected" in str(plan)
    assert "recent" in read_html(plan).text
    poor = sandbox.client(daily_allowance=1)
    plan = poor.plan(feed, store)
    assert plan.fits is False
    with pytest.raises(siteline.errors.AllowanceExhausted, match="are expected") as caught:
        plan.raise_for_allowance()
    assert caught.value.retry_at == plan.allowance.resets_at
    report = client.sync(feed, store)
    assert abs(report.pages - plan.pages) <= 2
    done = client.plan(feed, store)
    assert (done.tasks, done.fits) == ((), True)
    assert repr(done) == "<Plan nothing to read>"


def test_the_time_of_a_report_is_accepted_as_it_is_written(sandbox, store):
    client, feed = sandbox.client(), make_feed()
    client.sync(feed, store)
    sandbox.clock.advance(3600.123456)  # real clocks have fractions too
    report = client.sync(feed, store)
    assert report.now.microsecond == 123456
    written = report.to_dict()["now"]
    assert repr(store.read(feed, as_of=written)) == repr(store.read(feed, as_of=report))
    assert store.coverage(feed, now=written) == store.coverage(feed, now=report.now)
    assert client.plan(feed, store, until=written).tasks == ()
    with pytest.raises(siteline.errors.QueryError, match=r"start .*finer than a second"):
        client.scan(start=written)
    with pytest.raises(siteline.errors.QueryError, match=r"start=.*whole second"):
        make_feed(start=written)


WRONG = [
    ({"feeds": "line-2"}, "Feed"),
    ({"feeds": []}, "empty"),
    ({"feeds": [make_feed(), "line-1"]}, "Feed"),
    ({"feeds": [make_feed(), make_feed(line="L1")]}, "line-2"),
    ({"until": "2026-11-17T00"}, "until="),
    ({"reread": "2026-11-17"}, "range"),
    ({"reread": ("2026-11-17T00:00Z", "2026-11-16T00:00Z")}, "not before"),
    ({"reread": [("2026-11-17T00:00Z",)]}, "range"),
    ({"deadline": "soon"}, "deadline"),
    ({"progress": 7}, "progress"),
    *(
        ({name: wrong}, rf"{name}=.* is not a whole number")
        for name in ("max_pages", "concurrency")
        for wrong in (0, -1, True, 1.5, "8")
    ),
]


def test_wrong_arguments_are_refused_before_any_request(sandbox, store):
    client = sandbox.client()
    for given, match in WRONG:
        given = {"feeds": make_feed(), "store": store, **given}
        with pytest.raises(siteline.errors.QueryError, match=match):
            client.sync(given.pop("feeds"), given.pop("store"), **given)
    with pytest.raises(siteline.errors.QueryError, match="needs the store"):
        client.plan(make_feed())
    assert sandbox.stats.data_requests == 0
    assert not store.path.exists()


def test_a_second_sync_of_a_feed_is_refused_at_once(sandbox, store):
    client, feed, other = sandbox.client(), make_feed(), make_feed("line-1", line="L1")
    seen = []

    def sync_again(_):
        if not seen:
            with siteline.Store(store.path) as second:
                with pytest.raises(siteline.errors.StoreBusy) as caught:
                    client.sync(feed, second)
                with pytest.raises(siteline.errors.StoreBusy):
                    second.redefine(feed)
                seen.append(caught.value)
                assert "'line-2'" in str(caught.value) or '"line-2"' in str(caught.value)
                assert "thread or process" in str(caught.value)
                assert client.sync(other, second).complete

    assert client.sync(feed, store, progress=sync_again).complete
    assert seen
    assert client.sync(feed, store).complete, "the lock was released"


def test_another_definition_is_refused_and_times_may_be_redefined(sandbox, store):
    client, feed = sandbox.client(), make_feed()
    client.sync(feed, store)
    later, before = make_feed(lateness="2d", page_size=500), sandbox.stats
    with pytest.raises(siteline.errors.FeedChanged, match="lateness"):
        client.sync(later, store)
    assert sandbox.stats == before
    store.redefine(later)
    assert store.feeds == {"line-2": later}
    assert client.sync(later, store).complete
    with pytest.raises(siteline.errors.FeedChanged, match="line"):
        store.redefine(make_feed(line="L1"))
    with pytest.raises(siteline.errors.StoreError, match="line-9"):
        store.redefine(make_feed("line-9"))


def test_a_closed_client_and_a_closed_store_are_errors(sandbox, store):
    client = sandbox.client()
    client.sync(make_feed(), store)
    client.close()
    with pytest.raises(siteline.errors.ClosedError):
        client.sync(make_feed(), store)  # although nothing is left to read
    store.close()
    with pytest.raises(siteline.errors.ClosedError):
        sandbox.client().sync(make_feed(), store)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"name": ""}, "name"),
        ({"start": "yesterday"}, "start="),
        ({"start": 15}, "start="),
        ({"window": "7h"}, "window"),
        ({"filters": ["M1"]}, "filters"),
        ({"line": ["L1", "L2"]}, "a feed has one line"),
        *(({"audit_pages": n}, "a whole number of 0 or more") for n in (-1, 10**10, 1.5, "2")),
    ],
)
def test_a_wrong_feed_is_refused(wrong, match):
    given = {"name": "line-2", **FEED, **wrong}
    with pytest.raises(siteline.errors.QueryError, match=match):
        siteline.Feed(given.pop("name"), **given)
