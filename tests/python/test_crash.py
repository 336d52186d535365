"""A store after kills, failing disks and a loss of power.

`make campaigns ONLY=crash` tries every call and a thousand kills with a random seed. CRASH_SEED
repeats a run.
"""

import os
import random
import sys

import pytest
from crash.campaign import FAILURE_MODES, Campaign
from crash.plants import NARROW, WIDE
from crash.power_trials import PowerTrials
from kit.examples import examples

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        sys.platform != "linux",
        reason="the library that makes calls fail needs LD_PRELOAD of Linux",
    ),
]
SEED = int(os.environ.get("CRASH_SEED") or examples(7, random.SystemRandom().randrange(1 << 32)))


def assert_nothing_broke(results):
    print("seed", SEED, *results, sep="\n")
    for result in results:
        assert result.broken == [], result.name


@pytest.mark.parametrize(
    ("plant", "kills"),
    [(NARROW, examples(2, 1_000)), pytest.param(WIDE, examples(5, 60), marks=pytest.mark.campaign)],
    ids=["narrow", "wide"],
)
def test_a_sync_that_is_killed_at_random_moments_continues_from_its_store(tmp_path, plant, kills):
    result = Campaign(tmp_path, SEED, plant).random_kills(kills)
    assert_nothing_broke([result])
    assert result.interrupted == kills
    # The first run of each store is not killed, and has pages.
    assert result.pages > 0


def test_no_failing_system_call_leaves_anything_to_repair(tmp_path):
    results = list(Campaign(tmp_path, SEED).every_call(examples(400, 1)))
    assert_nothing_broke(results)
    assert [result.name for result in results] == [mode.name for mode in FAILURE_MODES]
    # Faults after the last commit do not interrupt the run.
    assert all(result.trials >= result.interrupted >= 1 for result in results)


@pytest.mark.campaign
def test_recent_points_survive_failing_system_calls(tmp_path):
    campaign = Campaign(tmp_path, SEED, WIDE)
    results = list(campaign.some_calls(examples(1, 20)))
    assert_nothing_broke(results)
    assert len(results) == len(FAILURE_MODES)
    assert campaign.missing() == []
    print(dict(campaign.reached))


def test_a_loss_of_power_takes_nothing_that_was_acknowledged(tmp_path):
    trials = PowerTrials(tmp_path.resolve(), SEED, step=examples(200, 1), samples=examples(1, 4))
    try:
        results = trials.syncs()
        # A backup and a key take few calls, so each of them is tried.
        trials.step = 1
        results += [trials.backup()]
        results += [trials.save(overwrite=overwrite) for overwrite in (False, True)]
    finally:
        trials.close()
    assert_nothing_broke(results)
    assert all(result.trials > 3 for result in results)
    assert results[0].pages > results[0].trials
