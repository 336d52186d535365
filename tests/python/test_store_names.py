"""The names that a sync stores, and withdrawn points in the tables of a store."""

import sqlite3
import warnings

import pandas as pd
import polars as pl
import pytest
import siteline
from kit.feeds import make_feed

RANGE = ("2026-11-18", "2026-11-19")
SPEED = "M3 / D31 / speed [1/min]"


@pytest.fixture
def feed():
    return make_feed(interval="1h", start="2026-11-18T00:00Z")


def labels_of(table):
    return set(table.to_pandas()["label"])


def test_a_file_has_names_without_a_client(sandbox, store, feed):
    sandbox.client().sync(feed, store)
    assert sandbox.stats.discovery_requests == 1
    with siteline.Store(store.path, read_only=True) as copy:
        table = copy.read(feed, *RANGE)
        assert SPEED in labels_of(table)
        assert (table.report.labels, table.report.names) == ("machine", None)
        assert table.pivot().columns[1:] == table.to_pandas()["label"].unique().tolist()
        assert labels_of(copy.changes(feed, 0)) >= labels_of(table)
        for series in (copy.series(), copy.series(feed)):
            row = next(row for row in series.records() if row["label"] == SPEED)
            assert (row["name"], row["unit"], row["listed"]) == ("speed", "1/min", True)
        assert "label" not in copy.read(feed, *RANGE, labels=False).columns
    assert sandbox.stats.discovery_requests == 1


def test_a_store_requests_names_once_a_day(sandbox, store, feed):
    for hours, requests in ((0, 1), (12, 1), (11, 1), (1, 2)):
        sandbox.clock.advance(f"{hours}h")
        sandbox.client().sync(feed, store)
        assert sandbox.stats.discovery_requests == requests


def test_a_table_keeps_the_names_of_its_read(sandbox, store, feed):
    sandbox.client().sync(feed, store)
    before = store.read(feed, *RANGE)
    sandbox.clock.advance("1d")
    renamed = b'{"tags": [{"siteId": "S1", "lineId": "L2", "tagGuid": "T31", "name": "pace"}]}'
    sandbox.fault(on="discovery", nth=1, body=renamed)
    sandbox.client().sync(feed, store)
    assert SPEED in labels_of(before)
    assert SPEED not in labels_of(store.read(feed, *RANGE))


def test_a_store_without_labels_requests_no_names(sandbox, tmp_path, feed):
    with siteline.Store(tmp_path / "plant.siteline", labels=False) as store:
        sandbox.client().sync(feed, store)
        assert sandbox.stats.discovery_requests == 0
        assert "label" not in store.read(feed, *RANGE).columns
        report = store.read(feed, *RANGE, labels="machine").report
    assert report.names == "no sync has kept names in this store"
    assert report.labels == "ids"


def test_refused_names_never_fail_a_sync(sandbox, store, feed):
    sandbox.fault(on="discovery", status=403, times=99)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sandbox.client().sync(feed, store).complete
        table = store.read(feed, *RANGE)
        ids = {" / ".join(row) for row in table.to_pandas().iloc[:, :5].drop_duplicates().values}
        assert labels_of(table) == ids
    assert table.report.names.startswith("discovery failed: ")
    assert sandbox.stats.discovery_requests == 1
    sandbox.clear_faults()
    sandbox.clock.advance("1d")
    sandbox.client().sync(feed, store)
    sandbox.fault(on="discovery", status=403, times=99)
    sandbox.clock.advance("1d")
    sandbox.client().sync(feed, store)
    assert SPEED in labels_of(store.read(feed, *RANGE)), "a refusal keeps the names"


def test_a_store_is_read_by_exact_names(sandbox, store, feed):
    sandbox.client().sync(feed, store)
    for read in (store.read, lambda *ask, **by: store.changes(ask[0], 0, *ask[1:], **by)):
        table = read(feed, *RANGE, tag="speed", unread="keep")
        tags = {series[4] for series in table._handle.series()}
        assert len(tags) == 2
        assert len(table) == len(read(feed, *RANGE, tag=tags, unread="keep")) > 0
    with pytest.raises(siteline.errors.QueryError):
        store.read(feed, *RANGE, tag="spee")
    with pytest.raises(siteline.errors.QueryError):
        store.read(feed, *RANGE, tag="speed", labels=False)


