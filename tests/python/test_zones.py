"""`tz=` of frames: the same instants, on the clock of a zone."""

import asyncio
import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import siteline
from kit.feeds import make_feed
from kit.ranges import SIX_HOURS

BERLIN = "Europe/Berlin"
DTYPE = pd.DatetimeTZDtype("us", BERLIN)


def check(source):
    """Each frame has the instants of the frame in UTC, in the zone."""
    frame, utc = source.to_pandas(tz=BERLIN), source.to_pandas()
    assert frame["timestamp"].dtype == DTYPE
    assert utc["timestamp"].dtype == pd.DatetimeTZDtype("us", "UTC")
    assert frame["timestamp"].dt.tz_convert("UTC").equals(utc["timestamp"])
    assert frame.drop(columns="timestamp").equals(utc.drop(columns="timestamp"))
    polars = source.to_polars(tz=BERLIN, ids="category")
    assert polars.schema["timestamp"] == pl.Datetime("us", BERLIN)
    assert polars["timestamp"].equals(source.to_polars()["timestamp"].dt.convert_time_zone(BERLIN))
    arrow = source.to_arrow(tz=BERLIN)
    assert arrow.schema.field("timestamp") == pa.field(
        "timestamp", pa.timestamp("us", tz=BERLIN), nullable=False
    )
    assert arrow["timestamp"].to_pylist() == source.to_arrow()["timestamp"].to_pylist()
    assert arrow.column_names == source.to_arrow().column_names


def test_all_that_gives_frames_takes_a_zone(sandbox, tmp_path):
    client = sandbox.client()
    scan = client.scan(**SIX_HOURS)
    for source in (scan, scan.collect(), next(scan.pages())):
        check(source)
    with siteline.Store(tmp_path / "plant.siteline") as store:
        client.sync(make_feed("a", start="2026-11-19T00:00Z"), store)
        check(store.read("a"))
    wide = scan.collect().pivot()
    assert wide.to_pandas(tz=BERLIN).index.dtype == DTYPE
    assert wide.to_polars(tz=BERLIN).schema["timestamp"] == pl.Datetime("us", BERLIN)
    days = scan.collect().resample("2h", "mean", tz="Asia/Tokyo", partial="keep")
    assert days.to_pandas(tz=BERLIN)["timestamp"].dtype == DTYPE
    assert days.to_pandas()["timestamp"].dtype == pd.DatetimeTZDtype("us", "Asia/Tokyo")

    async def read():
        async with sandbox.async_client() as asynchronous:
            other = asynchronous.scan(**SIX_HOURS)
            frame = await other.to_pandas(tz=BERLIN)
            arrow, polars = await other.to_arrow(tz=BERLIN), await other.to_polars(tz=BERLIN)
            return frame["timestamp"].dtype, arrow.num_rows, polars.height

    assert asyncio.run(read()) == (DTYPE, 72, 72)


@pytest.mark.parametrize("tz", ["Berlin", "", 7, datetime.timezone(datetime.timedelta(minutes=30))])
def test_what_is_no_zone_is_refused_before_anything_is_read(sandbox, tz):
    scan = sandbox.client().scan(**SIX_HOURS)
    for way in (scan.to_pandas, scan.to_polars, scan.to_arrow):
        with pytest.raises(siteline.errors.QueryError, match="is no time zone"):
            way(tz=tz)
    assert sandbox.stats.data_requests == 0


def test_the_first_day_needs_no_local_time(sandbox, tmp_path):
    first = '{"timestamp": "0001-01-01T00:00:00Z", "value": 1.5}'
    ids = '"siteId": "S1", "lineId": "L1", "machineId": "M1", "deviceId": "D1", "tagGuid": "T1"'
    body = f'{{"series": [{{{ids}, "points": [{first}]}}], "nextCursor": null}}'
    sandbox.fault(on="data", nth=1, body=body.encode())
    table = sandbox.client(tz="America/New_York").read(start="-1h", labels=False)
    table.to_csv(tmp_path / "first.csv")
    assert "0001-01-01T00:00:00Z,1.5," in (tmp_path / "first.csv").read_text()
    assert "1-01-01 00:00" in table._repr_html_()
    for start in ("0001-01-01T00:00Z", datetime.datetime.min, "-2000000d"):
        with pytest.raises(siteline.errors.QueryError, match="from 0001-01-02"):
            siteline.Feed("line-2", start=start)
