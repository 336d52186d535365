"""Pictures of a store and of the allowance: what is known is drawn, and what is not is said."""

from datetime import UTC, datetime, timedelta

import pytest
import siteline
from kit.feeds import make_feed
from kit.pictures import SVG, estimated, faults, parsed
from kit.ranges import NOW
from siteline._display.elements import AMBER, BLUE
from siteline.types import Allowance

NOW_TIME = datetime.fromisoformat(NOW)


def texts(plot):
    boxes, width, height = estimated(plot.svg())
    assert not faults(boxes, width, height)
    return [box.text for box in boxes]


def boxes_of(plot, colour):
    """How many boxes have this colour, without those of the legend."""
    paths = [path.get("d") for path in parsed(plot.svg()).iter(f"{SVG}path")
             if path.get("fill") == colour]  # fmt: skip
    return sum(path.count("M") for path in paths) - 1


def test_each_day_of_a_feed_is_a_cell_in_the_colour_of_its_state(sandbox, store):
    sandbox.client().sync(make_feed(start="2026-11-10T00:00Z"), store)
    coverage = store.coverage("line-2", now=sandbox.clock.now())
    plot = coverage.plot()
    # Nine settled days; of 18 November the lateness is not over.
    days = [one for one in coverage if one.state == "settled"]
    assert boxes_of(plot, BLUE) >= len(days)
    frame = plot.to_pandas()
    assert set(frame["state"]) == {one.state for one in coverage}
    assert frame.groupby("day")["share"].sum().iloc[:-1].tolist() == [1.0] * (
        len(frame["day"].unique()) - 1
    )
    assert f"line-2 is settled through {coverage.settled_through:%Y-%m-%d %H:%M}" in plot.alt
    assert "a cell is a day" in " ".join(texts(plot))


def test_days_are_those_of_the_zone(sandbox, store):
    sandbox.client().sync(make_feed(start="2026-11-10T00:00Z"), store)
    coverage = store.coverage("line-2", now=sandbox.clock.now())
    frame = siteline.plots.coverage(coverage, tz="Europe/Berlin").to_pandas()
    assert str(frame["day"].dt.tz) == "Europe/Berlin"
    assert {at.hour for at in frame["day"]} == {0}
    first = frame[frame["day"] == frame["day"].min()]
    assert first["share"].sum() == pytest.approx(23 / 24)


def test_what_was_never_read_has_its_own_look_and_is_named(sandbox, store):
    client = sandbox.client()
    client.sync(make_feed(start="2026-11-01T00:00Z"), store, until="2026-11-05T00:00Z")
    plot = store.coverage("line-2", now=NOW).plot()
    assert any(one == "unread 15 d" for one in texts(plot))
    assert "unread" in plot.alt
    assert boxes_of(plot, AMBER) == -1


def test_feeds_beyond_the_bound_are_told(sandbox, store):
    feeds = [make_feed(f"feed-{n}", start="2026-11-18T00:00Z") for n in range(3)]
    sandbox.client().sync(feeds, store)
    coverages = [store.coverage(name, now=NOW) for name in store.feeds]
    plot = siteline.plots.coverage(coverages, rows=2)
    assert "… and 1 more feed is not shown (rows=2)" in texts(plot)
    assert set(plot.to_pandas()["feed"]) == {"feed-0", "feed-1"}
    with pytest.raises(siteline.errors.QueryError, match="at least one feed"):
        siteline.plots.coverage([])
    with pytest.raises(siteline.errors.QueryError, match="rows=0"):
        siteline.plots.coverage(coverages, rows=0)


def test_the_curve_of_arrival_rises_to_all_and_says_what_was_not_looked_at(sandbox, store):
    client, feed = sandbox.client(), make_feed(start="2026-11-14T00:00Z", audit_pages=4)
    for _ in range(8):
        client.sync(feed, store)
        sandbox.clock.advance("12h")
    lateness = store.lateness("line-2")
    plot = lateness.plot()
    frame = plot.to_pandas()
    points = frame[frame["kind"] == "points"]
    assert points["share"].is_monotonic_increasing
    assert points["delay"].is_monotonic_increasing
    assert points["share"].iloc[0] < 0.5
    assert points["share"].iloc[-1] == 1
    # The quantiles lie on the curve.
    half = points[points["share"] >= 0.5]["delay"].iloc[0]
    before = points[points["share"] < 0.5]["delay"].iloc[-1]
    assert before <= lateness.points.median <= half + timedelta(seconds=1)
    assert "lateness 1 d" in texts(plot)
    assert lateness.verdict[1:] in plot.alt
    assert any(one.startswith("not looked at, after") for one in texts(plot)) == bool(
        lateness.looked
    )


def test_a_feed_that_was_read_once_has_no_curve_and_says_so(sandbox, store):
    sandbox.client().sync(make_feed(), store)
    plot = store.lateness("line-2").plot()
    assert "no delays are known" in texts(plot)
    assert "Too little data" in plot.alt
    nothing = siteline.types.Coverage(make_feed(), NOW_TIME, []).plot()
    assert "no time yet" in nothing.alt
    assert "nothing" in texts(nothing)
    assert nothing.to_pandas().empty
    assert plot.to_pandas().empty
    assert list(plot.to_pandas()) == ["feed", "kind", "delay", "share"]


