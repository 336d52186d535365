"""Pivoted tables: a column for each series, a row for each bucket."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import siteline
from kit.ranges import HOURLY

IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]
MEASURES = ["value", "minimum", "maximum", "sample_count"]


@pytest.fixture
def table(shared_sandbox):
    return shared_sandbox.client(labels=False).scan(**HOURLY).collect()


def joined(ids):
    return " / ".join(id or "" for id in ids)


def pivoted(table, value):
    """Returns the long frame as pandas pivots it."""
    frame = table.to_pandas().pivot(index="timestamp", columns=IDS, values=value)
    frame.columns = [joined(ids) for ids in frame.columns]
    return frame.sort_index(axis="columns")


def ids_of(table):
    return [tuple(row.values())[:5] for row in table.series.records()]


@pytest.mark.parametrize("value", MEASURES)
def test_it_is_what_pandas_pivots(table, value):
    pivot = table.pivot(value)
    frame, expected = pivot.to_pandas(), pivoted(table, value)
    assert (pivot.kind, len(pivot), len(pivot.series)) == ("pivoted", *expected.shape)
    assert (frame.dtypes == ("Int64" if value == "sample_count" else "float64")).all()
    pd.testing.assert_frame_equal(
        frame.sort_index(axis="columns"), expected, check_freq=False, check_column_type=False
    )
    assert list(frame.columns) == [joined(ids) for ids in ids_of(pivot)]
    assert frame.attrs == table.to_pandas().attrs


def test_arrow_and_polars_have_the_same_columns(table):
    pivot = table.pivot()
    arrow, polars, frame = pivot.to_arrow(), pivot.to_polars(), pivot.to_pandas()
    names = [joined(ids) for ids in ids_of(pivot)]
    assert pivot.columns == arrow.column_names == polars.columns == ["timestamp", *names]
    assert list(frame.columns) == names
    assert pa.schema(pivot) == arrow.schema
    assert polars.schema == {
        "timestamp": pl.Datetime("us", "UTC"),
        **dict.fromkeys(names, pl.Float64),
    }
    np.testing.assert_array_equal(frame.to_numpy(), polars.drop("timestamp").to_numpy())
    assert (frame.index == polars["timestamp"].to_pandas()).all()
    counts = table.pivot("sample_count")
    assert counts.to_polars()[names[0]].dtype == pl.Int64
    assert counts.to_arrow()[names[0]].to_pylist() == [
        None if count is pd.NA else count for count in counts.to_pandas()[names[0]]
    ]


def test_no_points_are_an_empty_frame(shared_sandbox):
    empty = (
        shared_sandbox.client(labels=False)
        .scan(**HOURLY | {"filters": {"machineId": "none"}})
        .collect()
    )
    for value in MEASURES:
        frame = empty.pivot(value).to_pandas()
        assert frame.shape == (0, 0)
        assert frame.index.dtype == pd.DatetimeTZDtype("us", "UTC")
    assert empty.pivot().to_polars().shape == (0, 1)


def test_writing_to_a_frame_changes_no_other(table):
    pivot = table.pivot()
    first = pivot.to_pandas()
    first.iloc[:, 0] = 0.0
    first.loc[first.index[0]] = 1.0
    assert pivot.to_pandas().equals(table.pivot().to_pandas())
    assert not first.equals(pivot.to_pandas())


def test_the_counts_of_a_completeness_are_pivoted(table):
    hours = table.completeness("1h")
    shares = hours.pivot("share").to_pandas()
    assert (shares.to_numpy() == 1.0).all()
    assert hours.pivot("missing").to_pandas().dtypes.unique().tolist() == [pd.Int64Dtype()]
    pd.testing.assert_frame_equal(hours.pivot().to_pandas(), shares)
    with pytest.raises(siteline.errors.QueryError, match="the table is pivoted"):
        hours.pivot("share").pivot("share")


def test_a_pivot_keeps_some_series_and_rows(table):
    pivot = table.pivot()
    line = pivot.find(line="L1")
    expected = pivot.to_pandas()[[joined(ids) for ids in ids_of(line)]]
    pd.testing.assert_frame_equal(line.to_pandas(), expected)
    assert 0 < len(line.series) < len(pivot.series)
    pd.testing.assert_frame_equal(
        pivot.head(2).to_pandas(), pivot.to_pandas().head(2), check_freq=False
    )


def test_missing_ids_are_empty_in_the_names(sandbox):
    data = pd.DataFrame({"timestamp": pd.to_datetime(["2026-11-01T00:00Z"]), "value": [1.0]})
    for tag in "ab":
        sandbox.load(data, bucket="1h", site="S9", line=None, machine=None, device=None, tag=tag)
    pivot = sandbox.client(labels=False).scan(**HOURLY | {"site": "S9"}).collect().pivot()
    assert ids_of(pivot) == [("S9", None, None, None, tag) for tag in "ab"]
    assert pivot.to_polars().columns == ["timestamp", "S9 /  /  /  / a", "S9 /  /  /  / b"]
