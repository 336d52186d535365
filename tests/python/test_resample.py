"""Larger buckets equal the buckets of pandas, also in local days. Partial buckets are marked."""

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
    """Resamples a long frame with pandas. The mean is weighted by the counts."""
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
    """Checks that the frame has the rows of pandas."""
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
    made = table.resample(interval, "mean", tz=tz, partial="keep")
    assert made.to_pandas()["timestamp"].dtype == pd.DatetimeTZDtype("us", tz)
    check(made.to_pandas(), resampled(table.to_pandas(), rule, tz))


def test_each_way_to_make_a_value(table):
    long = table.to_pandas()
    by_series = long.groupby(IDS, sort=False)["value"]
    for agg in ("sum", "first", "last"):
        made = table.resample("1w", agg, origin="2026-10-23", partial="keep")
        made = made.to_pandas()["value"]
        np.testing.assert_allclose(made, getattr(by_series, agg)(), rtol=1e-12)


def test_a_day_may_begin_at_six_and_a_week_begins_on_monday(table):
    for origin in (
        "06:00",
        datetime.time(6),
        "2026-10-25T06:00",
        datetime.datetime(2026, 10, 25, 6),
        np.datetime64("2026-10-25T06"),
        "2026-10-25T06:00+01:00",
        pd.Timestamp("2026-10-25T05:00Z"),
    ):
        days = table.resample("1d", "mean", tz="Europe/Berlin", origin=origin, partial="keep")
        made = days.to_pandas()
        assert [stamp.isoformat() for stamp in made["timestamp"].head(4)] == [
            "2026-10-23T06:00:00+02:00",
            "2026-10-24T06:00:00+02:00",
            "2026-10-25T06:00:00+01:00",
            "2026-10-26T06:00:00+01:00",
        ]
        assert made["expected"].head(4).to_list() == [24, 25, 24, 24]
    weeks = table.resample("1w", "mean", tz=ZoneInfo("Europe/Berlin"), partial="keep")
    monday = weeks.pivot().to_pandas().index[0]
    assert monday.isoformat() == "2026-10-19T00:00:00+02:00"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": "1d", "tz": "Europe/Berlinn"}, "no time zone"),
        ({"every": "1d", "tz": 7}, "no time zone"),
        ({"every": "1d", "agg": "average"}, '"last" and "increase"'),
        ({"every": "1d", "partial": "hide"}, '"null", "keep" and "drop"'),
        ({"every": "1d", "tz": datetime.timezone(datetime.timedelta(minutes=90))}, "no time zone"),
        ({"every": "1d", "origin": "noon"}, "no local time"),
        ({"every": "1d", "origin": 6}, "no local time"),
        ({"every": "1d", "origin": np.datetime64("NaT")}, "no local time"),
        ({"every": "1d", "origin": "06:00-05:00"}, "no local time"),
        ({"every": "1d", "origin": "2026-10-25T06:00[Asia/Tokyo]"}, "no local time"),
        ({"every": 0}, "every= is 0"),
        ({"every": "2mo"}, "not a duration"),
        ({"every": "1mo", "origin": "2026-10-29"}, "after the 28th"),
        ({"every": "30m"}, "overlaps two larger buckets"),
        ({"every": "1d", "tz": "Asia/Kathmandu"}, r"two larger.*2026-10-24T18:15:00Z"),
    ],
)
def test_invalid_options_are_refused_and_told(table, options, words):
    with pytest.raises(siteline.errors.QueryError, match=words):
        table.resample(**{"agg": "mean", "partial": "keep", **options})


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


def test_partial_periods_have_no_value(shared_sandbox):
    client = shared_sandbox.client()
    table = client.read(
        site="S1", start="2026-10-24T06:00Z", end="2026-10-26T18:00Z", interval="1h"
    )
    with pytest.warns(siteline.SitelineWarning, match="2 periods between 2026-10-24") as seen:
        days = table.resample("1d", "sum")
    assert len(seen) == 1
    assert seen[0].filename == __file__
    frame = days.to_pandas()
    series = len(table.series)
    assert frame["partial"].tolist() == [True, False, True] * series
    numbers = ["value", "minimum", "maximum", "sample_count"]
    assert frame.loc[frame["partial"], numbers].isna().all(axis=None)
    assert frame.loc[~frame["partial"], numbers].notna().all(axis=None)
    assert (frame["buckets"] > 0).all()
    for values in numbers:
        wide = days.pivot(values).to_pandas()
        assert wide.isna().all(axis=1).tolist() == [True, False, True]
    kept = table.resample("1d", "sum", partial="keep").to_pandas()
    assert kept["partial"].tolist() == frame["partial"].tolist()
    assert kept["value"].notna().all()
    dropped = table.resample("1d", "sum", partial="drop").to_pandas()
    pd.testing.assert_frame_equal(dropped, frame[~frame["partial"]].reset_index(drop=True))


