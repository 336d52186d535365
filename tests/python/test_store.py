"""`siteline.Store`: reading its points and changes, its errors, and its use in other processes."""

import copy
import os
import pickle
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import siteline
from kit import systems
from kit.feeds import make_feed
from kit.markup import read_html
from kit.ranges import NOW

DAY = ("2026-11-16T00:00Z", "2026-11-17T00:00Z")
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A sandbox, its client, a store that was synced once and the report of it."""
    path = tmp_path_factory.mktemp("store") / "plant.siteline"
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path) as store:
        client = sandbox.client()
        yield sandbox, client, store, client.sync(make_feed(), store)


@pytest.fixture
def store(filled):
    return filled[2]


@pytest.fixture
def frame(store):
    return store.read("line-2").to_pandas()


def test_a_store_is_a_context_manager_with_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with siteline.Store("plant.siteline") as store:
        assert store.path == tmp_path / "plant.siteline"
        assert repr(store) == f"<Store {store.path}>"
        assert store.feeds == {}
        assert "0 feeds" in read_html(store).text
    store.close()
    assert "closed" in read_html(store).text
    for call in (lambda: store.feeds, store.check, lambda: len(store.read("line-2"))):
        with pytest.raises(siteline.errors.ClosedError):
            call()
    assert siteline.Store(Path("plant.siteline")).feeds == {}


def test_only_a_sync_makes_the_file(filled, tmp_path):
    (_, client, store, _), feed = filled, make_feed()
    typo = siteline.Store(tmp_path / "plant.sitelin")
    (tmp_path / "plant.siteline").touch()
    (tmp_path / "plant.siteline-wal").touch()
    for call in (
        lambda: typo.read(feed),
        lambda: typo.changes(feed, since=0),
        lambda: typo.coverage(feed),
        lambda: typo.lateness(feed),
        typo.series,
        typo.check,
        lambda: siteline.Store(typo.path, read_only=True),
    ):
        with pytest.raises(siteline.errors.StoreError, match="There is no store") as caught:
            call()
        assert str(typo.path) in str(caught.value)
        assert "Nearest: 'plant.siteline'. " in caught.value.hint
    assert typo.feeds == {}
    assert typo.state(feed) is None
    assert client.plan(feed, typo).tasks
    part = {"site": "S1", "line": "L2", "interval": "1h", "start": "2026-11-15"}
    scan = client.scan(**part, end="2026-11-16", store=typo)
    empty = siteline.Store(tmp_path / "empty.siteline", share="group-read")
    days = [client.scan(**part, end="2026-11-20", store=one) for one in (typo, empty)]
    plans = list(map(client.plan, days))
    assert plans[0].to_dict() == plans[1].to_dict()
    assert len(plans[0].tasks) > 1
    for wrong in ({"split": 2}, {"keep_raw": True}, {"extra_columns": ["quality"]}):
        with pytest.raises(siteline.errors.QueryError, match="store"):
            client.scan(**part, **wrong, store=typo)
    assert (scan.partial, scan.report.pages) == (None, 0)
    assert not typo.path.exists()
    again = pickle.loads(pickle.dumps(typo))
    assert scan.collect().report.through
    assert typo.path.exists()
    client.sync(feed, typo)
    assert len(again.read(feed)) == len(store.read(feed))
    assert len(typo.read(feed)) == len(store.read(feed))
    again = client.scan(**part, end="2026-11-20", store=siteline.Store(typo.path))
    assert client.plan(days[0]).to_dict() == client.plan(again).to_dict() != plans[0].to_dict()


def test_a_read_of_another_file_has_its_scan(client, tmp_path):
    store = siteline.Store(tmp_path / "plant.siteline")
    scan = client.scan(site="S1", start="2026-11-15", end="2026-11-16", store=store)
    store.path.write_text("notes" * 999)
    with pytest.raises(siteline.errors.StoreError, match="not a store") as caught:
        scan.collect()
    assert caught.value.scan is scan


@pytest.mark.parametrize("wrong", [{"share": ""}, {"share": False}, {"read_only": 0}])
def test_a_wrong_setting_is_refused_before_a_sync(tmp_path, wrong):
    with pytest.raises((TypeError, siteline.errors.ConfigError)):
        siteline.Store(tmp_path / "plant.siteline", **wrong)


def test_the_path_is_the_same_before_and_after_the_file_is_made(client, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    store = siteline.Store(tmp_path / "data" / ".." / "link" / "plant.siteline")
    assert store.path == tmp_path.resolve() / "data" / "plant.siteline"
    client.sync(make_feed(), store)
    assert siteline.Store(store.path).path == store.path


def test_the_nearest_files_are_stores_and_a_folder_need_not_be_readable(tmp_path, monkeypatch):
    for ending in ("", "-wal", "-shm", "-lock", "-journal"):
        (tmp_path / f"plant.siteline{ending}").touch()
    typo = siteline.Store(tmp_path / "plan.siteline")
    with pytest.raises(siteline.errors.StoreError) as caught:
        typo.check()
    assert caught.value.hint.startswith("Nearest: 'plant.siteline'. ")

    def refuse(folder):
        raise PermissionError(folder)

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(siteline.errors.StoreError, match="There is no store"):
        typo.check()


def test_the_error_for_a_missing_feed_names_the_existing_ones(store):
    for call in (
        lambda: store.read("line-9"),
        lambda: store.changes("line-9", since=0),
        lambda: store.changes("line-9", since="-1d"),
        lambda: store.read("line-9", as_of=0),
        lambda: store.coverage("line-9"),
        lambda: store.lateness("line-9"),
    ):
        with pytest.raises(siteline.errors.StoreError, match=r"(?s)line-9.*Its feeds: line-2\."):
            call()


def test_a_path_that_is_no_store_is_an_error(tmp_path):
    with pytest.raises(siteline.errors.StoreError, match="nowhere"):
        siteline.Store(tmp_path / "nowhere" / "plant.siteline")
    for wrong, named in ((7, "int"), (None, "None"), (b"plant.siteline", "bytes")):
        with pytest.raises(TypeError, match=f"path= .*{named}"):
            siteline.Store(wrong)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(siteline.errors.StoreError, match="a device or a pipe"):
            siteline.Store(tmp_path / "pipe")


def after_noon(table):
    # polars 1.32 cannot filter a scan with a label column.
    return table.lazy().select("timestamp").filter(pl.col("timestamp") >= NOON).collect()


def test_a_range_that_is_not_settled_is_a_warning(filled):
    _, _, store, report = filled
    through, start, hour = report.settled_through, DAY[0], timedelta(hours=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bounds in ((), (start, through)):
            table = store.read("line-2", *bounds, final=True)
            assert table.report.complete
            part = after_noon(table)
            assert part["timestamp"].min() == NOON
            assert f" to {through:%Y-%m-%dT%H:%M:%SZ}>" in repr(table).partition("settled: ")[2]
    for end in (None, through + hour, "2030-01-01"):
        with pytest.warns(siteline.SitelineWarning, match="only settled points are ret") as caught:
            table = store.read("line-2", start, end, final=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            after_noon(table)
        assert len(caught) == 1
        assert f"not settled: {through:%Y-%m-%dT%H:%M:%SZ} to " in repr(table)
        assert table.report.complete is False
        assert store.read("line-2", start, through).report.complete


def test_changes_are_the_points_of_a_later_sync(tmp_path):
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(tmp_path / "s.siteline") as store:
        client, feed = sandbox.client(), make_feed()
        first = client.sync(feed, store)
        before = store.read(feed).to_pandas()
        sandbox.clock.advance("1d")
        second = client.sync(feed, store)
        changes = store.changes(feed, since=first).to_pandas()
        assert list(changes.columns)[-1] == "change"
        changed = store.changes(feed, since=first)
        counted = changes["change"].value_counts()
        assert counted["new"] == second.inserted
        assert counted["revised"] == second.revised
        assert store.read(feed, as_of=first).to_pandas().equals(before)
        page = np.int64(first["line-2"].sequence)
        assert store.read(feed, as_of=page).to_pandas().equals(before)
        assert len(store.read(feed, as_of=second)) == len(store.read(feed))
        assert len(store.read(feed, as_of="2026-11-20T12:00Z")) == len(before)
        with pytest.raises(siteline.errors.UnreadRange, match="no range has been read"):
            len(store.read(feed, as_of="2026-01-01T00:00Z"))
        assert len(store.changes(feed, since=second)) == 0
        assert len(store.changes(feed, since=0)) == len(store.read(feed))
        assert store.changes(feed, first).to_polars()["change"].to_list() == list(changes["change"])
        assert len(changed) == len(changes)
        revised = duckdb.sql("select count(*) from changed where change = 'revised'").fetchall()
        assert revised == [(second.revised,)]
        assert next(iter(store.changes(feed, first).records()))["change"] in {"new", "revised"}


def test_a_report_of_another_feed_and_a_future_number_are_refused(filled):
    _sandbox, client, store, report = filled
    other = client.sync(make_feed("line-1", line="L1", start="2026-11-19T00:00Z"), store)
    for call in (store.changes, lambda feed, at: store.read(feed, as_of=at)):
        for given, match in ((other, "not of the feed 'line-2'"), (10**6, "does not exist yet"),
                             (-1, "sequence number"), (True, "SyncReport"),
                             (1.5, "SyncReport"), (type(other), "SyncReport")):  # fmt: skip
            with pytest.raises(siteline.errors.QueryError, match=match):
                call("line-2", given)
    with pytest.raises(siteline.errors.QueryError, match="SyncReport"):
        store.changes("line-2", None)
    with pytest.raises(siteline.errors.QueryError, match="feed="):
        store.read(7)
    with pytest.raises(siteline.errors.QueryError, match="withdrawn="):
        store.read("line-2", withdrawn="hide")
    assert store.changes("line-2", report["line-2"]) is not None


def test_a_store_and_its_points_are_pickled_by_path(store, frame):
    again = pickle.loads(pickle.dumps(store))
    assert again.path == store.path
    assert again.feeds == store.feeds
    assert copy.copy(store) is copy.deepcopy(store) is store
    for points in (
        store.read("line-2", *DAY, final=True),
        store.read("line-2", unread="keep", as_of=2),
        store.changes("line-2", 1),
    ):
        other = pickle.loads(pickle.dumps(points))
        assert repr(other) == repr(points)
        assert len(other) == len(points)


@systems.FORK
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_started_read_does_not_survive_a_fork(store):
    records = store.read("line-2").records()
    reader = pa.RecordBatchReader.from_stream(store.read("line-2"))
    child = os.fork()
    if child == 0:
        seen = 0
        try:
            list(records)
        except siteline.errors.ForkError:
            seen += 1
        try:
            reader.read_next_batch()
        except pa.ArrowException as error:
            seen += "fork" in str(error)
        except OSError as error:
            seen += "fork" in str(error)
        os._exit(seen)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert sum(1 for _ in records) == len(store.read("line-2"))


def test_the_zone_and_labels_of_a_store_are_those_of_its_tables(sandbox, tmp_path):
    path, names = tmp_path / "plant.siteline", {"T21": "speed"}
    with siteline.Store(path, tz="Europe/Berlin", labels=names) as store:
        report = sandbox.client().sync(make_feed(interval="1h"), store)
        table = store.read("line-2", "2026-11-16", "2026-11-17")
        frame = table.to_pandas()
        assert str(frame["timestamp"].dtype) == "datetime64[us, Europe/Berlin]"
        assert str(frame["timestamp"].min()) == "2026-11-16 00:00:00+01:00"
        assert "label" in frame
        again = store.read("line-2", "2026-11-16", "2026-11-17", tz="UTC", labels=False).to_pandas()
        assert str(again["timestamp"].min()) == "2026-11-16 00:00:00+00:00"
        assert "label" not in again
        changes = store.changes("line-2", 0, "2026-11-16").to_pandas()
        assert str(changes["timestamp"].min()) == "2026-11-16 00:00:00+01:00"
        local = report.now.astimezone(ZoneInfo("Europe/Berlin")).replace(tzinfo=None)
        assert store.coverage("line-2", now=local.isoformat()).now == report.now
        copied = pickle.loads(pickle.dumps(store))
        assert (copied.tz, copied.path) == ("Europe/Berlin", path)
        assert "label" in copied.read("line-2").to_pandas()
        copied.close()


def test_a_report_of_another_store_is_refused(sandbox, tmp_path):
    client, feed = sandbox.client(), make_feed(interval="1h")
    store = siteline.Store(tmp_path / "plant.siteline")
    first = client.sync(feed, store)
    sandbox.clock.advance("6h")
    with siteline.Store(tmp_path / "other.siteline") as other:
        second = client.sync(feed, other)
        for report in (first, first["line-2"]):
            assert len(store.read(feed, as_of=report)) == len(store.read(feed))
            assert len(store.changes(feed, since=report)) == 0
            for read in (
                lambda r=report: other.changes(feed, r),
                lambda r=report: other.read(feed, as_of=r),
            ):
                with pytest.raises(siteline.errors.QueryError, match="the report of another store"):
                    read()
        assert len(other.read(feed, as_of=second)) > 0
        nothing = client.sync(feed, other, until="2026-11-16")
        assert nothing.pages == 0
        assert len(other.changes(feed, since=nothing)) == 0


def test_coverage_is_for_the_time_of_the_service(tmp_path):
    with siteline.Sandbox(now=datetime.now(UTC) - timedelta(minutes=20)) as sandbox:
        clock = sandbox.clock.machine(datetime.now(UTC))
        client = sandbox.client(clock=clock)
        with siteline.Store(tmp_path / "plant.siteline") as store:
            client.sync(make_feed(interval="1h", start="-1d", page_size=500), store)
            assert client.clock_skew == pytest.approx(-1_200, abs=60)
            coverage = store.coverage("line-2")
            assert abs(coverage.now - sandbox.clock.now()) < timedelta(minutes=1)
            state = siteline.types.Coverage.from_state(store.state("line-2"))
            assert abs(state.now - sandbox.clock.now()) < timedelta(minutes=1)


def test_since_counts_from_the_time_of_the_service(sandbox, tmp_path):
    client, feed = sandbox.client(), make_feed(interval="1h")
    store, later = (siteline.Store(tmp_path / f"{name}.siteline") for name in ("a", "b"))
    client.sync(feed, store)
    sandbox.clock.advance("1d")
    client.sync(feed, later)
    store.apply(feed, None, later.state(feed))
    points = len(store.read(feed))
    for since, changed in (("-1h", 0), ("-25h", points)):
        assert len(store.changes(feed, since=since)) == changed
    assert len(store.read(feed, as_of="-1h")) == points
    an_hour_ago = store.coverage(feed).now - timedelta(hours=1)
    assert abs(store.coverage(feed, now="-1h").now - an_hour_ago) < timedelta(minutes=1)
