"""`Store.forget` and `Store.compact`: removed points, kept points and refusals."""

import json
import os
import subprocess
import sys
import textwrap
import threading

import pandas as pd
import polars as pl
import pytest
import siteline
from crash.harness import SHIM
from kit import systems
from kit.feeds import make_feed, rows_by_key, stored_points
from kit.interrupts import interrupted
from kit.markup import drawn
from kit.preloads import compiled
from kit.ranges import NOW

pytestmark = pytest.mark.once

BEFORE = "2026-11-17T00:00Z"
LATE = "2026-11-19T00:00Z"


@pytest.fixture
def plant(tmp_path):
    """A sandbox, its client, a store that was synced for three days, and the reports."""
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(tmp_path / "plant.siteline") as store:
        client = sandbox.client()
        reports = []
        for _ in range(12):
            reports.append(client.sync(make_feed(), store))
            sandbox.clock.advance("6h")
        yield sandbox, client, store, reports


def since(points, start):
    """Returns the points that are not before a time."""
    return {key: point for key, point in points.items() if key[5] >= pd.Timestamp(start)}


def test_what_was_forgotten_is_gone_and_the_rest_is_as_before(plant):
    _, _, store, _ = plant
    before = stored_points(store)
    freed = store.forget("line-2", before=BEFORE)
    kept = stored_points(store)
    assert kept == since(before, BEFORE)
    assert freed.points == len(before) - len(kept) > 0
    assert freed.bytes > 0
    assert freed.returned == 0
    assert str(freed).startswith(f"{freed.points:,} points and 0 older versions removed: 0.")
    assert len(store.read("line-2")) == len(kept)
    assert store.forget("line-2", before=BEFORE) == siteline.types.Freed(0, 0, 0, 0)
    assert store.forget(make_feed(), before="2026-11-16") == siteline.types.Freed(0, 0, 0, 0)
    store.check()


def test_a_read_of_what_was_forgotten_says_so(plant):
    _, _, store, _ = plant
    store.forget("line-2", before=BEFORE)
    with pytest.raises(
        siteline.errors.UnreadRange, match="forgotten: 2026-11-16T00:00:00Z to"
    ) as caught:
        store.read("line-2", "2026-11-16T00:00Z", "2026-11-18T00:00Z").to_pandas()
    assert "another name" in caught.value.hint
    assert [[str(at) for at in span] for span in caught.value.spans] == [
        ["2026-11-16 00:00:00+00:00", "2026-11-17 00:00:00+00:00"]
    ]
    with pytest.warns(siteline.SitelineWarning, match="forgotten"):
        frame = store.read("line-2", "2026-11-16", "2026-11-18", unread="warn").to_pandas()
    coverage = frame.attrs["siteline"]["coverage"]
    assert coverage["forgotten"] == [["2026-11-16T00:00:00Z", "2026-11-17T00:00:00Z"]]
    assert frame["timestamp"].min() == pd.Timestamp(BEFORE)
    kept = store.read("line-2", "2026-11-16", "2026-11-18", unread="keep").to_pandas()
    assert len(kept) == len(frame)
    schema = store.read("line-2").to_arrow().schema
    assert json.loads(schema.metadata[b"siteline"])["coverage"]["forgotten"] == []


def test_the_coverage_shows_what_was_forgotten(plant):
    sandbox, _, store, reports = plant
    store.forget("line-2", before=BEFORE)
    coverage = store.coverage("line-2", now=sandbox.clock.now())
    assert [window.state for window in coverage[:3]] == ["forgotten", "forgotten", "settled"]
    assert coverage[0].read_at is coverage[0].empty is None
    assert coverage.spans["forgotten"] == pd.Timedelta(days=2)
    assert coverage.read_through == coverage.newest == reports[-1].read_through
    assert "░ forgotten 2 d" in repr(coverage)
    assert "forgotten 2 d" in drawn(coverage).text
    assert store.feeds["line-2"] == make_feed()


def test_a_past_that_is_not_kept_is_refused_and_the_rest_of_it_given(plant):
    _, _, store, reports = plant
    first, last = reports[0], reports[-1]
    as_of = rows_by_key(store.read("line-2", LATE, as_of=first))
    changes = rows_by_key(store.changes("line-2", first, LATE))
    assert changes
    store.forget("line-2", before=BEFORE)
    for call in (
        lambda: store.read("line-2", as_of=first).to_pandas(),
        lambda: store.read("line-2", as_of="2026-11-20T02:00Z").to_polars(),
        lambda: len(store.changes("line-2", since=first)),
        lambda: pl.DataFrame(store.read("line-2", as_of=0)),
    ):
        with pytest.raises(
            siteline.errors.QueryError, match=r"before 2026-11-17T00:00:00Z, the store keeps"
        ):
            call()
    assert rows_by_key(store.read("line-2", LATE, as_of=first)) == as_of
    assert rows_by_key(store.changes("line-2", first, LATE)) == changes
    assert len(store.changes("line-2", since=last)) == 0
    assert rows_by_key(store.read("line-2", as_of=last)) == stored_points(store)


