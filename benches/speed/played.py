"""A contestant's turn: what was measured of it, and what it made, to be compared."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from speed.render import START, end

Figures = dict[str, float]
Made = TypeVar("Made")
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


@dataclass(frozen=True)
class Played:
    """What a turn gave."""

    figures: Figures
    product: Callable[[], Any]
    """The frame, table, records or summary; called only where it is compared."""


def timed(work: Callable[[], Made]) -> tuple[Made, Figures]:
    """Do it: its seconds by the clock and those of the processor (of all threads), and the bytes by
    which memory peaked over the start.
    """
    gc.collect()
    # The peak begins anew; Linux alone can do this.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start = _kilobytes("VmRSS")
    begun, busy = time.perf_counter(), time.process_time()
    product = work()
    figures = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - busy}
    return product, figures | {"bytes": (_kilobytes("VmHWM") - start) * 1024}


def framed(work: Callable[[], Any]) -> Played:
    """The same for a pandas frame, whose memory is the measure of the peak."""
    frame, figures = timed(work)
    size = float(frame.memory_usage(index=False).sum())
    return Played(figures | {"frames": figures["bytes"] / size}, lambda: frame)


def _kilobytes(what: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1])
    raise RuntimeError(f"no {what} here")


def base_url() -> str:
    """Where the server of the benchmark is."""
    return os.environ["SPEED_SERVER"]


def built() -> Path:
    """Where everything that is made lies: pages, the wheel, the loops in Rust."""
    return Path(os.environ["SPEED_TARGET"])


def folder() -> Path:
    """Where the pages lie."""
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


def ours() -> tuple[Any, Callable[..., Any]]:
    """A client with its token and its connection, and how it asks for a set of pages."""
    import siteline

    credential = siteline.Credential("bench", folder() / "key.pem")
    client = siteline.Client(base_url(), credential=credential)

    def scan(pages: str, stop: datetime | None = None) -> Any:
        return client.data(
            site=pages,
            start=START,
            end=stop or end(),
            interval=INTERVAL,
            page_size=PAGE_SIZE,
        )

    if len(scan("tiny").collect()) != 10:
        raise RuntimeError("the tiny page is not what it should be")
    return client, scan
