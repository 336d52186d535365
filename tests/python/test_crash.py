"""A short form of ``make crash``: the contents of a store after kills and failing disks."""

import math
import os
import sys

import pytest
import siteline
from crash.campaign import FAILURE_MODES, Campaign
from crash.harness import NAME, Harness, Outcome
from crash.oracle import Broken, Oracle
from crash.plants import WIDE
from crash.power import Call, Disk
from crash.power_trials import PowerTrials
from crash.reached import Reached

IS_LONG = bool(os.environ.get("SITELINE_LONG"))
"""Set by ``make faults-long``."""

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        sys.platform != "linux",
        reason="the library that makes calls fail needs LD_PRELOAD of Linux",
    ),
]


@pytest.mark.fault("S1", "B7")
def test_a_sync_that_is_killed_at_random_moments_continues_from_its_store(tmp_path):
    kills = 1_000 if IS_LONG else 10
    result = Campaign(tmp_path, 7, math.inf).random_kills(kills)
    assert (result.interrupted, result.broken) == (kills, [])
    # The first run of each store is not killed, and has pages.
    assert result.pages > 0


@pytest.mark.fault("S2", "S3", "S4")
def test_no_failing_system_call_leaves_anything_to_repair(tmp_path):
    results = list(Campaign(tmp_path, 7, math.inf).every_call(23))
    assert [result.name for result in results] == [mode.name for mode in FAILURE_MODES]
    for result in results:
        assert result.broken == [], result.name
        assert result.trials == result.wanted, result.name
        # Faults after the last commit do not interrupt the run.
        assert result.interrupted >= 1, result.name


def test_recent_points_survive_failing_system_calls(tmp_path):
    campaign = Campaign(tmp_path, 7, math.inf, WIDE)
    results = list(campaign.some_calls(1))
    assert len(results) == len(FAILURE_MODES)
    for result in results:
        assert (result.trials, result.broken) == (1, []), result.name
    assert campaign.reached.missing() == []


def test_a_campaign_says_what_it_has_not_reached():
    reached = Reached()
    assert len(reached.missing()) == 2
    reached.count_kill({(1, 7)}, cost=2)
    reached.count_rows({(1, 7)}, {(1, 7), (1, 8)})
    assert reached.missing() == ["no run moved recent points into blocks"]
    reached.count_rows({(1, 7), (1, 8)}, {(1, 9)})
    assert reached.missing() == []
    assert (reached.with_several, reached.moves, reached.moved) == (1, 1, 2)


@pytest.mark.fault("S14")
def test_a_loss_of_power_takes_nothing_that_was_acknowledged(tmp_path):
    trials = PowerTrials(tmp_path.resolve(), 7, step=32)
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


@pytest.fixture
def synced(tmp_path):
    """A store that was synced once, and its oracle before any check."""
    harness = Harness(tmp_path, 7)
    oracle = Oracle(harness)
    outcome = harness.run()
    yield harness, oracle, outcome
    harness.sandbox.close()


def test_the_oracle_accepts_a_correct_store(synced):
    _, oracle, outcome = synced
    oracle.check(0, outcome)
    assert outcome.done
    assert oracle.feeds[NAME].points


def test_the_oracle_detects_missing_and_additional_points(synced):
    _, oracle, outcome = synced
    oracle.check(0, outcome)
    points = oracle.feeds[NAME].points
    key = next(iter(points))
    point = points.pop(key)
    with pytest.raises(Broken, match="1 points too many, 0 missing"):
        oracle.check(0, outcome)
    points |= {key: point, (*key[:5], key[5].replace(year=2031)): point}
    with pytest.raises(Broken, match="0 points too many, 1 missing"):
        oracle.check(0, outcome)


def test_the_oracle_detects_a_changed_value(synced):
    _, oracle, outcome = synced
    oracle.check(0, outcome)
    points = oracle.feeds[NAME].points
    key = next(iter(points))
    points[key] = (1.25, *points[key][1:])
    with pytest.raises(Broken, match="I3"):
        oracle.check(0, outcome)


def test_the_oracle_detects_a_lost_page_that_was_acknowledged(synced):
    _, oracle, outcome = synced
    with pytest.raises(Broken, match="I1"):
        oracle.check(0, Outcome(0, outcome.acknowledged + 1, done=True))


def test_the_oracle_counts_requests(synced):
    harness, oracle, outcome = synced
    clock = siteline.Clock(harness.sandbox.clock.now().isoformat())
    client = harness.sandbox.client(clock=clock)
    client.data(site="S1", start="2026-11-01T00:00Z", interval="1h").collect()
    with pytest.raises(Broken, match="I5"):
        oracle.check(0, outcome)


def test_the_oracle_detects_a_page_that_is_requested_again(synced, monkeypatch):
    harness, oracle, outcome = synced
    requests = harness.requested() + 1
    monkeypatch.setattr(harness, "requested", lambda: requests)
    with pytest.raises(Broken, match="I6: this run made 1 requests"):
        oracle.check(0, outcome)


def test_the_oracle_detects_another_past(synced):
    _, oracle, outcome = synced
    oracle.check(0, outcome)
    oracle.remember(NAME)
    oracle.check(oracle.sequence - outcome.acknowledged, outcome)
    oracle.feeds[NAME].past = (1, dict(oracle.feeds[NAME].points))
    with pytest.raises(Broken, match="as of page 1: 0 points too many"):
        oracle.check(oracle.sequence - outcome.acknowledged, outcome)


def test_the_oracle_compares_the_counts_of_the_page_log(synced):
    _, oracle, outcome = synced
    truth = oracle.feeds[NAME].truth
    with oracle.file() as store:
        query = 'SELECT start, "end", read_at FROM pages WHERE sequence = 1'
        page = truth("L1", *store.execute(query).fetchone())[:40]
    oracle.feeds[NAME].points |= {key: (0.0, *values[1:]) for key, values in page}
    with pytest.raises(Broken, match="brought 40 new points and 0 new values, and not 0 and 40"):
        oracle.check(0, outcome)


def test_the_oracle_does_not_accept_a_late_window_as_settled(synced, monkeypatch):
    harness, oracle, outcome = synced
    oracle.check(0, outcome)
    with siteline.Store(harness.store) as store:
        coverage = store.coverage(NAME, now=harness.sandbox.clock.now())
    assert any(window.state == "provisional" for window in coverage)
    monkeypatch.setattr(harness, "run", lambda: Outcome(0, 0, done=True))
    with pytest.raises((Broken, ValueError)):
        oracle.check_end()
