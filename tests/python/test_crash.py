"""A short form of ``make campaigns ONLY=crash``: a store after kills and failing disks."""

import math
import sys

import pytest
from crash.campaign import FAILURE_MODES, Campaign
from crash.plants import WIDE
from crash.power_trials import PowerTrials

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        sys.platform != "linux",
        reason="the library that makes calls fail needs LD_PRELOAD of Linux",
    ),
]
LONG = pytest.mark.campaign


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=LONG)])
def test_a_sync_that_is_killed_at_random_moments_continues_from_its_store(tmp_path, kills):
    result = Campaign(tmp_path, 7, math.inf).random_kills(kills)
    assert (result.interrupted, result.broken) == (kills, [])
    # The first run of each store is not killed, and has pages.
    assert result.pages > 0


@pytest.mark.parametrize("step", [400, pytest.param(23, marks=LONG)])
def test_no_failing_system_call_leaves_anything_to_repair(tmp_path, step):
    results = list(Campaign(tmp_path, 7, math.inf).every_call(step))
    assert [result.name for result in results] == [mode.name for mode in FAILURE_MODES]
    for result in results:
        assert result.broken == [], result.name
        assert result.trials == result.wanted, result.name
        # Faults after the last commit do not interrupt the run.
        assert result.interrupted >= 1, result.name


@pytest.mark.campaign
def test_recent_points_survive_failing_system_calls(tmp_path):
    campaign = Campaign(tmp_path, 7, math.inf, WIDE)
    results = list(campaign.some_calls(1))
    assert len(results) == len(FAILURE_MODES)
    for result in results:
        assert (result.trials, result.broken) == (1, []), result.name
    assert campaign.missing() == []


@pytest.mark.parametrize(("step", "samples"), [(200, 1), pytest.param(32, 4, marks=LONG)])
def test_a_loss_of_power_takes_nothing_that_was_acknowledged(tmp_path, step, samples):
    trials = PowerTrials(tmp_path.resolve(), 7, step=step, samples=samples)
    try:
        results = trials.syncs()
        # A backup and a key take few calls, so each of them is tried.
        trials.step = 1
        results += [trials.backup()]
        results += [trials.save(overwrite=overwrite) for overwrite in (False, True)]
    finally:
        trials.close()
    for result in results:
        assert result.broken == [], result.name
        assert result.trials > 3, result.name
    assert results[0].pages > results[0].trials
