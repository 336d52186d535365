"""A short form of ``make campaigns ONLY=crash``: a store after kills and failing disks."""

import math
import sys

import pytest
from crash.campaign import FAILURE_MODES, Campaign
from crash.harness import NAME, Harness, Outcome
from crash.oracle import Broken, Oracle
from crash.plants import WIDE
from crash.power import Call, Disk
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
    assert campaign.reached.missing() == []


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


@pytest.mark.campaign
def test_the_oracle_detects_what_is_wrong(tmp_path, monkeypatch):
    harness = Harness(tmp_path, 7)
    first, oracle, outcome = Oracle(harness), Oracle(harness), harness.run()
    with pytest.raises(Broken, match="I1"):
        first.check(0, Outcome(0, outcome.acknowledged + 1, done=True))
    oracle.check(0, outcome)
    points = oracle.feeds[NAME].points
    key = next(iter(points))
    point = points.pop(key)
    with pytest.raises(Broken, match="1 points too many, 0 missing"):
        oracle.check(0, outcome)
    points |= {key: point, (*key[:5], key[5].replace(year=2031)): point}
    with pytest.raises(Broken, match="0 points too many, 1 missing"):
        oracle.check(0, outcome)
    del points[(*key[:5], key[5].replace(year=2031))]
    points[key] = (1.25, *point[1:])
    with pytest.raises(Broken, match="I3"):
        oracle.check(0, outcome)
    points[key] = point
    requests = harness.requested() + 1
    monkeypatch.setattr(harness, "requested", lambda: requests)
    with pytest.raises(Broken, match="I6: this run made 1 requests"):
        oracle.check(oracle.sequence, Outcome(0, done=True))
    harness.sandbox.close()


@pytest.mark.campaign
def test_a_disk_loses_what_no_sync_has_followed(tmp_path):
    folder, path = str(tmp_path), str(tmp_path / "file")
    disk = Disk.of(tmp_path)
    for call in (
        Call("make", 5, paths=(path,)),
        Call("write", 5, 0, b"one"),
        Call("sync", 5),
        Call("write", 5, 3, b"two"),
        Call("cut", 5, 5),
    ):
        disk.play(call)
    assert disk.state(0, []) == {}, "the name"
    assert disk.state(1, []) == {path: b"one"}
    assert disk.state(1, disk.pending[1:]) == {path: b"one\0\0"}
    assert disk.state(1, disk.pending) == {path: b"onetw"}
    disk.play(Call("sync", tmp_path.stat().st_ino))
    assert disk.state(0, []) == {path: b"one"}
    disk.play(Call("rename", paths=(path, folder + "/other")))
    # The inode of a file that was removed is used again.
    disk.play(Call("unlink", paths=(folder + "/other",)))
    disk.play(Call("make", 5, paths=(path + "2",)))
    disk.play(Call("write", 5, 0, b"new"))
    assert disk.state(0, []) == {path: b"one"}
    assert disk.state(1, []) == {folder + "/other": b"one"}
    assert disk.state(3, disk.pending) == {path + "2": b"new"}
