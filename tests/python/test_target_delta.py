"""`siteline.targets.Delta`: the points of a `Store` in a Delta table, wherever it is killed."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
import siteline
from crash.plants import SINCE, Plant
from kit.feeds import counts, stored_points
from kit.target_rows import KEY, VALUES, points_by_key
from siteline.targets import Delta

deltalake = pytest.importorskip("deltalake", "1.6")

PLANT = Plant("small", ("L1", "L2"), 150, "90m", "1d", range(1), (), series=5)
FEEDS = [siteline.Feed(**one) for one in PLANT.feeds()[::-1]]
FIRST = FEEDS[0].name


@pytest.fixture
def plant():
    """A service with late, revised and withdrawn points."""
    with PLANT.start(3) as sandbox:
        yield sandbox


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lake" / "points"


@pytest.fixture
def target(path):
    return Delta(path)


def points(path, feed=FIRST):
    """The points that another reader finds: those not withdrawn, and those withdrawn."""
    table = deltalake.DeltaTable(path).to_pyarrow_table(filters=[("feed", "=", feed)])
    return [
        points_by_key(table.filter(pa.compute.field("withdrawn") == of)) for of in (False, True)
    ]


def of_store(store, feed=FIRST):
    return [stored_points(store, feed, unread="keep", withdrawn=of) for of in ("drop", "only")]


def files(path):
    return sorted(map(str, Path(path).rglob("*.parquet")))


def test_a_page_that_changes_nothing_writes_no_file_of_points(plant, target, path):
    plant.clock.advance("30h")
    client, day = plant.client(), (SINCE, "2026-11-02T00:00Z")
    client.sync(FEEDS[0], target)
    before, state = files(path), target.state(FIRST)
    report = client.sync(FEEDS[0], target, reread=day)
    assert counts(report) == (0, 0, report.unchanged, 0) != (0, 0, 0, 0)
    assert files(path) == before
    assert target.state(FIRST) != state


def test_files_of_other_days_and_feeds_are_neither_read_nor_written(plant, target, path):
    plant.clock.advance("80h")
    client, day = plant.client(), "2026-11-03"
    client.sync(FEEDS, target)
    one = next(key for key in points(path)[0] if str(key[5]).startswith(day))
    others = {of for of in files(path) if f"feed={FIRST}/day={day}" not in of}
    for of in others:
        Path(of).write_bytes(b"whoever reads this gets an error")
    plant.withdraw(one[5], line=one[1], machine=one[2], tag=one[4])
    report = client.sync(FEEDS[0], target, reread=(day, "2026-11-04"))
    assert counts(report) == (0, 0, report.unchanged, 1) != (0, 0, 0, 1)
    assert others < {uri.removeprefix("file://") for uri in deltalake.DeltaTable(path).file_uris()}


@pytest.mark.once
@pytest.mark.parametrize("batch", [3, pytest.param(None, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("method", ["put", "append", "merge"])
def test_a_kill_before_or_after_any_write_loses_nothing(
    plant, store, target, path, monkeypatch, method, batch
):
    client, write, calls, kills = plant.client(), getattr(target._lake, method), [], 0
    target.batch = batch or target.batch

    def killed(*arguments, **options):
        """Kills every third call, by turns before it and after it."""
        calls.append(method)
        if len(calls) % 6 != 3:
            write(*arguments, **options)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(target._lake, method, killed)
    for hours in (30, 20, 31):
        plant.clock.advance(f"{hours}h")
        client.sync(FEEDS[0], store)
        while True:
            try:
                client.sync(FEEDS[0], target)
                break
            except KeyboardInterrupt:
                kills += 1
        assert points(path) == of_store(store)
    assert kills > 0


def test_a_state_that_no_commit_names_does_not_count(target, path):
    with target.lock(FIRST):
        target.apply(FIRST, None, b"1")
        for number in range(5):
            target._lake.put(
                "_states", feed=FIRST, number=2**62 + number, state=b"of a killed process"
            )
        assert target.state(FIRST) == b"1"
        target.apply(FIRST, None, b"2")
    with target.lock(FIRST):
        pass  # removes what is older
    assert Delta(path).state(FIRST) == b"2"
    states = deltalake.DeltaTable(f"{path}_states").to_pyarrow_table()["state"]
    assert set(states.to_pylist()) == {b"2", b"of a killed process"}
    deltalake.DeltaTable(f"{path}_states").delete()
    with pytest.raises(siteline.errors.StoreCorrupt, match="lacks the state of the feed 'line-2'"):
        target.state(FIRST)


def test_states_and_offsets_outlive_the_log(target, path):
    with target.lock("a"), target.lock("b"):
        target.apply("a", None, b"of a")
        assert target.offset("one", "a") == 0
        for number in (7, 5):
            target.set_offset("one", "a", number)
        target.set_offset("two", "a", 9)
        target.apply("b", None, b"of b")
    table = deltalake.DeltaTable(path)
    table.create_checkpoint()
    for entry in Path(path, "_delta_log").glob("*.json"):
        if entry.stem != f"{table.version():020}":
            entry.unlink()
    assert Delta(path).state("a") == b"of a"
    assert [target.offset(*of) for of in (("one", "a"), ("two", "a"), ("one", "b"))] == [5, 9, 0]


def test_of_two_syncs_of_a_feed_the_second_to_commit_fails(target, path, monkeypatch):
    other, put = Delta(path), target._lake.put
    with target.lock(FIRST):
        with pytest.raises(siteline.errors.StoreBusy, match="of this process"), other.lock(FIRST):
            pass
        target.apply(FIRST, None, b"1")
        other.apply(FIRST, None, b"2")  # as a process does, which does not see this lock
        with pytest.raises(siteline.errors.StoreBusy, match="Another process has synced"):
            target.apply(FIRST, None, b"3")
        assert target.state(FIRST) == b"2"

    def overtaken(*arguments, **options):
        put(*arguments, **options)
        other.apply(FIRST, None, b"4")

    with target.lock(FIRST):
        monkeypatch.setattr(target._lake, "put", overtaken)
        with pytest.raises(siteline.errors.StoreBusy, match="Another process has synced"):
            target.apply(FIRST, None, b"5")
        assert target.state(FIRST) == b"4"


def test_a_page_is_compared_again_after_a_commit_of_others(plant, store, target, path, monkeypatch):
    target.batch = 1
    client, put, other, done = plant.client(), target._lake.put, Delta(path), []

    def overtaken(*arguments, **options):
        put(*arguments, **options)
        if len(done) % 4 == 0:
            other.compact()
        elif len(done) % 4 == 2:
            client.sync(FEEDS[1], other, max_pages=1)
        done.append(1)

    monkeypatch.setattr(target._lake, "put", overtaken)
    for hours in (30, 31):
        plant.clock.advance(f"{hours}h")
        assert counts(client.sync(FEEDS[0], target)) == counts(client.sync(FEEDS[0], store))
    assert points(path) == of_store(store)
    assert len(done) > 8


def test_changes_need_the_log_of_the_table(plant, target, monkeypatch):
    sequences = []
    for hours in (30, 20):
        plant.clock.advance(f"{hours}h")
        sequences.append(plant.client().sync(FEEDS[0], target)[FIRST].sequence)
        target.compact()
    assert points_by_key(target.changes(FIRST, sequences[0], old=True)) != {}
    assert points_by_key(target.changes(FIRST, sequences[1], old=True)) == {}
    monkeypatch.setattr(deltalake.DeltaTable, "history", lambda table: [])
    with pytest.raises(siteline.errors.QueryError, match="log no longer has"):
        target.changes(FIRST, sequences[0], old=True)


def test_null_equals_null_in_ids_but_not_empty_text(target, path):
    with target.lock(FIRST):
        for write, number in ((target._lake.append, 1), (target._lake.merge, 2)):
            ids = dict.fromkeys(KEY[:5], pa.array([None, ""]))
            times = pa.array([0, 0], pa.timestamp("us", "UTC"))
            numbers = dict.fromkeys(VALUES, pa.array([float(number), number + 10]))
            page = pa.table({**ids, "timestamp": times, **numbers})
            rows = target._lake.marked(page, FIRST, number, number, False)
            table, feed = target._lake.open(), [FIRST] if number == 2 else []
            write(table, *feed, rows, target._lake.commit(number, FIRST))
    assert sorted(points(path)[0].values()) == [(2.0, 2.0, 2.0, 2), (12.0, 12.0, 12.0, 12)]


def test_compact_joins_files_and_deletes_what_nothing_needs(plant, target, path):
    for _ in range(4):
        plant.clock.advance("5h")
        plant.client().sync(FEEDS, target)
    before, state = points(path), target.state(FIRST)
    orphan = Path(files(path)[0]).with_name("of-a-killed-process.parquet")
    orphan.touch()
    os.utime(orphan, (1, 1))
    target.compact()
    assert not orphan.exists()
    kept = deltalake.DeltaTable(path).file_uris()
    assert len(kept) == len({Path(uri).parent for uri in kept}) < len(files(path))
    assert (points(path), target.state(FIRST)) == (before, state)


def test_a_table_that_another_process_makes_at_the_same_time_is_used(
    plant, target, path, monkeypatch
):
    make, made = deltalake.DeltaTable.create, []

    def make_twice(*arguments, **options):
        made.append(make(*arguments, **options))
        if len(made) == 1:
            raise deltalake.exceptions.CommitFailedError("Protocol changed since last commit")
        return made[-1]

    monkeypatch.setattr(deltalake.DeltaTable, "create", make_twice)
    plant.clock.advance("30h")
    assert plant.client().sync(FEEDS[0], target).complete
    assert len(made) == 2
    assert points(path)[0]
