"""A chain point by point, as dicts and as named tuples, without keeping them."""

from __future__ import annotations

import collections
import gc
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from speed import typed
from speed.outcome import Outcome, timed
from speed.service import Connection, ours


def _drained(records: Callable[[], Iterable[Any]]) -> Outcome:
    """Iterate over all records without keeping them."""
    _, figures = timed(lambda: collections.deque(records(), maxlen=0))
    return Outcome(figures, records)


def siteline(pages: str, named: str = "") -> Outcome:
    """siteline, as dicts; ``named``: as named tuples."""
    _, scan = ours()
    return _drained(lambda: scan(pages).records(named=bool(named)))


def typed_tuples(pages: str) -> Outcome:
    """msgspec's typed structs, as plain tuples."""
    # The peers make no reference cycles; siteline's records are not tracked by the collector.
    gc.disable()
    return _drained(typed.tuples(pages))


def orjson(pages: str) -> Outcome:
    """orjson, and the same dicts."""
    import orjson

    gc.disable()
    connection = Connection()

    def decode(body: bytes) -> tuple[str | None, list[Any]]:
        page = orjson.loads(body)
        return page["nextCursor"], page["series"]

    def records() -> Iterable[dict[str, Any]]:
        for envelopes in connection.pages(pages, decode):
            for one in envelopes:
                site, line, machine = one["siteId"], one["lineId"], one["machineId"]
                device, tag = one["deviceId"], one["tagGuid"]
                for point in one["points"]:
                    yield {
                        "site_id": site,
                        "line_id": line,
                        "machine_id": machine,
                        "device_id": device,
                        "tag_guid": tag,
                        "timestamp": datetime.fromisoformat(point["timestamp"]),
                        "value": point["value"],
                        "minimum": point["minimum"],
                        "maximum": point["maximum"],
                        "sample_count": point["sampleCount"],
                    }

    return _drained(records)
