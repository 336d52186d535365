"""A chain into a pandas frame: siteline, and code that users write. ``typed`` has the fastest."""

from __future__ import annotations

from typing import Any

import pandas as pd

from speed.outcome import Outcome, framed
from speed.service import COLUMNS, HEADERS, IDS, PATH, Connection, base_url, ours, parameters

_NAMES = dict(zip(IDS, COLUMNS, strict=False)) | {"sampleCount": "sample_count"}


def siteline(pages: str, warm: str = "") -> Outcome:
    """siteline: merged, counted, retried if necessary; ``warm``: the second read of the process."""
    _, scan = ours()
    if warm:
        scan(pages).to_pandas(ids="category")
    return framed(lambda: scan(pages).to_pandas(ids="category"))


def _normalized(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the column names and dtypes of all candidates."""
    frame = frame.rename(columns=_NAMES)[list(COLUMNS)]
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True).dt.as_unit("us")
    kinds: Any = ("category",) * 5 + ("float64",) * 3 + ("Int64",)
    for name, kind in zip(COLUMNS[:5] + COLUMNS[6:], kinds, strict=True):
        frame[name] = frame[name].astype(kind)
    return frame


def normalize(pages: str) -> Outcome:
    """The code of tutorials: requests, json_normalize, to_datetime."""
    import requests

    session = requests.Session()
    session.headers.update(HEADERS | {"Accept-Encoding": "identity"})
    session.get(base_url() + PATH, params=parameters("tiny")).raise_for_status()

    def work() -> pd.DataFrame:
        read, query = [], parameters(pages)
        while True:
            response = session.get(base_url() + PATH, params=query)
            response.raise_for_status()
            page = response.json()
            read.append(pd.json_normalize(page["series"], record_path="points", meta=list(IDS)))
            if page["nextCursor"] is None:
                return _normalized(pd.concat(read, ignore_index=True))
            query["cursor"] = page["nextCursor"]

    return framed(work)


def polars(pages: str) -> Outcome:
    """The JSON reader of polars, page by page (all pages as lines is slower), then to pandas."""
    import polars as pl

    number = pl.Float64()
    point = {"timestamp": pl.String(), "value": number, "minimum": number, "maximum": number}
    points = pl.List(pl.Struct(point | {"sampleCount": pl.Int64()}))
    envelope = pl.Struct({name: pl.String() for name in IDS} | {"points": points})
    schema = {"series": pl.List(envelope), "nextCursor": pl.String()}
    ids = pl.col(*IDS).cast(pl.Categorical)
    times = pl.col("timestamp").str.to_datetime(
        "%Y-%m-%dT%H:%M:%SZ", time_unit="us", time_zone="UTC"
    )
    connection = Connection()

    def decode(body: bytes) -> tuple[str | None, pl.DataFrame]:
        page = pl.read_json(body, schema=schema)
        envelopes = page.select(pl.col("series").explode()).unnest("series").with_columns(ids)
        flat = envelopes.explode("points").unnest("points").with_columns(times)
        return page["nextCursor"][0], flat

    def work() -> pd.DataFrame:
        frame = pl.concat(connection.pages(pages, decode)).to_pandas()
        frame["sampleCount"] = frame["sampleCount"].astype("Int64")
        return frame.rename(columns=_NAMES)

    return framed(work)
