"""Calls that type checkers of users must accept. Checked by mypy --strict; never run."""

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, assert_type

import altair as alt
import pandas as pd
import polars as pl
import pyarrow
import siteline
from siteline.types import Record, RecordIterator

Kind = Literal["points", "changes", "resampled", "pivoted", "completeness", "gaps", "series"]


def on_progress(now: siteline.types.Progress) -> None:
    assert_type(now.pages, int)


def main(client: siteline.Client, start: datetime) -> None:
    scan = client.scan(
        site="S1", start=start, end="2026-11-02T00:00Z", interval=timedelta(minutes=1)
    )
    assert_type(scan.to_pandas(), pd.DataFrame)
    assert_type(scan.to_polars(ids="category"), pl.DataFrame)
    assert_type(scan.records(), siteline.types.RecordIterator[dict[str, Any]])
    records: Iterator[dict[str, Any]] = scan.records()
    assert_type(next(records), dict[str, Any])
    assert_type(scan.records(named=True), RecordIterator[Record])
    assert_type(scan.collect().records(named=True), RecordIterator[Record])
    client.scan(site=7, start=None, filters={"machineId": ["M1", 2]}, extra_columns=("quality",))
    assert_type(
        siteline.Client(settle_lag="5m", http=siteline.types.Http(tries=2)), siteline.Client
    )
    assert_type(siteline.Client(profile="plant-a", ca_bundle="ca.pem"), siteline.Client)
    assert_type(siteline.AsyncClient(profile="plant-a"), siteline.AsyncClient)
    siteline.Credential("s", "key.pem", password_command=["pass", "show", "plant"])
    client.scan(site="S1", start=None, progress=True)
    client.scan(site="S1", start=None, progress=on_progress)
    table = scan.collect()
    chart = table.plot("maximum", tz="Europe/Berlin", labels={"T1": "speed"}, overlay=True)
    assert_type(chart, alt.LayerChart | alt.VConcatChart)
    assert_type(table.pivot().to_pandas(labels="device"), pd.DataFrame)
    assert_type(table.resample("1d", "mean").find("speed").kind, Kind)
    assert_type(siteline.plots.allowance(client.allowance), alt.LayerChart)
    for record in scan.records(named=True):
        assert_type(record, siteline.types.Record)
    for page in scan.pages():
        assert_type(page, siteline.Page)
    try:
        table = scan.collect()
        assert_type(table, siteline.Table)
    except siteline.errors.AllowanceExhausted as error:
        if error.bookmark is not None:
            scan.resume(error.bookmark, onto=error.partial)
    parts = scan.split("1d")
    assert_type(parts, list[siteline.Scan])
    assert_type(scan.head(3), siteline.Table)


def check_doctor(client: siteline.AsyncClient, path: Path) -> None:
    siteline.doctor(client, offline=True, enrolled_jwk={"kty": "RSA"}, store=[path])
    assert_type(siteline.doctor(profile="plant-a", store=path), siteline.types.Diagnosis)


@dataclasses.dataclass(frozen=True)
class HourlyFeed(siteline.Feed):
    site: str | None = "S1"
    interval: timedelta | None = timedelta(hours=1)


def check_feeds(start: datetime) -> None:
    feed = HourlyFeed("line-2", start=start)
    assert_type(dataclasses.replace(feed, line="L2"), HourlyFeed)


def check_sync(client: siteline.Client, path: Path) -> None:
    feed = siteline.Feed("line-2", site="S1", interval="1m", start="2026-01-01T00:00Z")
    with siteline.Store(path) as store:
        report = client.sync([feed], store, reread=("2026-01-01T00:00Z", "2026-01-02T00:00Z"))
        assert_type(report, siteline.types.SyncReport)
        assert_type(store.read(feed, final=True, withdrawn="drop"), siteline.Table)
        assert_type(store.read(feed, final=True, unread="warn").lazy(), pl.LazyFrame)
        assert_type(siteline.plots.coverage([store.coverage(feed)], tz="UTC"), alt.LayerChart)
        assert_type(store.lateness(feed).plot(), alt.VConcatChart)
        siteline.plots.allowance(client.allowance, store, plan=client.plan(feed, store))


class CustomStore:
    """A custom store, by its methods."""

    def state(self, feed: str) -> bytes | None:
        return None

    def apply(self, feed: str, page: siteline.Page | None, state: bytes) -> tuple[int, int, int]:
        return (0, 0, 0)


class CustomAsyncStore:
    """A custom store with async methods."""

    async def state(self, feed: str) -> bytes | None:
        return None

    async def apply(
        self, feed: str, page: siteline.Page | None, state: bytes
    ) -> tuple[int, int, int]:
        return (0, 0, 0)


async def sign(data: bytes) -> bytes:
    return data


async def check_custom_stores(client: siteline.AsyncClient, feed: siteline.Feed) -> None:
    target: siteline.targets.StoreTarget = CustomStore()
    assert_type(await client.sync(feed, target, deadline="1h"), siteline.types.SyncReport)
    assert_type(await client.plan(feed, target), siteline.types.Plan)
    awaited: siteline.targets.AsyncStoreTarget = CustomAsyncStore()
    assert_type(await client.sync(feed, awaited), siteline.types.SyncReport)
    assert_type(await client.plan(feed, awaited), siteline.types.Plan)
    siteline.Credential("s", signer=sign, public_jwk="{}")
    parts = client.scan(site="S1", start=None).split(3)
    assert_type(parts, list[siteline.types.AsyncScan])
    assert_type(await parts[0].head(), siteline.Table)
    assert_type(await parts[0].to_arrow(labels=False), pyarrow.Table)
    assert_type(await client.plan(parts), siteline.types.Plan)


def check_keys(key: siteline.PrivateKey) -> None:
    siteline.Credential("s", public_jwk=key.public_jwk, signer=lambda text: text)
