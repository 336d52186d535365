"""Charts of coverage, lateness and the allowance, from their specifications."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import siteline
from kit.charts import marks, notes, panels, spec_of, svg_of
from kit.feeds import make_feed
from kit.ranges import NOW
from siteline.types import Allowance, Coverage, CoverageWindow

alt = pytest.importorskip("altair")
pytest.importorskip("numpy")
NOW_TIME = datetime.fromisoformat(NOW)
DAY = timedelta(days=1)


def at(milliseconds):
    return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None)


def test_a_coverage_has_a_span_for_each_state(sandbox, store):
    sandbox.client().sync(make_feed(start="2026-11-10T00:00Z"), store)
    coverage = store.coverage("line-2", now=sandbox.clock.now())
    chart = coverage.plot()
    [bars] = marks(chart, "bar")
    lengths = Counter()
    for row in bars.rows:
        lengths[row["state"]] += row["to"] - row["from"]
    assert dict(lengths) == {
        state: span / timedelta(milliseconds=1) for state, span in coverage.spans.items() if span
    }
    assert [row["state"] for row in bars.rows] == list(dict.fromkeys(one.state for one in coverage))
    assert f"settled through: line-2 {coverage.settled_through:%Y-%m-%d %H:%M}" in notes(chart)
    assert bars.encoding["fill"]["scale"]["domain"] == ["settled", "provisional"]
    assert '"settled": "settled 9 d"' in bars.encoding["fill"]["legend"]["labelExpr"]

    chart = siteline.plots.coverage(coverage, tz="Europe/Berlin")
    assert at(marks(chart, "bar")[0].rows[0]["from"]) == datetime(2026, 11, 10, 1)
    assert notes(chart)[0] == "at 2026-11-20 01:00 Europe/Berlin"


def test_the_times_of_several_feeds_are_not_added(sandbox, store):
    feeds = [make_feed(name, start="2026-11-10T00:00Z") for name in ("one", "two")]
    sandbox.client().sync(feeds, store)
    now = sandbox.clock.now()
    chart = siteline.plots.coverage([store.coverage(feed.name, now=now) for feed in feeds])
    [bars] = marks(chart, "bar")
    assert '"settled": "settled"' in bars.encoding["fill"]["legend"]["labelExpr"]


def test_coverage_shows_what_is_empty_skipped_and_forgotten():
    feed = make_feed(start="2026-11-10T00:00Z")
    states = [("settled", True, None), ("forgotten", True, None), ("unread", None, NOW_TIME)]
    windows = [
        CoverageWindow(
            feed.start + n * DAY, feed.start + (n + 1) * DAY, state, None, None, empty, until
        )
        for n, (state, empty, until) in enumerate(states)
    ]
    chart = Coverage(feed, NOW_TIME, tuple(windows)).plot()
    rows = marks(chart, "bar")[0].rows
    assert [row["state"] for row in rows] == ["read, empty", "forgotten", "skipped"]


def test_feeds_beyond_the_bound_are_counted(sandbox, store):
    feeds = [make_feed(f"feed-{n}", start="2026-11-18T00:00Z") for n in range(3)]
    sandbox.client().sync(feeds, store)
    coverages = [store.coverage(name, now=NOW) for name in store.feeds]
    chart = siteline.plots.coverage(coverages, rows=2)
    assert "not shown: 1 more (rows=2)" in notes(chart)
    assert {row["feed"] for row in marks(chart, "bar")[0].rows} == {"feed-0", "feed-1"}
    latenesses = [store.lateness(name) for name in store.feeds]
    chart = siteline.plots.lateness(latenesses, panels=1)
    assert "not shown: 2 more (panels=1)" in notes(chart)
    with pytest.raises(siteline.errors.QueryError, match="at least one feed"):
        siteline.plots.coverage([])
    with pytest.raises(siteline.errors.QueryError, match="rows=0"):
        siteline.plots.coverage(coverages, rows=0)


def test_the_curve_of_lateness_rises_to_all(sandbox, store):
    client, feed = (
        sandbox.client(),
        make_feed(start="2026-11-14T00:00Z", audit_pages=4, page_size=1_000),
    )
    for _ in range(8):
        client.sync(feed, store)
        sandbox.clock.advance("12h")
    lateness = store.lateness("line-2")
    chart = lateness.plot()
    [(title, _)] = panels(chart)
    rows = [row for row in marks(chart, "line")[0].rows if row["kind"] == "points"]
    shares = [row["share"] for row in rows]
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == 1
    half = next(row["delay"] for row in rows if row["share"] >= 0.5)
    assert abs(half - lateness.points.median.total_seconds()) <= 1
    rules = marks(chart, "rule")
    assert rules[-1].rows[0]["delay"] == DAY.total_seconds()
    assert "red: lateness 1 d" in title["subtitle"][0]
    assert len(rules) == 1 + (lateness.suggested not in (None, lateness.lateness))
    [grey] = marks(chart, "rect")
    assert grey.rows[0]["delay"] == lateness.looked.total_seconds()
    assert title["text"] == f"line-2: {lateness.verdict}"


def test_feeds_without_data_have_charts(sandbox, store):
    sandbox.client().sync(make_feed(), store)
    chart = store.lateness("line-2").plot()
    assert "too little data" in chart.description
    nothing = Coverage(make_feed(), NOW_TIME, ()).plot()
    assert "settled through: line-2 nothing" in notes(nothing)


def requests(chart):
    """The requests of each day and part."""
    return {(row["day"], row["part"]): row["requests"] for row in marks(chart, "bar")[0].rows}


def test_the_allowance_shows_who_spent_it(sandbox, store):
    client = sandbox.client(daily_allowance=100)
    feeds = [make_feed("one", start="2026-11-18T00:00Z", page_size=500), make_feed("other")]
    client.sync(feeds, store)
    client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T02:00Z").collect()
    chart = siteline.plots.allowance(client.allowance, store)
    counts = requests(chart)
    assert counts["2026-11-20", "one"] == len(store._handle.page_times("one"))
    assert counts["2026-11-20", "other requests"] >= 1
    assert sum(counts.values()) == client.allowance.used
    assert [mark.rows for mark in marks(chart, "rule")] == [[{"at": 100}]]
    assert "; limit (red) 100, of which" in notes(chart)[0]
    assert (
        spec_of(chart)["title"]["text"] == f"Requests by day: {client.allowance.used} of 100 today"
    )


def test_earlier_days_have_the_pages_of_stores(sandbox, store):
    client, feed = sandbox.client(daily_allowance=1_000), make_feed()
    for _ in range(3):
        client.sync(feed, store)
        sandbox.clock.advance("1d")
    client.sync(feed, store)
    chart = siteline.plots.allowance(client.allowance, [store], days=7)
    counts = requests(chart)
    assert sum(counts.values()) == len(store._handle.page_times("line-2"))
    assert [day for day, _ in counts] == [f"2026-11-{day}" for day in (20, 21, 22, 23)]
    [text] = marks(chart, "text")
    assert text.encoding["text"]["aggregate"] == "sum"
    assert set(map(str, counts.values())) <= set(re.findall(r">(\d+)</text>", svg_of(chart)))
    assert not marks(chart, "rule"), "1,000 is too far above the bars"
    assert "; limit 1,000, of which" in notes(chart)[0]


def test_many_feeds_share_the_last_colour():
    class Pages:
        feeds = dict.fromkeys(f"feed-{n:02}" for n in range(20))

        def page_times(self, feed):
            return [int(NOW_TIME.timestamp()) * 1_000_000] * (1 + int(feed[-2:]))

        @property
        def _handle(self):
            return self

    known = Allowance(500, None, None, NOW_TIME + DAY, 3, 1)
    counts = requests(siteline.plots.allowance(known, iter([Pages()]), days=1))
    assert counts["2026-11-20", "9 other feeds"] == sum(range(1, 10))
    assert len({part for _, part in counts}) == 13
    assert sum(counts.values()) == 500


def test_the_plan_is_on_top_of_today(sandbox, store):
    client, feed = sandbox.client(daily_allowance=100), make_feed()
    client.sync(feed, store)
    sandbox.clock.advance("30h")
    plan = client.plan(feed, store)
    chart = siteline.plots.allowance(client.allowance, store, plan=plan)
    counts = requests(chart)
    assert counts.get(("2026-11-21", "planned"), 0) == plan.pages > 0
    assert counts.get(("2026-11-21", "reserved for due windows"), 0) == plan.reserve
    expected = client.allowance.used + plan.pages + plan.reserve
    assert f"with the plan: {expected} of 100" in notes(chart)
    assert "pace so far" in notes(chart)[1]


def test_the_pace_extends_the_beginning_of_the_day():
    known = Allowance(6, 20, 14, NOW_TIME + DAY, 3, 1)
    chart = siteline.plots.allowance(known, now="2026-11-20T06:00Z")
    # Four times as much in four times as long; 20 are reached after 20 hours.
    assert notes(chart)[-1] == (
        "dashed: 24 of 20 at the end of the day, at the pace so far; used up 20:00 UTC"
    )
    assert [mark.rows[0]["at"] for mark in marks(chart, "rule")] == [20, 24]
    early = siteline.plots.allowance(known, now="2026-11-20T00:59Z")
    assert len(notes(early)) == 1
    for now in ("2026-11-19T23:59Z", "2026-11-21T00:01Z"):
        with pytest.raises(siteline.errors.QueryError, match="20 00:00 to 2026-11-21 00:00"):
            siteline.plots.allowance(known, now=now)
    with pytest.raises(siteline.errors.QueryError, match="no time with a zone"):
        siteline.plots.allowance(known, now="2026-11-20T12:00")
    for wrong in ("noon", 12, np.datetime64("2026-11-20T12:00")):
        with pytest.raises((TypeError, siteline.errors.ConfigError), match="now="):
            siteline.plots.allowance(known, now=wrong)


def test_unknown_limits_and_plans_are_noted(sandbox, store):
    client = sandbox.client()
    chart = siteline.plots.allowance(client.allowance)
    assert "no daily allowance is set" in notes(chart)[0]
    assert requests(chart) == {}
    with pytest.raises(siteline.errors.QueryError, match="days=0"):
        siteline.plots.allowance(client.allowance, days=0)
    unknown = client.plan(make_feed(), store)
    assert unknown.pages is None
    chart = siteline.plots.allowance(client.allowance, plan=unknown)
    assert "the plan does not know its pages" in notes(chart)


def test_charts_of_feeds_are_saved(sandbox, store, tmp_path):
    evil = '</script><script>alert("x")</script>'
    client = sandbox.client(daily_allowance=50)
    client.sync(make_feed(evil), store)
    charts = (
        siteline.plots.coverage(store.coverage(evil, now=NOW)),
        siteline.plots.lateness(store.lateness(evil)),
        siteline.plots.allowance(client.allowance, store),
    )
    for chart in charts:
        chart.save(tmp_path / "chart.svg")
        svg = (tmp_path / "chart.svg").read_text(encoding="utf-8")
        assert chart.title.text.split(" ")[0] in svg
        assert "NaN" not in svg
        assert "<script>alert" not in chart.to_html()
    assert spec_of(alt.vconcat(*charts))
