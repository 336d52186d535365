"""Render the pages of the benchmark: ``python -m speed.render FOLDER``.

``FOLDER/<set>/<nnn>.json``: the same points in every set of a hundred pages of ten thousand points.
A page is a slice of time of 20 series; doubles of 3 to 17 digits, one number in a hundred is null.

- ``a``: compact
- ``b``: another valid layout: spaces, nextCursor first, members in another order, ids after the
  points, an unknown member
- ``pairs``: as ``a``, two points to an envelope
- ``gzip``, ``gzip-b``: ``a`` and ``b``, compressed (``.json.gz``)
- ``small``: as ``a``, in a thousand pages of a thousand points
- ``page``, ``tiny``: one page each, of ten thousand points and of ten

Others of as many points each:

- ``wide``: a page has two points of each of 5,000 series
- ``unknown-100``: three pages of points with 100 unknown members, for decoding alone

The cursor of page 0 is ``p001``, and so on; that of the last page is null.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

VERSION = 3
PAGES, SERIES, SLICE = 100, 20, 500
"""Pages, series, and minutes of a page."""
WIDE_SERIES, WIDE_SLICE = 5_000, 2
"""The same of ``wide``."""
SMALL_SLICE = 50
"""Minutes of a page of ``small``."""
ODD_PAGES, ODD_SLICE = 3, 100
"""Pages of ``unknown-100``, and minutes of each."""
START = datetime(2026, 9, 1, tzinfo=UTC)
NULLS = 0.01

_POINT_A = '{"timestamp":"%s","value":%s,"minimum":%s,"maximum":%s,"sampleCount":%s}'
_POINT_B = (
    '{"sampleCount": %s, "maximum": %s, "quality": "good", "minimum": %s, "value": %s, '
    '"timestamp": "%s"}'
)


def end(pages: int = PAGES) -> datetime:
    """The end of the data, exclusive."""
    return START + timedelta(minutes=pages * SLICE)


@dataclass(frozen=True)
class Series:
    """One logical series, as the texts in the pages."""

    ids: tuple[str, str, str, str, str]
    points: list[tuple[str, str, str, str, str]]
    """timestamp, value, minimum, maximum, sampleCount, a minute apart."""

    def envelope_a(self, begin: int, stop: int) -> str:
        """An envelope of these points, in layout A."""
        head = '{"siteId":"%s","lineId":"%s","machineId":"%s","deviceId":"%s","tagGuid":"%s"'
        points = ",".join([_POINT_A % point for point in self.points[begin:stop]])
        return f'{head % self.ids},"points":[{points}]}}'

    def envelope_b(self, begin: int, stop: int) -> str:
        """An envelope of these points, in layout B."""
        site, line, machine, device, tag = self.ids
        points = ", ".join([_POINT_B % point[::-1] for point in self.points[begin:stop]])
        return (
            f'{{"tagGuid": "{tag}", "deviceId": "{device}", "points": [{points}], '
            f'"siteId": "{site}", "machineId": "{machine}", "lineId": "{line}"}}'
        )


def series(minutes: int, count: int = SERIES) -> list[Series]:
    """So many series, from a fixed seed."""
    generator = np.random.default_rng(5)
    times = [f"{START + timedelta(minutes=at):%Y-%m-%dT%H:%M:%SZ}" for at in range(minutes)]
    rendered = []
    for number in range(count):
        value = 50 + np.cumsum(generator.normal(0, 0.02, minutes))
        spread = generator.uniform(0, 1, minutes)
        columns = [_numbers(generator, each) for each in (value, value - spread, value + spread)]
        counts = [str(count) for count in generator.integers(1, 61, minutes)]
        columns.append(_with_nulls(generator, counts))
        ids = ("S1", "L1", f"M{number // 4}", f"D{number}", f"tag-{number:032d}")
        rendered.append(Series(ids, list(zip(times, *columns, strict=True))))
    return rendered


def _numbers(generator: np.random.Generator, exact: np.ndarray) -> list[str]:
    """Doubles of 3 to 17 digits, evenly distributed, as the shortest texts that round-trip."""
    decimals = generator.integers(1, 16, len(exact))
    # The nearest double to an integer below 2**53 over a power of ten has a shortest text of no
    # more digits; beyond 13 decimals all digits are kept.
    scale = 10.0 ** np.minimum(decimals, 13)
    rounded = np.where(decimals > 13, exact, np.rint(exact * scale) / scale)
    return _with_nulls(generator, list(map(repr, rounded.tolist())))


def _with_nulls(generator: np.random.Generator, texts: list[str]) -> list[str]:
    for at in np.flatnonzero(generator.uniform(0, 1, len(texts)) < NULLS).tolist():
        texts[at] = "null"
    return texts


def _page_a(envelopes: list[str], following: str | None) -> bytes:
    cursor = f'"{following}"' if following else "null"
    return f'{{"series":[{",".join(envelopes)}],"nextCursor":{cursor}}}'.encode()


def _page_b(envelopes: list[str], following: str | None) -> bytes:
    cursor = f'"{following}"' if following else "null"
    return f'{{"nextCursor": {cursor}, "series": [{", ".join(envelopes)}]}}'.encode()


def _following(number: int, pages: int) -> str | None:
    return f"p{number + 1:03d}" if number + 1 < pages else None


def bodies(pages: int = PAGES) -> Iterator[tuple[str, bytes]]:
    """Every file: its path within the folder, and its content."""
    data = series(pages * SLICE)
    for number in range(pages):
        following = _following(number, pages)
        begin, stop = number * SLICE, (number + 1) * SLICE
        body_a = _page_a([one.envelope_a(begin, stop) for one in data], following)
        body_b = _page_b([one.envelope_b(begin, stop) for one in data], following)
        pairs = [one.envelope_a(at, at + 2) for at in range(begin, stop, 2) for one in data]
        yield f"a/{number:03d}.json", body_a
        yield f"b/{number:03d}.json", body_b
        yield f"pairs/{number:03d}.json", _page_a(pairs, following)
        yield f"gzip/{number:03d}.json.gz", gzip.compress(body_a, 6, mtime=0)
        yield f"gzip-b/{number:03d}.json.gz", gzip.compress(body_b, 6, mtime=0)
    yield from _slices("small", data, SMALL_SLICE)
    yield from _slices("wide", series(pages * WIDE_SLICE, WIDE_SERIES), WIDE_SLICE)
    yield from _unknown(data, 100)
    yield "page/000.json", _page_a([one.envelope_a(0, SLICE) for one in data], None)
    yield "tiny/000.json", _page_a([one.envelope_a(0, 5) for one in data[:2]], None)


def _slices(name: str, data: list[Series], minutes: int) -> Iterator[tuple[str, bytes]]:
    """Pages of so many minutes of all series, in layout A."""
    pages = len(data[0].points) // minutes
    for number in range(pages):
        begin = number * minutes
        envelopes = [one.envelope_a(begin, begin + minutes) for one in data]
        yield f"{name}/{number:03d}.json", _page_a(envelopes, _following(number, pages))


def _unknown(data: list[Series], count: int) -> Iterator[tuple[str, bytes]]:
    """Pages of points with so many unknown members."""
    head = '{"siteId":"%s","lineId":"%s","machineId":"%s","deviceId":"%s","tagGuid":"%s","points":['
    unknown = "".join([f',"member{number}":{number}' for number in range(count)]) + "}"
    for number in range(ODD_PAGES):
        begin = number * ODD_SLICE
        envelopes = [
            head % one.ids
            + ",".join([(_POINT_A % point)[:-1] + unknown for point in points])
            + "]}"
            for one in data
            for points in [one.points[begin : begin + ODD_SLICE]]
        ]
        path = f"unknown-{count}/{number:03d}.json"
        yield path, _page_a(envelopes, _following(number, ODD_PAGES))


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


if __name__ == "__main__":
    render(Path(sys.argv[1]))
