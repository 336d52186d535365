"""The simulation of a plant: a small feed has as many pages as the feed that it stands for."""

from datetime import timedelta

import pytest
import siteline

pytest.importorskip("pandas")
pytest.importorskip("numpy")

from scale import count, plant
from scale.allowance import fill_days

pytestmark = pytest.mark.once

HISTORY = 3


@pytest.fixture(autouse=True)
def _few_days(monkeypatch):
    for module in (count, plant):
        monkeypatch.setattr(module, "HISTORY", HISTORY)
    monkeypatch.setattr(count, "SINCE", plant.SINCE + timedelta(days=30 - HISTORY))


@pytest.mark.parametrize("reading", [count.HOURLY, count.ONCE], ids=lambda reading: reading.name)
def test_a_feed_of_fewer_series_and_smaller_pages_costs_as_many_requests(reading):
    line = plant.CUTS[0]
    assert line.scaled(1_000) == (1, 50)

    small = count.counted(line, 1_000, reading)

    assert small == count.counted(line, 1_000, reading, is_scaled=False)
    assert small.fill >= HISTORY * 1_440 * plant.TAGS // 1_000


def test_the_classes_of_a_day_are_those_of_the_plan():
    counts = count.counted(plant.CUTS[0], 10_000, count.HOURLY)

    # An hour and its overlap are 2,400 points, a day is 28,800.
    assert counts.day == {"edge": 24, "settle": 3}
    assert counts.reads == 3


def test_a_page_that_no_plan_has_is_an_error(sandbox, client):
    target = count.Classified()
    feed = siteline.Feed("feed", site="S1", interval="1h", since="2026-11-19T00:00Z")

    with pytest.raises(RuntimeError, match="was not planned"):
        client.sync(feed, target)


def test_an_allowance_below_what_a_day_needs_is_not_enough(monkeypatch):
    monkeypatch.setattr("scale.allowance.MOST_DAYS", 6)
    monkeypatch.setattr("scale.allowance.HISTORY", HISTORY)
    wide = plant.CUTS[2]
    a_day = count.counted(wide, 50_000, count.NIGHTLY).total * wide.feeds

    assert fill_days(wide, 50_000, count.NIGHTLY, a_day - wide.feeds) is None
    assert fill_days(wide, 50_000, count.NIGHTLY, 10 * a_day) == 1
