"""The service of the benchmark for candidates: its URL, their requests, and the column names."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from speed.render import START, end

COLUMNS = (
    "site_id",
    "line_id",
    "machine_id",
    "device_id",
    "tag_guid",
    "timestamp",
    "value",
    "minimum",
    "maximum",
    "sample_count",
)
IDS = ("siteId", "lineId", "machineId", "deviceId", "tagGuid")
INTERVAL, PAGE_SIZE = 60, 10_000


def base_url() -> str:
    """The base URL of the server."""
    return os.environ["SPEED_SERVER"]


def built() -> Path:
    """The folder of builds: pages, the wheel, the loops in Rust."""
    return Path(os.environ["SPEED_TARGET"])


def folder() -> Path:
    """The folder of the pages."""
    return built() / "bench-pages"


def target(pages: str, stop: datetime | None = None) -> str:
    """Path and query of a chain's first request, as siteline would send them."""
    return "/api/customer/v1/data?" + urlencode(parameters(pages, stop))


def parameters(pages: str, stop: datetime | None = None) -> dict[str, str]:
    """The query of a chain's first request."""
    return {
        "siteId": pages,
        "from": f"{START:%Y-%m-%dT%H:%M:%SZ}",
        "to": f"{stop or end():%Y-%m-%dT%H:%M:%SZ}",
        "aggregationIntervalSeconds": str(INTERVAL),
        "pageSize": str(PAGE_SIZE),
    }


def ours(**options: Any) -> tuple[Any, Callable[..., Any]]:
    """A client with a token and an open connection, and a function that scans a set of pages."""
    import siteline

    credential = siteline.Credential("bench", folder() / "key.pem")
    client = siteline.Client(base_url(), credential=credential, **options)

    def scan(pages: str, stop: datetime | None = None) -> Any:
        return client.data(
            site=pages,
            start=START,
            end=stop or end(),
            interval=INTERVAL,
            page_size=PAGE_SIZE,
        )

    if len(scan("tiny").collect()) != 10:
        raise RuntimeError("the tiny page does not have 10 points")
    return client, scan
