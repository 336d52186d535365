"""`with_gaps()`, `gaps()` and `completeness()`: missing buckets, and time that was never read."""

import json
import pickle

import pytest
import siteline
from siteline.errors import QueryError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")

NOW = "2026-11-20T00:00:00Z"
RANGE = {"start": "2026-11-05", "end": "2026-11-08", "interval": "10m"}
IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]
NUMBERS = ["value", "minimum", "maximum", "sample_count"]


@pytest.fixture(scope="module")
def client(shared_sandbox):
    return shared_sandbox.client(labels=False)


@pytest.fixture(scope="module")
def table(client):
    table = client.scan(site="S1", line="L1", **RANGE).collect()
    per_series = table.to_pandas().groupby(IDS, observed=True).size()
    assert (per_series < 3 * 144).all(), "the plant pauses"
    return table


@pytest.fixture(scope="module")
def store(client, tmp_path_factory):
    """A store. Its feed starts on 18 November."""
    feed = siteline.Feed("l1", site="S1", line="L1", interval="10m", start="2026-11-18")
    with siteline.Store(tmp_path_factory.mktemp("plant") / "plant.siteline") as store:
        client.sync(feed, store)
        yield store


def reindexed(frame, start, end):
    """Returns the frame as pandas reindexes it: each series with all buckets."""
    times = pd.date_range(start, end, freq="10min", inclusive="left", tz="UTC", name="timestamp")
    parts = []
    for ids, rows in frame.groupby(IDS, observed=True, sort=False):
        whole = rows.set_index("timestamp")[NUMBERS].reindex(times.as_unit("us")).reset_index()
        parts.append(
            whole.assign(**dict(zip(IDS, ids, strict=True)))[[*IDS, "timestamp", *NUMBERS]]
        )
    return pd.concat(parts, ignore_index=True)


def test_each_missing_bucket_is_a_row_of_nulls(table):
    frame = table.with_gaps().to_pandas()
    expected = reindexed(table.to_pandas(), "2026-11-05", "2026-11-08")
    assert len(frame) == 6 * 3 * 144
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    assert (frame.dtypes == table.to_pandas().dtypes).all()


def test_each_gap_is_one_row(table):
    frame = table.gaps().to_pandas()
    assert list(frame.columns) == [*IDS, "start", "end", "buckets"]
    missing = table.with_gaps().to_pandas()
    points = table.to_pandas().set_index([*IDS, "timestamp"]).index
    missing = missing[~missing.set_index([*IDS, "timestamp"]).index.isin(points)]
    bucket = pd.Timedelta("10min")
    listed = [
        (*row[:5], at)
        for row in frame.itertuples(index=False, name=None)
        for at in pd.date_range(row[5], row[6], freq=bucket, inclusive="left")
    ]
    assert listed == list(missing[[*IDS, "timestamp"]].itertuples(index=False, name=None))
    assert ((frame["end"] - frame["start"]) / bucket == frame["buckets"]).all()
    long = table.gaps(longer_than="30m").to_pandas()
    assert 0 < len(long) < len(frame)
    pd.testing.assert_frame_equal(long, frame[frame["buckets"] > 3].reset_index(drop=True))
    assert pl.DataFrame(table.gaps())["buckets"].to_list() == frame["buckets"].tolist()


def test_unknown_gaps_are_refused(shared_sandbox, client, table):
    unknown = "Missing buckets cannot be determined"
    page = next(client.scan(site="S1", page_size=100, **RANGE).pages())
    with pytest.raises(QueryError, match=r"with_gaps\(\) does not fit: a page"):
        page.with_gaps().to_pandas()
    rest = client.scan(site="S1", page_size=5_000, **RANGE)
    first = next(rest.pages())
    resumed = rest.resume(first.bookmark).collect()
    for convert in (resumed.with_gaps, resumed.gaps, resumed.completeness):
        with pytest.raises(QueryError, match=f"{unknown}: this table is only a part of its read"):
            convert()
    shared_sandbox.fault(on="data", status=503, skip=1, times=9)
    with pytest.raises(siteline.errors.ServiceUnavailable) as failed:
        client.scan(site="S1", page_size=1_000, **RANGE).collect()
    shared_sandbox.clear_faults()
    with pytest.raises(QueryError, match="only a part of its read"):
        failed.value.partial.completeness()
    with pytest.raises(QueryError, match="the points are resampled already"):
        table.resample("1d", "mean").with_gaps().to_pandas()
    truth = shared_sandbox.expected(site="S1", **RANGE)
    with pytest.raises(QueryError, match="no read gave this table"):
        truth.with_gaps().to_polars()


