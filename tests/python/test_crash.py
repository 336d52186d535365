"""The campaign of ``make crash``, in short: what is in a store after kills and failing disks."""

import math
import sys

import pytest
import siteline
from crash.campaign import FAILURE_MODES, Campaign
from crash.harness import NAME, Harness, Outcome
from crash.oracle import Broken, Oracle

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the library that lets calls fail is preloaded as Linux does"
)


@pytest.mark.fault("S1", "B7")
def test_a_sync_that_is_killed_at_random_moments_goes_on_where_its_store_is(tmp_path):
    result = Campaign(tmp_path, 7, math.inf).random_kills(25)
    assert (result.interrupted, result.broken) == (25, [])
    # Its first run is not killed, and has pages.
    assert result.pages > 0


@pytest.mark.fault("S2", "S3", "S4")
def test_no_system_call_that_goes_wrong_leaves_anything_to_repair(tmp_path):
    results = list(Campaign(tmp_path, 7, math.inf).every_call(11))
    assert [result.name for result in results] == [mode.name for mode in FAILURE_MODES]
    for result in results:
        assert result.broken == [], result.name
        assert result.trials == result.wanted, result.name
        # What is written of the log after the last commit strikes nobody any more.
        assert result.interrupted >= 1, result.name


@pytest.fixture
def lived(tmp_path):
    """A store that was synced once, and its oracle, which has not looked yet."""
    harness = Harness(tmp_path, 7)
    oracle = Oracle(harness)
    outcome = harness.run()
    yield harness, oracle, outcome
    harness.sandbox.close()


def test_the_oracle_is_content_with_a_store_that_is_right(lived):
    _, oracle, outcome = lived
    oracle.check(0, outcome)
    assert outcome.done
    assert oracle.points


def test_the_oracle_misses_a_point_and_sees_one_too_many(lived):
    _, oracle, outcome = lived
    oracle.check(0, outcome)
    key = next(iter(oracle.points))
    point = oracle.points.pop(key)
    with pytest.raises(Broken, match="1 points too many, 0 missing"):
        oracle.check(0, outcome)
    oracle.points |= {key: point, (*key[:5], key[5].replace(year=2031)): point}
    with pytest.raises(Broken, match="0 points too many, 1 missing"):
        oracle.check(0, outcome)


def test_the_oracle_sees_another_value(lived):
    _, oracle, outcome = lived
    oracle.check(0, outcome)
    key = next(iter(oracle.points))
    oracle.points[key] = (1.25, *oracle.points[key][1:])
    with pytest.raises(Broken, match="I3"):
        oracle.check(0, outcome)


def test_the_oracle_hears_of_a_page_that_was_acknowledged_and_is_gone(lived):
    _, oracle, outcome = lived
    with pytest.raises(Broken, match="I1"):
        oracle.check(0, Outcome(0, outcome.acknowledged + 1, done=True))


def test_the_oracle_counts_requests(lived):
    harness, oracle, outcome = lived
    clock = siteline.Clock(harness.sandbox.clock.now().isoformat())
    client = harness.sandbox.client(clock=clock)
    client.data(site="S1", start="2026-11-01T00:00Z", interval="1h").collect()
    with pytest.raises(Broken, match="I5"):
        oracle.check(0, outcome)


def test_the_oracle_does_not_take_a_late_window_for_settled(lived, monkeypatch):
    harness, oracle, outcome = lived
    oracle.check(0, outcome)
    with siteline.Store(harness.store) as store:
        coverage = store.coverage(NAME, now=harness.sandbox.clock.now())
    assert any(window.state == "provisional" for window in coverage)
    monkeypatch.setattr(harness, "run", lambda: Outcome(0, 0, done=True))
    with pytest.raises((Broken, ValueError)):
        oracle.check_end()
