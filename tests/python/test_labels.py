"""``labels=``: names of series beside their ids, or as names of columns."""

import asyncio

import pytest
import siteline
from siteline import SitelineWarning
from siteline.errors import QueryError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")

NOW = "2026-11-20T00:00:00Z"
RANGE = {"start": "2026-11-18", "end": "2026-11-19", "interval": "1h"}
IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]


@pytest.fixture(scope="module")
def sandbox():
    with siteline.Sandbox(now=NOW) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def client(sandbox):
    return sandbox.client()


@pytest.fixture(scope="module")
def catalogue(client):
    return client.series()


@pytest.fixture(scope="module")
def table(client, catalogue):
    return client.scan(site="S1", **RANGE).collect()


@pytest.fixture(scope="module")
def store(client, tmp_path_factory):
    feed = siteline.Feed("s1", site="S1", interval="1h", since="2026-11-18")
    with siteline.Store(tmp_path_factory.mktemp("plant") / "plant.siteline") as store:
        client.sync(feed, store)
        yield store


def labels_of(frame):
    """The label of each series of a frame, by its ids."""
    rows = frame[[*IDS, "label"]].drop_duplicates()
    found = dict(zip(rows[IDS].itertuples(index=False, name=None), rows["label"], strict=True))
    assert len(found) == len(rows)
    return found


@pytest.fixture(scope="module")
def expected(catalogue):
    return {tuple(one.ids): one.label for one in catalogue if one.site_id == "S1"}


@pytest.mark.parametrize("ids", ["str", "category"])
def test_each_row_has_the_label_of_its_series(table, catalogue, expected, ids):
    plain = table.to_pandas(ids=ids)
    for labels in (True, catalogue, expected, {ids[-1]: one for ids, one in expected.items()}):
        frame = table.to_pandas(ids=ids, labels=labels)
        assert labels_of(frame) == expected
        assert frame["label"].dtype == frame["tag_guid"].dtype or ids == "category"
        pd.testing.assert_frame_equal(frame.drop(columns="label"), plain)
    assert list(table.to_pandas(labels=False).columns) == list(table.to_pandas().columns)


def test_polars_and_arrow_have_the_same_rows(table, expected):
    wanted = table.to_pandas(labels=True)["label"].tolist()
    polars = table.to_polars(labels=True)
    assert polars.columns[-1] == "label"
    assert polars["label"].cast(pl.String).to_list() == wanted
    arrow = table.to_arrow(labels=True, tz="Europe/Berlin")
    assert arrow["label"].to_pylist() == wanted
    assert not arrow.schema.field("label").nullable


def test_a_callable_gets_the_five_ids_once_for_each_series(table):
    seen = []

    def label(ids):
        seen.append(ids)
        return f"{ids.machine_id}-{ids.tag_guid[:8]}" if ids.line_id == "L1" else None

    frame = table.to_pandas(labels=label)
    assert len(seen) == len(set(seen)) == 12
    named = frame[frame["line_id"] == "L1"]
    assert (named["label"] == named["machine_id"] + "-" + named["tag_guid"].str[:8]).all()
    # What has no name has its ids, as a column of a wide frame has.
    other = frame[frame["line_id"] == "L2"]
    assert set(other["label"]) == {"/".join(ids) for ids in labels_of(other)}


def test_gathered_rebucketed_pages_and_stored_points_take_labels_too(
    client, store, table, catalogue
):
    expected = labels_of(table.to_pandas(labels=catalogue))
    scan = client.scan(site="S1", **RANGE)
    page = next(client.scan(site="S1", page_size=10_000, **RANGE).pages())
    gathered = client.gather(scan.split(2))
    for data in (scan, page, gathered, gathered.resample("1d", "mean", tz="Europe/Berlin")):
        assert labels_of(data.to_pandas(labels=True)) == expected
        assert data.to_polars(labels=True)["label"].n_unique() == 12
    points = store.read("s1", "2026-11-18", "2026-11-19")
    assert labels_of(points.to_pandas(labels=catalogue)) == expected
    assert labels_of(points.resample("1d", "mean").to_pandas(labels=catalogue)) == expected
    days = gathered.resample("1d", "mean")
    assert days.to_arrow(labels=True).column_names[-3:] == ["label", "buckets", "expected"]
    assert list(days.to_pandas(labels=True).columns[-3:]) == ["label", "buckets", "expected"]


