"""A chain into a pandas frame: siteline, and code that users write. ``typed`` has the fastest."""

from __future__ import annotations

from typing import Any

import pandas as pd

from speed.connection import HEADERS, Connection
from speed.outcome import Outcome, framed
from speed.service import COLUMNS, IDS, base_url, ours, parameters, target

_PATH = "/api/customer/v1/data"
_NAMES = dict(
    zip((*IDS, "timestamp", "value", "minimum", "maximum", "sampleCount"), COLUMNS, strict=True)
)


def siteline(pages: str) -> Outcome:
    """siteline: merged, counted, retried if necessary."""
    _, scan = ours()
    return framed(lambda: scan(pages).to_pandas(ids="category"))


def siteline_warm(pages: str) -> Outcome:
    """siteline: the second read of the process."""
    _, scan = ours()
    scan(pages).to_pandas(ids="category")
    return framed(lambda: scan(pages).to_pandas(ids="category"))


def _normalized(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the column names and dtypes of all candidates."""
    frame = frame.rename(columns=_NAMES)[list(COLUMNS)]
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True).dt.as_unit("us")
    for name in COLUMNS[:5]:
        frame[name] = frame[name].astype("category")
    for name in COLUMNS[6:9]:
        frame[name] = frame[name].astype("float64")
    frame["sample_count"] = frame["sample_count"].astype("Int64")
    return frame


def _session() -> Any:
    import requests

    session = requests.Session()
    session.headers.update(HEADERS | {"Accept-Encoding": "identity"})
    session.get(base_url() + target("tiny")).raise_for_status()
    return session


def _chain(session: Any, pages: str) -> Any:
    query = parameters(pages)
    while True:
        response = session.get(base_url() + _PATH, params=query)
        response.raise_for_status()
        page = response.json()
        yield page["series"]
        if page["nextCursor"] is None:
            return
        query["cursor"] = page["nextCursor"]


def normalize(pages: str) -> Outcome:
    """The code of tutorials: requests, json_normalize, to_datetime."""
    session = _session()

    def work() -> pd.DataFrame:
        read = [
            pd.json_normalize(envelopes, record_path="points", meta=list(IDS))
            for envelopes in _chain(session, pages)
        ]
        return _normalized(pd.concat(read, ignore_index=True))

    return framed(work)


def dlt(pages: str) -> Outcome:
    """dlt: its RESTClient follows the cursor; a frame from each page."""
    from dlt.sources.helpers.rest_client.auth import BearerTokenAuth
    from dlt.sources.helpers.rest_client.client import RESTClient
    from dlt.sources.helpers.rest_client.paginators import JSONResponseCursorPaginator

    client = RESTClient(
        base_url(),
        headers={"Accept-Encoding": "identity"},
        auth=BearerTokenAuth(HEADERS["Authorization"].removeprefix("Bearer ")),
        paginator=JSONResponseCursorPaginator(cursor_path="nextCursor", cursor_param="cursor"),
        data_selector="series",
    )
    list(client.paginate(_PATH, params=parameters("tiny")))

    def work() -> pd.DataFrame:
        read = []
        for envelopes in client.paginate(_PATH, params=parameters(pages)):
            rows = []
            for one in envelopes:
                ids = {name: one[name] for name in IDS}
                rows += [{**ids, **point} for point in one["points"]]
            read.append(pd.DataFrame(rows))
        return _normalized(pd.concat(read, ignore_index=True))

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
