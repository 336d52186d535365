"""``labels=``: names of series in a column of their own, or as names of columns."""

import pytest
from siteline.errors import QueryError

pd = pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")

RANGE = {"start": "2026-11-18", "end": "2026-11-19", "interval": "1h"}
IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]


@pytest.fixture(scope="module")
def client(shared_sandbox):
    return shared_sandbox.client()


@pytest.fixture(scope="module")
def series(client):
    return client.series()


@pytest.fixture(scope="module")
def table(client, series):
    return client.scan(site="S1", **RANGE).collect()


def labels_of(frame):
    """The label of each series of a frame, by its ids."""
    rows = frame[[*IDS, "label"]].drop_duplicates()
    found = dict(zip(rows[IDS].itertuples(index=False, name=None), rows["label"], strict=True))
    assert len(found) == len(rows)
    return found


def label(row, first):
    """The label of a row of series, beginning with this level. The sandbox names no level."""
    parts = [row[name] for name in IDS[first:4]]
    return " / ".join([*parts, f"{row['name']} [{row['unit']}]"])


def ids_of(row):
    return tuple(row[name] for name in IDS)


@pytest.fixture(scope="module")
def expected(series):
    return {ids_of(one): label(one, 2) for one in series.find(site="S1").records()}


@pytest.mark.parametrize("ids", ["str", "category"])
def test_each_row_has_the_label_of_its_series(table, series, expected, ids):
    plain = table.to_pandas(ids=ids, labels=False)
    by_tag = {ids[-1]: one for ids, one in expected.items()}
    for labels in ("machine", series, expected, by_tag):
        frame = table.to_pandas(ids=ids, labels=labels)
        assert labels_of(frame) == expected
        assert list(frame.columns).index("label") == 5
        assert isinstance(frame["label"].dtype, pd.CategoricalDtype)
        pd.testing.assert_frame_equal(frame.drop(columns="label"), plain)
    assert table.to_pandas(ids=ids, labels=False).equals(plain)


@pytest.mark.parametrize(("word", "first"), [("site", 0), ("line", 1), ("machine", 2)])
def test_the_word_gives_the_first_part(table, series, word, first):
    frame = table.to_pandas(labels=word)
    rows = {ids_of(one): one for one in series.records()}
    assert labels_of(frame) == {ids: label(rows[ids], first) for ids in labels_of(frame)}


def test_equal_labels_use_the_next_depth(table, series, expected):
    shared = dict.fromkeys(expected, "same")
    assert labels_of(table.to_pandas(labels=shared)) == {ids: " / ".join(ids) for ids in expected}
    assert table.to_pandas(labels=dict(list(shared.items())[:1]))["label"].nunique() == 12
    names = {ids_of(one): one["name"] for one in series.records()}
    devices = {ids: f"{ids[3]} / {names[ids]}" for ids in expected}
    assert labels_of(table.to_pandas(labels={ids: names[ids] for ids in expected})) == devices
    # A pivoted table has a column of this name.
    reserved = {ids: f"name {number}" for number, ids in enumerate(expected)}
    first = next(iter(expected))
    pivot = table.pivot().to_polars(labels=reserved | {first: "timestamp"})
    assert pivot.columns[:2] == ["timestamp", f"{first[3]} / timestamp"]


def test_labels_of_the_read_are_in_every_derived_table(client, series, expected):
    scan = client.scan(site="S1", labels="machine", tz="Europe/Berlin", **RANGE)
    table = scan.collect()
    assert (table.report.labels, table.report.names) == ("machine", None)
    for made in (table, table.find(line="L1"), table.with_gaps(), table.resample("1d", "mean")):
        frame = made.to_pandas()
        assert labels_of(frame).items() <= expected.items()
        assert frame["timestamp"].dtype == pd.DatetimeTZDtype("us", "Europe/Berlin")
    pivot = table.pivot()
    assert pivot.to_pandas().columns.tolist() == list(expected.values())
    assert pivot.columns == ["timestamp", *expected.values()]
    page = next(client.scan(site="S1", labels=series, **RANGE).pages())
    assert labels_of(page.to_pandas()).items() <= expected.items()


def test_unknown_labels_are_refused_before_anything_is_sent(shared_sandbox, client, table):
    before = shared_sandbox.stats.data_requests
    for labels in ("plant", 7, lambda ids: "x"):
        with pytest.raises(QueryError, match=r"labels=.* is unknown"):
            client.scan(site="S1", labels=labels, **RANGE)
        with pytest.raises(QueryError, match=r"labels=.* is unknown"):
            table.to_pandas(labels=labels)
    assert shared_sandbox.stats.data_requests == before