def test_changes_keep_their_column(store, catalogue):
    changes = store.changes("s1", 0)
    frame = changes.to_pandas(labels=catalogue)
    assert list(frame.columns[-2:]) == ["label", "change"]
    pd.testing.assert_frame_equal(frame.drop(columns="label"), changes.to_pandas())
    arrow = changes.to_arrow(labels=catalogue)
    assert arrow.column_names[-2:] == ["label", "change"]
    assert arrow["change"].to_pylist() == frame["change"].tolist()
    assert arrow["label"].to_pylist() == frame["label"].tolist()


def test_wide_columns_are_named_by_labels(table, catalogue, store, expected):
    wide = table.pivot(labels=True)
    assert wide.labels == [expected[ids] for ids in wide.series]
    assert wide.to_polars().columns == ["timestamp", *wide.labels]
    assert wide.to_arrow().column_names == ["timestamp", *wide.labels]
    assert list(wide.to_pandas(flat=True).columns) == wide.labels
    # Beside the ids, where there are levels.
    frame = wide.to_pandas()
    assert frame.columns.names == [*IDS, "label"]
    assert [tuple(column[:5]) for column in frame.columns] == wide.series
    pd.testing.assert_frame_equal(frame.droplevel("label", axis=1), table.pivot().to_pandas())
    points = store.read("s1", "2026-11-18", "2026-11-19")
    assert points.pivot("maximum", labels=catalogue).labels == wide.labels
    assert table.resample("1d", "mean").pivot("maximum", labels=catalogue).labels == wide.labels
    assert table.pivot().labels is None


def test_two_series_with_one_label_are_told_and_never_merged(table):
    def label(ids):
        return "same" if ids.machine_id in ("M1", "M2") else None

    with pytest.warns(SitelineWarning, match="Two series have the label 'same': S1/L1/M1/D11/"):
        frame = table.to_pandas(labels=label)
    assert len(frame[frame["label"] == "same"].drop_duplicates(IDS)) == 6
    wide = table.pivot(labels=label)
    assert wide.to_pandas().shape[1] == 12
    for convert in (wide.to_polars, wide.to_arrow, lambda: wide.to_pandas(flat=True)):
        with pytest.raises(QueryError, match='two series would have the column "same"'):
            convert()


def test_labels_that_are_none_are_refused_before_anything_is_read(sandbox, client, table):
    with pytest.raises(QueryError, match="labels= is a str"):
        table.to_pandas(labels="name")
    with pytest.raises(QueryError, match="labels= gave a int; a label is text"):
        table.to_polars(labels=lambda ids: 7)
    with pytest.raises(ZeroDivisionError):
        table.pivot(labels=lambda ids: 1 / 0)


def test_without_a_discovery_response_there_are_no_names_and_that_is_said(sandbox, store):
    client = sandbox.client()
    unnamed = client.scan(site="S1", **RANGE).collect()
    for convert in (unnamed.to_pandas, unnamed.wide, store.read("s1", "2026-11-18").to_arrow):
        with pytest.raises(QueryError, match="labels=True has no names") as refused:
            convert(labels=True)
        assert "client.series()" in refused.value.hint
    sandbox.fault(on="discovery", status=200, body='{"plants": ["S1"]}')
    client.discover()
    with pytest.raises(QueryError, match="discovery lists no series that siteline recognises"):
        unnamed.to_polars(labels=True)
    # The newest response counts, also of what was read before.
    client.series()
    assert "D11 / speed [1/min]" in set(unnamed.to_pandas(labels=True)["label"])


def test_an_async_scan_takes_labels(sandbox, catalogue, expected):
    async def main():
        async with sandbox.async_client() as client:
            await client.series()
            scan = client.scan(site="S1", **RANGE)
            return await scan.to_pandas(labels=True), await scan.to_polars(labels=catalogue)

    pandas, polars = asyncio.run(main())
    assert labels_of(pandas) == expected
    assert polars["label"].cast(pl.String).to_list() == pandas["label"].tolist()