@pytest.mark.parametrize("part", ["whole", "found", "pickled"])
def test_added_rows_are_not_counted(table, part):
    filled = table.with_gaps()
    if part == "found":
        table, filled = table.find(machine="M1"), filled.find(machine="M1")
    if part == "pickled":
        filled = pickle.loads(pickle.dumps(filled))
    assert len(filled) > len(table)
    for make in (
        lambda table: table.gaps(),
        lambda table: table.completeness(),
        lambda table: table.resample("1d", "mean"),
        lambda table: table.with_gaps(),
    ):
        pd.testing.assert_frame_equal(make(filled).to_pandas(), make(table).to_pandas())
    assert len(filled.gaps()) > 0


def test_first_rows_have_no_known_gaps(table, store):
    points = store.read("l1", "2026-11-18", "2026-11-19")
    for whole in (table, table.with_gaps(), points):
        first = whole.head(10)
        for part in (first, first.find(line="L1"), pickle.loads(pickle.dumps(first))):
            for name in ("gaps", "completeness", "with_gaps"):
                with pytest.raises(QueryError, match="these are the first rows only"):
                    getattr(part, name)()
        assert len(first.to_pandas()) == 10


def test_time_after_the_read_is_no_gap(shared_sandbox):
    with pytest.warns(siteline.SitelineWarning, match="is in the future"):
        table = shared_sandbox.client(labels=False).read(
            site="S1", line="L1", start="2026-11-19", end="2026-11-22", interval="1h"
        )
    # The bucket of the read itself has not ended.
    assert table.gaps().to_pandas()["end"].max() <= pd.Timestamp(NOW)
    days = table.completeness().to_pandas()
    assert days["unread"].tolist() == [0, 24, 24] * 6


def test_a_store_has_no_rows_for_what_was_never_read(store):
    points = store.read("l1", "2026-11-18", "2026-11-19", labels=False)
    frame = points.with_gaps().to_pandas()
    expected = reindexed(points.to_pandas(), "2026-11-18", "2026-11-19")
    assert not frame.pop("withdrawn").any()
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    with pytest.warns(siteline.SitelineWarning, match="unread"):
        early = store.read("l1", "2026-11-17", "2026-11-19", unread="warn")
    assert len(early.with_gaps().to_polars()) == len(frame)
    assert len(points.with_gaps().pivot()) == 144
    with pytest.raises(QueryError, match="changes are a part of the points"):
        store.changes("l1", 0).with_gaps().to_pandas()


def test_completeness_counts_what_is_there_by_series_and_day(table):
    frame = table.completeness().to_pandas()
    counts = ["share", "buckets", "missing", "unread", "expected"]
    assert list(frame.columns) == [*IDS, "timestamp", *counts]
    points = table.to_pandas()
    days = points.groupby([*IDS, points["timestamp"].dt.floor("1D")], observed=True).size()
    assert len(frame) == 6 * 3
    assert frame.set_index([*IDS, "timestamp"])["buckets"].to_dict() == days.to_dict()
    assert (frame["expected"] == 144).all()
    assert (frame["missing"] == 144 - frame["buckets"]).all()
    assert (frame["unread"] == 0).all()
    assert (frame["share"] == frame["buckets"] / 144).all()
    assert frame["missing"].sum() > 0
    polars, arrow = table.completeness().to_polars(), table.completeness().to_arrow()
    assert polars["share"].to_list() == arrow["share"].to_pylist() == frame["share"].tolist()
    assert pl.DataFrame(table.completeness()).columns == list(frame.columns)