def test_what_cannot_be_forgotten_is_refused(plant, tmp_path):
    _, _, store, _ = plant
    with pytest.raises(siteline.errors.QueryError, match="that were read can be forgotten"):
        store.forget("line-2", before="2027-01-01")
    with pytest.raises(siteline.errors.QueryError, match="before="):
        store.forget("line-2", before=pd.NaT)
    with pytest.raises(siteline.errors.QueryError, match="feed= is empty"):
        store.compact([])
    for call in (lambda: store.forget("line-9", BEFORE), lambda: store.compact("line-9")):
        with pytest.raises(siteline.errors.StoreError, match="line-9"):
            call()
    with siteline.Store(store.path, read_only=True) as reader:
        for call in (lambda: reader.forget("line-2", BEFORE), reader.compact):
            with pytest.raises(siteline.errors.StoreError, match="read_only=True"):
                call()
        reader.check()
    assert stored_points(store)
    store.close()
    with pytest.raises(siteline.errors.ClosedError):
        store.compact()


def test_while_a_sync_runs_its_feed_is_not_forgotten(plant):
    _, client, store, _ = plant
    refused = []

    def meanwhile(_):
        for call in (lambda: store.forget("line-2", BEFORE), store.compact):
            with pytest.raises(siteline.errors.StoreBusy) as caught:
                call()
            refused.append(caught.value)

    client.sync(make_feed(), store, reread=("2026-11-15", "2026-11-16"), progress=meanwhile)
    assert len(refused) >= 2
    assert store.forget("line-2", BEFORE).points > 0


WORK = """
    import sys, siteline
    with siteline.Store(sys.argv[1]) as store:
        if sys.argv[2] == "forget":
            store.forget("line-2", "2026-11-18T00:00Z")
        else:
            store.compact()
"""


def work_under(shim, store, work, **crash):
    """Forgets or compacts in a process with failing system calls; returns its exit status."""
    environment = {**os.environ, "LD_PRELOAD": str(shim), "CRASH_FOLDER": str(store.parent)}
    environment |= {f"CRASH_{name.upper()}": str(value) for name, value in crash.items()}
    command = [sys.executable, "-c", textwrap.dedent(WORK), str(store), work]
    return subprocess.run(command, env=environment, timeout=120, check=False).returncode


@systems.PRELOAD
@pytest.mark.parametrize("trials", [2, pytest.param(12, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("work", ["forget", "compact"])
def test_a_killed_removal_leaves_a_whole_store(tmp_path, work, trials):
    shim = compiled(SHIM, tmp_path)
    original, trial = tmp_path / "plant.siteline", tmp_path / "trial" / "plant.siteline"
    trial.parent.mkdir()
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(original) as store:
        # Windows of an hour, a day in all its versions: several transactions.
        times = {"start": "2026-11-17", "window": "1h", "lateness": "1h"}
        feed = make_feed(interval="1m", page_size=5_000, **times)
        client = sandbox.client()
        for _ in range(3):
            client.sync(feed, store, reread=("2026-11-17T12:00Z", "2026-11-18T12:00Z"))
            sandbox.clock.advance("1h")
        before = stored_points(store)
        kept = before if work == "compact" else since(before, "2026-11-18T00:00Z")
        tally = tmp_path / "tally"
        store.backup(trial)
        assert work_under(shim, trial, work, mode="count", tally=tally) == 0
        calls, states = int(tally.read_text()), []
        for at in [*range(1, calls, calls // trials), calls]:
            for beside in trial.parent.iterdir():
                beside.unlink()
            store.backup(trial)
            mode = "kill" if at % 2 else "torn"
            assert work_under(shim, trial, work, mode=mode, calls="all", at=at) < 0
            with siteline.Store(trial) as left:
                found = stored_points(left)
                assert found in (before, kept), at
                states.append(found == kept)
                left.check()
                left.forget("line-2", "2026-11-18T00:00Z") if work == "forget" else left.compact()
                assert stored_points(left) == kept
                left.check()
        if work == "forget":
            assert states == sorted(states), "from one moment on it is forgotten"
            assert set(states) == {False, True}


def test_the_steps_of_long_work_are_reported(plant, tmp_path, capfd):
    class Enough(Exception):
        pass

    def enough(progress):
        raise Enough

    _, _, store, _ = plant
    for work in (
        store.check,
        lambda progress: store.backup(tmp_path / "copy.siteline", progress=progress),
        lambda progress: store.forget("line-2", BEFORE, progress=progress),
        lambda progress: store.compact(progress=progress),
    ):
        seen = []
        work(progress=seen.append)
        assert (seen[-1].finished, seen[-1].fraction) == (True, 1.0)
        assert all(one.done <= one.total for one in seen)
    points = stored_points(store)
    with pytest.raises(Enough):
        store.backup(tmp_path / "other.siteline", progress=enough)
    with pytest.raises(Enough):
        store.check(progress=enough)
    assert stored_points(store) == points
    # There is no terminal to draw on.
    store.check(progress=True)
    assert capfd.readouterr().err == ""
    with pytest.raises(siteline.errors.QueryError, match="progress="):
        store.check(progress=7)


@systems.SIGNALS
@pytest.mark.parametrize("work", ["backup", "compact"])
def test_ctrl_c_ends_long_work_on_a_store(plant, tmp_path, work):
    _, _, store, _ = plant
    count, begun = len(store.read("line-2")), threading.Event()
    copy = tmp_path / "copies" / "copy.siteline"
    copy.parent.mkdir()

    def started(progress):
        begun.set()

    def repeat():
        while True:
            copy.unlink(missing_ok=True)
            if work == "backup":
                store.backup(copy, progress=started)
            else:
                store.compact(progress=started)

    assert interrupted(repeat, when=begun.wait)
    store.check()
    assert len(store.read("line-2")) == count
    assert [name for name in os.listdir(copy.parent) if "part" in name] == []