def test_missing_buckets_make_no_period_partial(sandbox):
    hours = pd.date_range("2026-11-01", periods=48, freq="1h", tz="UTC")
    frame = pd.DataFrame({"timestamp": hours, "value": 1.0, "sample_count": 1})
    sandbox.load(frame.drop(index=range(3, 20)))
    whole = {"start": "2026-11-01T00:00Z", "end": "2026-11-03T00:00Z", "interval": "1h"}
    days = sandbox.client().read(**whole).resample("1d", "sum").to_pandas()
    assert days[["value", "buckets", "expected", "partial"]].values.tolist() == [
        [7.0, 7, 24, False],
        [24.0, 24, 24, False],
    ]


def test_parts_of_a_read_are_partial(sandbox):
    client = sandbox.client(labels=False)
    asked = {"site": "S1", "start": "2026-11-01", "end": "2026-11-02", "interval": "1h"}
    table = client.read(**asked)
    page = next(client.scan(**asked, page_size=50).pages())
    for part in (table.head(30), page, pickle.loads(pickle.dumps(table.head(30)))):
        assert part.resample("3h", "sum", partial="keep").to_pandas()["partial"].all()
    assert not table.find(line="L1").resample("1d", "sum").to_pandas()["partial"].any()
    truth = sandbox.expected(**asked)
    assert not truth.resample("1d", "sum").to_pandas()["partial"].any()
    del asked["interval"]
    unknown = client.read(**asked)
    day = unknown.resample("1d", "sum").to_pandas()
    assert not day["partial"].any()
    assert day["expected"].isna().all()
    assert (day["buckets"] > 0).all()
    days = unknown.resample("2d", "sum", partial="keep").to_pandas()
    assert days["partial"].all()


def test_a_store_marks_unread_and_unsettled_periods(sandbox, store):
    feed = siteline.Feed("l2", site="S1", line="L2", interval="1h", start="2026-11-17T12:00Z")
    sandbox.client().sync(feed, store)
    points = store.read("l2", "2026-11-17", "2026-11-20", unread="keep")
    days = points.resample("1d", "sum", partial="keep").to_pandas()
    by_day = days.groupby("timestamp")["partial"].all()
    assert by_day.tolist() == [True, False, True], "the last hour of the 19th is not settled"
    final = store.read("l2", "2026-11-18", "2026-11-20", final=True, unread="keep")
    settled_through = pd.Timestamp(final.report.settled_through)
    days = final.resample("1d", "sum", origin="06:00", partial="keep").to_pandas()
    starts, ends = days["timestamp"], days["timestamp"] + pd.Timedelta(days=1)
    assert settled_through == pd.Timestamp("2026-11-19T00:00Z")
    is_partial = (starts < pd.Timestamp("2026-11-18T00:00Z")) | (ends > settled_through)
    assert days["partial"].tolist() == is_partial.tolist()
    noon = final.resample("12h", "sum").to_pandas()
    assert not noon["partial"].any()


def rise_of(points):
    """Returns the rise of a counter and its largest step, computed in a plain loop."""
    total, before, largest = 0.0, None, 0.0
    for point in points:
        if point.maximum is None:
            continue
        start = point.minimum if before is None else 0.0 if point.maximum < before else before
        total += point.maximum - start
        largest = max(largest, point.maximum - start)
        before = point.maximum
    return total, largest


def test_a_week_of_a_counter_is_the_same_from_every_interval(sandbox):
    client, week = sandbox.client(), {"line": "L1", "start": "2026-11-02", "end": "2026-11-09"}
    totals, steps = [], []
    for interval in ("1m", "5m", "1h"):
        table = client.read(**week, interval=interval).find("pieces")
        total, step = rise_of(table.records(named=True))
        for every in ("1w", "1d"):
            made = table.resample(every, "increase").to_pandas()["value"].sum()
            assert made == pytest.approx(total)
        totals.append(total)
        steps.append(step)
    # One reading of the counter is its largest step in a minute.
    assert max(totals) - min(totals) <= steps[0]
    assert min(totals) > 100 * steps[0]


def test_a_mean_without_counts_warns(sandbox):
    hours = pd.date_range("2026-11-01", periods=24, freq="1h", tz="UTC")
    frame = pd.DataFrame({"timestamp": hours, "value": range(24)})
    frame["minimum"] = frame["maximum"] = frame["value"]
    frame["sample_count"] = pd.array([None, *[9] * 23], dtype="Int64")
    sandbox.load(frame)
    table = sandbox.client().read(start="2026-11-01", end="2026-11-02", interval="1h")
    with pytest.warns(siteline.SitelineWarning, match="sample_count: 1 periods"):
        halves = table.resample("12h", "mean").to_pandas()
    assert halves["value"].tolist() == [5.5, 17.5]
