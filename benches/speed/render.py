"""Renders the pages of the benchmark into FOLDER/<set>/<nnn>.json.

The sets of layouts have the same points, in 100 pages of 10,000 points. A page is a range of time
of 20 series. The doubles have 3 to 17 digits, and one number in a hundred is null.

- ``a``: compact
- ``b``: another valid layout: spaces, nextCursor first, members in another order, ids after the
  points, an unknown member
- ``pairs``: as ``a``, two points per envelope
- ``gzip``, ``gzip-b``: ``a`` and ``b``, compressed (``.json.gz``)
- ``small``: as ``a``, in 1,000 pages of 1,000 points
- ``page``, ``tiny``: one page each, of 10,000 points and of ten
- ``wide``: other points; a page has two points of each of 5,000 series
- ``unknown-100``: three pages of points with 100 unknown members, for decoding alone

The cursor of page 0 is ``p001``, and so on; on the last page it is null.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

VERSION = 4
PAGES, SERIES, SLICE = 100, 20, 500
"""Pages, series, and minutes of a page."""
WIDE_SERIES, WIDE_SLICE = 5_000, 2
"""The same of ``wide``."""
START = datetime(2026, 9, 1, tzinfo=UTC)
Series = tuple[tuple[str, ...], list[Any]]
"""The ids, and for each minute timestamp, value, minimum, maximum, sampleCount: all as texts."""

POINT = '{"timestamp":"%s","value":%s,"minimum":%s,"maximum":%s,"sampleCount":%s}'
POINT_B = (
    '{"sampleCount": %s, "maximum": %s, "quality": "good", "minimum": %s, "value": %s, '
    '"timestamp": "%s"}'
)
HEAD = '{"siteId":"%s","lineId":"%s","machineId":"%s","deviceId":"%s","tagGuid":"%s","points":['


def end(pages: int = PAGES) -> datetime:
    """The end of the data, exclusive."""
    return START + timedelta(minutes=pages * SLICE)


def series(minutes: int, count: int = SERIES) -> list[Series]:
    """This many series, from a fixed seed."""
    generator = np.random.default_rng(5)
    times = [f"{START + timedelta(minutes=at):%Y-%m-%dT%H:%M:%SZ}" for at in range(minutes)]

    def numbers(exact: Any) -> list[str]:
        digits = generator.integers(1, 16, minutes).tolist()
        return with_nulls(map(round, exact.tolist(), digits))

    def with_nulls(values: Iterable[float]) -> list[str]:
        nulls = generator.uniform(0, 1, minutes) < 0.01
        return ["null" if null else repr(each) for each, null in zip(values, nulls, strict=True)]

    rendered: list[Series] = []
    for number in range(count):
        value = 50 + np.cumsum(generator.normal(0, 0.02, minutes))
        spread = generator.uniform(0, 1, minutes)
        columns = [numbers(each) for each in (value, value - spread, value + spread)]
        columns.append(with_nulls(generator.integers(1, 61, minutes).tolist()))
        ids = ("S1", "L1", f"M{number // 4}", f"D{number}", f"tag-{number:032d}")
        rendered.append((ids, list(zip(times, *columns, strict=True))))
    return rendered


def envelope(one: Series, begin: int = 0, stop: int | None = None, point: str = POINT) -> str:
    """The points of these minutes, in layout A."""
    ids, points = one
    return HEAD % ids + ",".join([point % each for each in points[begin:stop]]) + "]}"


def page(envelopes: list[str], following: str = "null") -> bytes:
    """A page in layout A."""
    return f'{{"series":[{",".join(envelopes)}],"nextCursor":{following}}}'.encode()


def _envelope_b(one: Series, begin: int, stop: int) -> str:
    (site, line, machine, device, tag), points = one
    texts = ", ".join([POINT_B % point[::-1] for point in points[begin:stop]])
    return (
        f'{{"tagGuid": "{tag}", "deviceId": "{device}", "points": [{texts}], '
        f'"siteId": "{site}", "machineId": "{machine}", "lineId": "{line}"}}'
    )


def _page_b(envelopes: list[str], following: str) -> bytes:
    return f'{{"nextCursor": {following}, "series": [{", ".join(envelopes)}]}}'.encode()


def _pages(
    name: str,
    data: list[Series],
    minutes: int = SLICE,
    width: int = 0,
    layout: tuple[Callable[..., str], Callable[..., bytes]] = (envelope, page),
) -> Iterator[tuple[str, bytes]]:
    """Pages of this many minutes; each envelope has ``width`` of them, by default all."""
    count = len(data[0][1]) // minutes
    for number in range(count):
        begins = range(number * minutes, (number + 1) * minutes, width or minutes)
        texts = [layout[0](one, at, at + begins.step) for at in begins for one in data]
        following = f'"p{number + 1:03d}"' if number + 1 < count else "null"
        yield f"{name}/{number:03d}.json", layout[1](texts, following)


def bodies(pages: int = PAGES) -> Iterator[tuple[str, bytes]]:
    """Each file: its path within the folder, and its content."""
    data = series(pages * SLICE)
    for name, zipped, layout in (
        ("a", "gzip", (envelope, page)),
        ("b", "gzip-b", (_envelope_b, _page_b)),
    ):
        for path, body in _pages(name, data, layout=layout):
            yield path, body
            yield f"{zipped}{path[1:]}.gz", gzip.compress(body, 6, mtime=0)
    yield from _pages("pairs", data, width=2)
    yield from _pages("small", data, 50)
    yield from _pages("wide", series(pages * WIDE_SLICE, WIDE_SERIES), WIDE_SLICE)
    odd = POINT[:-1] + "".join(f',"member{n}":{n}' for n in range(100)) + "}"
    three = [(ids, points[:300]) for ids, points in data]
    yield from _pages("unknown-100", three, 100, layout=(partial(envelope, point=odd), page))
    yield from _pages("page", [(ids, points[:SLICE]) for ids, points in data])
    yield from _pages("tiny", [(ids, points[:5]) for ids, points in data[:2]], 5)


def render(folder: Path, pages: int = PAGES) -> None:
    """Write all files, unless a matching stamp exists; the stamp is written last."""
    stamp, version = folder / "stamp", f"{VERSION} {pages}"
    if stamp.exists() and stamp.read_text(encoding="ascii") == version:
        return
    print(f"rendering {pages} pages of each set into {folder} ...", file=sys.stderr, flush=True)
    stamp.unlink(missing_ok=True)
    for path, body in bodies(pages):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(body)
    stamp.write_text(version, encoding="ascii")
