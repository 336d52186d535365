"""Arguments of the methods of tables, and pickles of pages."""

import pickle
from datetime import UTC, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
import siteline
from siteline.errors import QueryError

RANGE = {"site": "S1", "start": "2026-11-05", "end": "2026-11-06", "interval": "1h"}


@pytest.fixture(scope="module")
def client(shared_sandbox):
    return shared_sandbox.client()


@pytest.fixture(scope="module")
def table(client):
    return client.read(**RANGE)


@pytest.mark.parametrize(
    ("zone", "same"),
    [
        (UTC, "UTC"),
        (timezone(timedelta(hours=2)), "Etc/GMT-2"),
        (timezone(timedelta(hours=-5), "here"), "Etc/GMT+5"),
        (ZoneInfo("Europe/Berlin"), "Europe/Berlin"),
    ],
)
def test_zones_are_names_or_objects(table, client, zone, same):
    pl = pytest.importorskip("polars")
    pd = pytest.importorskip("pandas")
    frame, other = table.to_pandas(tz=zone), table.to_pandas(tz=same)
    pd.testing.assert_frame_equal(frame, other)
    assert (
        frame["timestamp"].iloc[0].utcoffset()
        == frame["timestamp"].iloc[0].astimezone(zone).utcoffset()
    )
    utc = table.to_pandas()
    assert frame["timestamp"].dt.tz_convert("UTC").equals(utc["timestamp"])
    assert frame.drop(columns="timestamp").equals(utc.drop(columns="timestamp"))
    assert table.to_polars(tz=zone).schema["timestamp"] == pl.Datetime("us", same)
    arrow = table.to_arrow(tz=zone)
    assert arrow["timestamp"].type.tz == same
    assert arrow["timestamp"].to_pylist() == table.to_arrow()["timestamp"].to_pylist()
    for made in (table.pivot(), table.resample("2h", "mean", tz="Asia/Tokyo", partial="keep")):
        assert made.to_polars(tz=zone).schema["timestamp"] == pl.Datetime("us", same)
    assert client.read(**RANGE, tz=zone).resample("1d", "mean").to_pandas().shape[0] > 0


@pytest.mark.parametrize("tz", ["Berlin", "", 7, timezone(timedelta(hours=5, minutes=30))])
def test_what_is_no_zone_is_refused(client, table, tz):
    scan = client.scan(**RANGE)
    for way in (scan.to_pandas, scan.to_polars, scan.to_arrow, table.to_pandas):
        with pytest.raises(QueryError, match="is no time zone") as refused:
            way(tz=tz)
    assert "an offset of whole hours" in refused.value.hint
    assert scan.report.pages == 0, "nothing is read"


def test_a_page_is_pickled_without_its_cursor(client):
    page = next(client.scan(**RANGE, page_size=50, keep_raw=True).pages())
    assert page.bookmark is not None
    cursor = page.raw.split(b'"nextCursor":"')[1].split(b'"')[0]
    data = pickle.dumps(page)
    assert len(cursor) > 10
    assert cursor not in data
    again = pickle.loads(data)
    assert type(again) is siteline.Page
    assert list(again.records()) == list(page.records())
    assert (again.bookmark, again.raw) == (None, None)
    for name in ("report", "query", "is_last", "sequence", "first_sequence", "is_whole", "feed"):
        assert getattr(again, name) == getattr(page, name), name
    assert repr(again) == repr(page)
    assert len(again.diff(page).unchanged) == len(page)
    feed = siteline.Feed("l1", site="S1", line="L1", interval="1h", start="2026-11-18")
    [(page, _), *_] = client.sync_pages(feed)
    assert pickle.loads(pickle.dumps(page)).feed == "l1"