def test_a_sync_waits_for_names_until_its_deadline(sandbox, store, feed):
    client = sandbox.client()
    client.discover()
    client.sync(feed, store)
    sandbox.clock.advance("2d")
    sandbox.fault(on="discovery", hang=True)
    before = sandbox.stats.discovery_requests
    # Nothing is read: only the names have to wait.
    assert client.sync(feed, store, until="2026-11-18T06:00Z", deadline="1s").requests == 0
    assert sandbox.stats.discovery_requests == before + 1


def test_damaged_names_are_noticed(sandbox, store, feed):
    sandbox.client().sync(feed, store)
    with sqlite3.connect(store.path) as file:
        file.execute("UPDATE names SET body = CAST(body || ' ' AS BLOB)")
    for use in (store.check, lambda: store.read(feed, *RANGE)):
        with pytest.raises(siteline.errors.StoreCorrupt, match="names"):
            use()


def test_withdrawn_points_are_marked(sandbox, store, feed):
    times = pd.date_range("2026-11-18", periods=24, freq="h", tz="UTC")
    points = pd.DataFrame({"timestamp": times, "value": range(24), "sample_count": 60})
    points["minimum"] = points["maximum"] = points["value"]
    sandbox.load(points.drop(index=7), bucket="1h")
    client, feed = sandbox.client(), make_feed(line="L1", interval="1h", start="2026-11-18")
    first = client.sync(feed, store)
    before = store.read(feed, *RANGE, tag="T1")
    gone = before.to_pandas().iloc[5]
    sandbox.withdraw(gone["timestamp"])
    client.sync(feed, store, reread=RANGE)
    table = store.read(feed, *RANGE, tag="T1")
    frame = table.to_pandas()
    assert frame.columns[-1] == "withdrawn"
    assert str(frame["withdrawn"].dtype) == "bool"
    assert frame[frame["withdrawn"]]["timestamp"].tolist() == [gone["timestamp"]]
    assert table.report.withdrawn == 1
    assert [row["withdrawn"] for row in table.records()] == frame["withdrawn"].tolist()
    assert repr(table).endswith("; 1 withdrawn>")
    assert repr(table.find("none")).endswith("Z, 0 of 1 series; completely read>")
    assert "1 withdrawn" in table._repr_html_()
    assert table.to_polars()["withdrawn"].sum() == table.to_arrow()["withdrawn"].to_pylist().count(
        True
    )
    lazy = table.lazy().filter(pl.col("withdrawn")).select("label", "withdrawn").collect()
    assert lazy.rows() == [(gone["label"], True)]
    assert table.lazy().collect().equals(table.to_polars())
    filled = table.with_gaps().to_pandas()
    assert len(filled) == len(frame) + 1
    assert filled[filled["withdrawn"]]["timestamp"].tolist() == [gone["timestamp"]]
    assert table.columns == store.read(feed, *RANGE, withdrawn="drop").columns
    assert "withdrawn" not in table.resample("1d", "mean").columns
    # Earlier tables, and changes that were asked for before, stay as they were.
    assert not before.to_pandas()["withdrawn"].any()
    assert before.report.sequence == first["line-2"].sequence


def test_later_syncs_leave_changes_alone(sandbox, store, feed):
    client = sandbox.client()
    first = client.sync(feed, store)
    sandbox.clock.advance("6h")
    client.sync(feed, store)
    changes = store.changes(feed, since=first)
    expected = changes.to_polars()
    sandbox.clock.advance("6h")
    client.sync(feed, store)
    assert len(expected) > 0
    assert changes.to_polars().equals(expected)
    assert len(changes) == len(expected)
    assert len(store.changes(feed, since=first)) > len(expected)


def test_csv_has_labels_and_marks(sandbox, store, feed, tmp_path):
    sandbox.client().sync(feed, store)
    table = store.read(feed, *RANGE)
    table.to_csv(tmp_path / "points.csv")
    written = pl.read_csv(tmp_path / "points.csv")
    assert written.columns == table.columns
    assert written["label"].to_list() == table.to_polars()["label"].cast(pl.String).to_list()