def test_the_allowance_shows_who_spent_it_and_what_no_feed_accounts_for(sandbox, store):
    client = sandbox.client(daily_allowance=100)
    feeds = [make_feed("one", start="2026-11-18T00:00Z", page_size=500), make_feed("other")]
    client.sync(feeds, store)
    client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T02:00Z").collect()
    plot = siteline.plots.allowance(client.allowance, store)
    frame = plot.to_pandas().set_index("part")["requests"]
    pages = sum(one for part, one in frame.items() if part in store.feeds)
    assert pages + frame["not by these feeds"] == client.allowance.used
    assert frame["one"] == sum(
        1 for at in store._page_times("one")
    ), "each page of the feed was read today"  # fmt: skip
    assert "no plan was given: nothing is projected" in texts(plot)
    assert "what else was sent is not known" in " ".join(texts(plot))


def test_days_before_today_have_the_pages_of_the_store(sandbox, store):
    client, feed = sandbox.client(daily_allowance=1_000), make_feed()
    for _ in range(3):
        client.sync(feed, store)
        sandbox.clock.advance("1d")
    client.sync(feed, store)
    frame = siteline.plots.allowance(client.allowance, [store], days=7).to_pandas()
    read = frame[frame["kind"] == "read"]
    assert read["requests"].sum() == len(store._page_times("line-2"))
    assert len(read) == len(frame), "the ledger counts today's pages of the feed, and no other"
    assert [f"{at:%m-%d}" for at in read["day"]] == ["11-20", "11-21", "11-22", "11-23"]


def test_the_plan_and_the_reserve_stand_on_top_of_today(sandbox, store):
    client, feed = sandbox.client(daily_allowance=100), make_feed()
    client.sync(feed, store)
    sandbox.clock.advance("25h")
    plan = client.plan(feed, store)
    plot = siteline.plots.allowance(client.allowance, store, plan=plan)
    frame = plot.to_pandas()
    kinds = frame.groupby("kind")["requests"].sum()
    assert kinds["planned"] == plan.pages > 0
    assert kinds.get("reserved", 0) == plan.reserve
    expected = client.allowance.used + plan.pages + plan.reserve
    assert f"expected at the end of the day: {expected} of 100" in texts(plot)


def test_the_pace_of_the_day_is_that_of_its_beginning(sandbox, store):
    client = sandbox.client(daily_allowance=20)
    client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z", interval="1h",
                page_size=12).collect()  # fmt: skip
    used = client.allowance.used
    assert used == 6
    plot = siteline.plots.allowance(client.allowance, now="2026-11-20T06:00Z")
    # Four times as much in four times as long; 20 are reached after 20 hours.
    said = "at the pace so far 24 of 20 at the end of the day: used up 20:00 UTC"
    assert said in texts(plot)
    assert said[1:] in plot.alt
    assert "today at the pace so far, 24" in texts(plot)
    pace = plot.to_pandas().set_index("kind").loc["pace"]
    assert (pace["part"], pace["requests"]) == ("at the pace so far", 24 - used)
    noon = siteline.plots.allowance(client.allowance, now=datetime(2026, 11, 20, 12, tzinfo=UTC))
    assert "at the pace so far 12 of 20 at the end of the day" in texts(noon)


def test_the_line_of_the_pace_does_not_cross_the_number_of_the_day():
    known = Allowance(47, 100, 53, NOW_TIME + timedelta(days=1), 3, 1)
    for minutes in (61, *range(180, 1_440, 60)):
        plot = siteline.plots.allowance(known, now=NOW_TIME + timedelta(minutes=minutes))
        dashes = [path.get("d") for path in parsed(plot.svg()).iter(f"{SVG}path")
                  if path.get("stroke-dasharray") and "H" in path.get("d")]  # fmt: skip
        # A pace far above the limit is named and not drawn.
        assert len(dashes) == (minutes != 61)
        [number] = [box for box in estimated(plot.svg())[0] if box.text == "47"]
        for line in dashes:
            at = float(line.split()[1].partition("H")[0])
            assert not number.top < at < number.bottom, minutes


def test_a_pace_needs_a_time_of_the_day_and_some_of_it(sandbox, store):
    client, feed = sandbox.client(daily_allowance=100), make_feed()
    known = client.allowance
    early = siteline.plots.allowance(known, now="2026-11-20T00:59Z")
    assert "the day has hardly begun: it has no pace yet" in texts(early)
    assert "pace" not in early.to_pandas()["kind"].tolist()
    for now in ("2026-11-19T23:59Z", "2026-11-21T00:01Z"):
        with pytest.raises(
            siteline.errors.QueryError, match="is not in the day that ends 2026-11-21"
        ):
            siteline.plots.allowance(known, now=now)
    for now in ("2026-11-20T12:00", "noon", 12):
        with pytest.raises((siteline.errors.QueryError, TypeError), match="now="):
            siteline.plots.allowance(known, now=now)
    sandbox.clock.advance("26h")
    plan = client.plan(feed, store)
    assert "pace so far" in " ".join(texts(siteline.plots.allowance(client.allowance, plan=plan)))
    # A plan of another day than the count tells nothing of this one's pace.
    assert "pace" not in siteline.plots.allowance(known, plan=plan).alt


def test_what_is_not_known_is_said_and_not_drawn(sandbox, store):
    client = sandbox.client()
    plot = siteline.plots.allowance(client.allowance)
    shown = texts(plot)
    assert "no daily allowance is set: what is left is not known" in shown
    assert "no store was given: the days before today, and who spent, are not known" in shown
    assert len(plot.to_pandas()) == 0
    with pytest.raises(siteline.errors.QueryError, match="days=0"):
        siteline.plots.allowance(client.allowance, days=0)
    unknown = client.plan(make_feed(), store)
    assert unknown.pages is None
    shown = texts(siteline.plots.allowance(client.allowance, plan=unknown))
    assert "the plan does not know its pages: nothing is projected" in shown