def test_days_keep_to_a_local_clock_and_may_be_asked_for_in_part(client):
    whole = {"site": "S1", "line": "L1", "interval": "1h"}
    table = client.scan(start="2026-10-24T22:00Z", end="2026-10-26T17:00Z", **whole).collect()
    days = table.completeness("1d", tz="Europe/Berlin").to_pandas()
    one = days[days["tag_guid"] == days["tag_guid"].iloc[0]]
    assert one["expected"].tolist() == [25, 24]
    # Eighteen hours are not a whole day.
    assert one["unread"].tolist() == [0, 6]
    assert one["share"].iloc[1] <= 18 / 24
    assert str(one["timestamp"].iloc[0]) == "2026-10-25 00:00:00+02:00"
    with pytest.raises(QueryError, match="overlaps two larger"):
        table.completeness("1d", tz="Asia/Kolkata")
    with pytest.raises(QueryError, match="every= is 0"):
        table.completeness(0)


def test_of_a_store_what_was_never_read_is_not_missing(store):
    points = store.read("l1", "2026-11-17T12:00Z", "2026-11-19", unread="keep")
    assert len(points.gaps()) == 0
    days = points.completeness().to_pandas()
    by_day = days.groupby("timestamp")[["buckets", "missing", "unread", "expected"]].sum()
    assert by_day["unread"].tolist() == [6 * 144, 0]
    assert by_day["missing"].iloc[0] == 0
    assert by_day["buckets"].iloc[1] == len(store.read("l1", "2026-11-18", "2026-11-19"))
    with pytest.raises(siteline.errors.UnreadRange):
        store.read("l1", "2026-11-17", "2026-11-19").completeness()
    with pytest.raises(QueryError, match="these are a part of the points"):
        store.read("l1", "2026-11-18", "2026-11-19", withdrawn="only").completeness()
    settled = store.read("l1", "2026-11-18", "2026-11-20", final=True, unread="keep")
    assert settled.completeness("2d").to_pandas()["unread"].iloc[0] > 0


def test_a_series_without_points_is_one_gap(shared_sandbox):
    shared_sandbox.fault(on="data", status=200, body=json.dumps({"series": [], "nextCursor": None}))
    table = shared_sandbox.client(tz="Europe/Berlin").read(site="S1", line="L1", **RANGE)
    shared_sandbox.clear_faults()
    assert len(table) == 0
    frame = table.gaps().to_pandas()
    assert frame["label"].astype(str).nunique() == len(frame) == 6
    assert frame["label"].astype(str).str.contains("M1 / D11 / pieces").sum() == 1
    assert frame["start"].unique().tolist() == [pd.Timestamp("2026-11-05", tz="Europe/Berlin")]
    assert frame["end"].unique().tolist() == [pd.Timestamp("2026-11-08", tz="Europe/Berlin")]
    assert frame["buckets"].unique().tolist() == [432]
    days = table.find("pieces").completeness()
    assert days.to_pandas()[["share", "missing"]].values.tolist() == [[0, 144]] * 3
    assert days.pivot().to_pandas().columns.tolist() == ["M1 / D11 / pieces [1]"]
    for again in (pickle.loads(pickle.dumps(table)), table.with_gaps()):
        pd.testing.assert_frame_equal(again.gaps().to_pandas(), frame)


def test_selected_ids_without_points_are_gaps(client, table):
    seen = table.series.to_pandas()[IDS].iloc[0].tolist()
    selected = [seen, ["S1", "L1", "M1", "D11", "no such tag"]]
    picked = client.read(series=selected, **RANGE)
    gaps = picked.gaps().to_pandas()
    assert gaps.loc[gaps["tag_guid"] == "no such tag", "buckets"].tolist() == [432]
    expected = table.gaps().to_pandas().set_index(IDS).loc[[tuple(seen)], "buckets"]
    assert gaps.loc[gaps["tag_guid"] == seen[-1], "buckets"].tolist() == expected.tolist()


def test_no_points_are_no_rows_and_no_claim(client):
    nothing = client.scan(site="S9", labels=False, **RANGE).collect()
    assert len(nothing.with_gaps().to_pandas()) == 0
    assert len(nothing.completeness()) == len(nothing.resample("1d", "mean").to_pandas()) == 0
    assert repr(nothing.completeness()) == "<Table completeness: 0 rows, 0 series, 1d in UTC>"
