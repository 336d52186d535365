"""Larger buckets: equal to what pandas resamples, also in local days, and how full they are."""

import datetime
import pickle
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import siteline

IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]
DST = {"site": "S1", "start": "2026-10-23T22:00Z", "end": "2026-10-26T23:00Z", "interval": "1h"}
"""Three days of Berlin; the second has 25 hours."""


@pytest.fixture
def table(shared_sandbox):
    return shared_sandbox.client(labels=False).scan(**DST).collect()


def resampled(frame, rule, tz="UTC"):
    """What pandas makes of a long frame: a mean weighted by the counts."""
    frame = frame.assign(
        timestamp=frame["timestamp"].dt.tz_convert(tz),
        sample_count=frame["sample_count"].astype("float64"),
    )
    frame["weighted"] = frame["value"] * frame["sample_count"]
    groups = frame.groupby([*IDS, pd.Grouper(key="timestamp", freq=rule)])
    made = groups.agg(
        minimum=("minimum", "min"),
        maximum=("maximum", "max"),
        sample_count=("sample_count", "sum"),
        weighted=("weighted", "sum"),
        buckets=("value", "size"),
    )
    made = made[made["buckets"] > 0].reset_index()
    made["value"] = made["weighted"] / made["sample_count"]
    return made


def check(frame, expected):
    """The frame has the rows of pandas."""
    for name in (*IDS, "buckets", "sample_count", "minimum", "maximum"):
        assert frame[name].to_list() == expected[name].to_list(), name
    assert (frame["timestamp"] == expected["timestamp"].dt.as_unit("us")).all()
    np.testing.assert_allclose(frame["value"], expected["value"], rtol=1e-12)


@pytest.mark.parametrize(
    ("interval", "rule", "tz"),
    [
        ("1d", "1D", "UTC"),
        ("1d", "1D", "Europe/Berlin"),
        ("1d", "1D", "America/New_York"),
        ("3h", "3h", "UTC"),
        (3600, "1h", "Europe/Berlin"),
    ],
)
def test_it_is_what_pandas_resamples(table, interval, rule, tz):
    made = table.resample(interval, "mean", tz=tz)
    assert made.to_pandas()["timestamp"].dtype == pd.DatetimeTZDtype("us", tz)
    check(made.to_pandas(), resampled(table.to_pandas(), rule, tz))


def test_each_way_to_make_a_value(table):
    long = table.to_pandas()
    by_series = long.groupby(IDS, sort=False)["value"]
    for agg in ("sum", "first", "last"):
        made = table.resample("1w", agg, origin="2026-10-23").to_pandas()["value"]
        np.testing.assert_allclose(made, getattr(by_series, agg)(), rtol=1e-12)
    with pytest.raises(siteline.errors.QueryError, match=r'"mean", "sum", "first" or "last"'):
        table.resample("1d", "average")
    with pytest.raises(TypeError, match="agg"):
        table.resample("1d")


def test_a_day_may_begin_at_six_and_a_week_begins_on_monday(table):
    for origin in (
        "06:00",
        datetime.time(6),
        "2026-10-25T06:00",
        datetime.datetime(2026, 10, 25, 6),
        "2026-10-25T06:00+01:00",
        pd.Timestamp("2026-10-25T05:00Z"),
    ):
        made = table.resample("1d", "mean", tz="Europe/Berlin", origin=origin).to_pandas()
        assert [stamp.isoformat() for stamp in made["timestamp"].head(4)] == [
            "2026-10-23T06:00:00+02:00",
            "2026-10-24T06:00:00+02:00",
            "2026-10-25T06:00:00+01:00",
            "2026-10-26T06:00:00+01:00",
        ]
        assert made["expected"].head(4).to_list() == [24, 25, 24, 24]
    weeks = table.resample("1w", "mean", tz=ZoneInfo("Europe/Berlin"))
    assert {stamp.isoformat() for stamp in weeks.to_pandas()["timestamp"]} == {
        "2026-10-19T00:00:00+02:00",
        "2026-10-26T00:00:00+01:00",
    }
    index = weeks.pivot().to_pandas().index
    assert index.dtype == pd.DatetimeTZDtype("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": "1d", "tz": "Europe/Berlinn"}, "no time zone"),
        ({"every": "1d", "tz": 7}, "no time zone"),
        ({"every": "1d", "tz": datetime.timezone(datetime.timedelta(minutes=90))}, "no time zone"),
        ({"every": "1d", "origin": "noon"}, "no local time"),
        ({"every": "1d", "origin": 6}, "no local time"),
        ({"every": "1d", "origin": "06:00-05:00"}, "no local time"),
        ({"every": "1d", "origin": "2026-10-25T06:00[Asia/Tokyo]"}, "no local time"),
        ({"every": 0}, "every= is 0"),
        ({"every": "1mo"}, "not a duration"),
        ({"every": "30m"}, "would be in two"),
        ({"every": "1d", "tz": "Asia/Kathmandu"}, r"in two.*2026-10-24T18:15:00Z"),
    ],
)
def test_invalid_options_are_refused_and_told(table, options, words):
    with pytest.raises(siteline.errors.QueryError, match=words):
        table.resample(agg="mean", **options)


def test_arrow_and_polars_have_the_same_rows_in_the_zone(table):
    days = table.resample("1d", "last", tz="Europe/Berlin")
    frame, arrow, polars = days.to_pandas(), days.to_arrow(), days.to_polars()
    assert arrow.schema.field("timestamp").type == pa.timestamp("us", tz="Europe/Berlin")
    assert pa.schema(days) == arrow.schema
    assert polars.schema["timestamp"] == pl.Datetime("us", "Europe/Berlin")
    assert polars.columns == arrow.column_names == list(frame.columns)
    for name in frame:
        assert arrow[name].to_pylist() == frame[name].to_list() == polars[name].to_list(), name
    assert len(days) == len(frame)
    attributes = table.to_pandas().attrs["siteline"]
    assert frame.attrs["siteline"] == {**attributes, "tz": "Europe/Berlin"}
    again = pickle.loads(pickle.dumps(days))
    pd.testing.assert_frame_equal(again.to_pandas(), frame)


def test_no_points_are_no_rows_with_the_same_types(shared_sandbox, table):
    empty = (
        shared_sandbox.client(labels=False)
        .scan(**DST | {"filters": {"machineId": "none"}})
        .collect()
    )
    made, full = empty.resample("1d", "mean"), table.resample("1d", "mean")
    assert (made.to_pandas().dtypes == full.to_pandas().dtypes).all()
    assert len(made.to_pandas()) == 0


def test_points_of_an_unknown_width_are_not_said_to_be_expected(sandbox):
    table = (
        sandbox.client(labels=False).scan(site="S1", start="2026-11-01", end="2026-11-02").collect()
    )
    frame = table.resample("1d", "mean").to_pandas()
    assert frame["expected"].isna().all()
    assert (frame["buckets"] > 0).all()
