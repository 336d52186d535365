"""Wide frames: a column for each series, a row for each bucket."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import siteline
from kit.feeds import make_feed
from kit.ranges import HOURLY

IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]
MEASURES = ["value", "minimum", "maximum", "sample_count"]


@pytest.fixture
def table(shared_sandbox):
    return shared_sandbox.client().scan(**HOURLY).collect()


def pivoted(table, value):
    """What pandas makes of the long frame."""
    frame = table.to_pandas().pivot(index="timestamp", columns=IDS, values=value)
    return frame.sort_index(axis="columns")


@pytest.mark.parametrize("value", MEASURES)
def test_it_is_what_pandas_pivots(table, value):
    wide = table.pivot(value)
    frame, expected = wide.to_pandas(), pivoted(table, value)
    assert (wide.value, len(wide), len(wide.series)) == (value, *expected.shape)
    assert (frame.dtypes == ("Int64" if value == "sample_count" else "float64")).all()
    pd.testing.assert_frame_equal(
        frame.sort_index(axis="columns"), expected, check_freq=False, check_column_type=False
    )
    assert list(frame.columns) == wide.series
    assert frame.attrs == table.to_pandas().attrs


def test_columns_with_one_name_each_are_those_of_arrow_and_polars(table):
    wide = table.pivot()
    arrow, polars, flat = wide.to_arrow(), wide.to_polars(), wide.to_pandas(flat=True)
    names = ["/".join(ids) for ids in wide.series]
    assert arrow.column_names == polars.columns == ["timestamp", *names]
    assert list(flat.columns) == names
    assert pa.schema(wide) == arrow.schema
    assert polars.schema == {
        "timestamp": pl.Datetime("us", "UTC"),
        **dict.fromkeys(names, pl.Float64),
    }
    np.testing.assert_array_equal(flat.to_numpy(), polars.drop("timestamp").to_numpy())
    np.testing.assert_array_equal(flat.to_numpy(), wide.to_pandas().to_numpy())
    assert (flat.index == polars["timestamp"].to_pandas()).all()
    counts = table.pivot("sample_count")
    assert counts.to_polars()[names[0]].dtype == pl.Int64
    assert counts.to_arrow()[names[0]].to_pylist() == [
        None if count is pd.NA else count for count in counts.to_pandas(flat=True)[names[0]]
    ]


def test_no_points_are_an_empty_frame_with_the_same_index(shared_sandbox):
    empty = shared_sandbox.client().scan(**HOURLY | {"filters": {"machineId": "none"}}).collect()
    for value in MEASURES:
        frame = empty.pivot(value).to_pandas()
        assert frame.shape == (0, 0)
        assert frame.columns.names == IDS
        assert frame.index.dtype == pd.DatetimeTZDtype("us", "UTC")
        assert empty.pivot(value).to_pandas(flat=True).shape == (0, 0)
    assert empty.pivot().to_polars().shape == (0, 1)


def test_writing_to_a_wide_frame_changes_no_other(table):
    wide = table.pivot()
    first = wide.to_pandas()
    first.iloc[:, 0] = 0.0
    first.loc[first.index[0]] = 1.0
    assert wide.to_pandas().equals(table.pivot().to_pandas())
    assert not first.equals(wide.to_pandas())
    with pytest.raises(TypeError, match="to_pandas"):
        pickle.dumps(wide)


def test_a_stores_points_and_gathered_tables_have_it_too(sandbox, tmp_path):
    client = sandbox.client()
    with siteline.Store(tmp_path / "plant.siteline") as store:
        client.sync(make_feed("a", since="2026-11-19T00:00Z"), store)
        points = store.read("a")
        pd.testing.assert_frame_equal(
            points.pivot("maximum").to_pandas().sort_index(axis="columns"),
            pivoted(points, "maximum"),
            check_freq=False,
            check_column_type=False,
        )
        assert points.pivot().to_pandas().attrs["siteline"]["feed"] == "a"
        with pytest.raises(siteline.errors.QueryError, match="sample_count"):
            points.pivot("mean")
        with pytest.raises(siteline.errors.UnreadRange):
            store.read("a", "2020-01-01", "2020-01-02").pivot()
    scan = client.scan(**HOURLY)
    gathered = client.gather(scan.split(3))
    assert gathered.pivot().to_pandas().equals(scan.collect().pivot().to_pandas())


def test_ids_that_are_null_are_missing_in_the_levels_and_empty_in_the_names(sandbox):
    data = pd.DataFrame({"timestamp": pd.to_datetime(["2026-11-01T00:00Z"]), "value": [1.0]})
    for tag in "ab":
        sandbox.load(data, bucket="1h", site="S9", line=None, machine=None, device=None, tag=tag)
    wide = sandbox.client().scan(**HOURLY | {"site": "S9"}).collect().pivot()
    assert wide.series == [("S9", None, None, None, tag) for tag in "ab"]
    assert wide.to_polars().columns == ["timestamp", "S9////a", "S9////b"]
    assert wide.to_pandas().columns.get_level_values("line_id").isna().all()
