"""The rows of reading: frames, Arrow, records, paging, memory and the start of a script."""

from __future__ import annotations

from dataclasses import replace

from speed.measure import Row

LAYOUTS = (("a", "A"), ("b", "B"))


def _frames() -> list[Row]:
    """To pandas. Each bar holds for both layouts: the interface fixes none (§2.3)."""
    rows = []
    for pages, layout in LAYOUTS:
        ours, typed = f"frames:siteline:{pages}", f"typed:frame:{pages}"
        what = f"to pandas, layout {layout}, beside"
        first = 0.28 if pages == "a" else 0.35
        rows.append(Row(f"{what} msgspec and NumPy", "seconds", ours, typed, bar=first))
        for peer, by, bar in (("json_normalize", "normalize", 0.03), ("dlt", "dlt", 0.04)):
            who = f"frames:{by}:{pages}"
            rows.append(Row(f"{what} {peer}", "seconds", ours, who, bar=bar))
    rows += [
        Row(
            f"{what}, beside msgspec, the second read of the process",
            "seconds",
            f"frames:siteline_warm:{pages}",
            f"typed:frame_warm:{pages}",
            bar=bar,
        )
        for pages, what, bar in (
            ("a", "to pandas, layout A", 0.23),
            ("small", "pages of 1,000 points, to pandas", 0.35),
        )
    ]
    ours = "frames:siteline:pairs"
    what = "pages with 2 points per envelope, to pandas, beside"
    rows += [
        Row(f"{what} polars", "seconds", ours, "frames:polars:pairs", bar=0.3),
        Row(f"{what} msgspec", "seconds", ours, "typed:frame:pairs", bar=0.3),
    ]
    for pages, layout in LAYOUTS:
        zipped = "gzip" if pages == "a" else "gzip-b"
        ours, typed = f"frames:siteline:{zipped}", f"typed:frame:{zipped}"
        what = f"gzip to pandas, layout {layout}, beside msgspec and zlib"
        rows.append(Row(what, "seconds", ours, typed, bar=0.35))
    return [_compared(row) for row in rows]


def _arrow() -> list[Row]:
    rows = []
    for (pages, layout), bar in zip(LAYOUTS, (1.0, 1.1), strict=True):
        what = f"to Arrow, layout {layout}, beside a bare Rust loop"
        ours, bare = f"arrow:siteline:{pages}", f"arrow:bare:{pages}"
        rows.append(_compared(Row(what, "seconds", ours, bare, bar=bar)))
    for pages, layout in LAYOUTS:
        what, by = f"decoding alone, layout {layout}, beside sonic-rs", f"arrow:alone:{pages}"
        row = Row(what, "siteline", by, by, "GB/s", 1.1, at_least=True, peer_figure="sonic")
        # Each run measures both readers, seven times or more.
        rows.append(replace(row, slow=(by,)))
    return rows


def _records() -> list[Row]:
    rows = []
    for pages, layout in LAYOUTS:
        dicts, named = f"records:siteline:{pages}", f"records:siteline_named:{pages}"
        for what, ours, by, bar in (
            ("records, {}, beside orjson", dicts, "orjson", 0.45),
            ("named records, {}, beside msgspec's tuples", named, "typed_tuples", 0.9),
        ):
            name, peer = what.format(f"layout {layout}"), f"records:{by}:{pages}"
            rows.append(_compared(Row(name, "seconds", ours, peer, bar=bar)))
    return rows


def _memory() -> list[Row]:
    rows = [
        Row(f"peak of to_pandas, layout {layout}", "frames", f"frames:siteline:{pages}",
            unit="frames", bar=1.6)
        for pages, layout in LAYOUTS
    ]  # fmt: skip
    five, one = "memory:siteline:a5", "memory:siteline:a"
    return [
        *rows,
        Row("memory of pages(), 5 M points", "megabytes", five, unit="MB", bar=24),
        Row("memory of pages(), 5 M points, beside 1 M", "megabytes", five, one, "MB", bar=1.3),
    ]


def _wide() -> list[Row]:
    """Pages of many series, small pages, and points with unknown members."""
    ours, arrow = "frames:siteline:wide", "arrow:siteline:wide"
    records, small = "records:siteline:wide", "frames:siteline:small"
    what = "pages of 5,000 series x 2 points, "
    rows = [
        Row(f"{what}to pandas, beside msgspec", "seconds", ours, "typed:frame:wide", bar=0.35),
        Row(f"{what}to pandas, beside polars", "seconds", ours, "frames:polars:wide", bar=0.35),
        Row(
            f"{what}to Arrow, beside a bare Rust loop", "seconds", arrow, "arrow:bare:wide", bar=1.2
        ),
        Row(f"{what}records, beside orjson", "seconds", records, "records:orjson:wide", bar=0.45),
    ]
    rows = [_compared(row) for row in rows]
    rows += [
        Row(f"{what}peak of to_pandas", "frames", ours, unit="frames", bar=1.6),
        _compared(
            Row(
                "pages of 1,000 points, to pandas, beside msgspec",
                "seconds",
                small,
                "typed:frame:small",
                bar=0.35,
            )
        ),
    ]
    name = "decoding alone, points with 100 unknown members, beside sonic-rs"
    by = "arrow:alone:unknown-100"
    row = Row(name, "siteline", by, by, "GB/s", 1.0, at_least=True, peer_figure="sonic")
    return [*rows, replace(row, slow=(by,))]


def _compared(row: Row) -> Row:
    return replace(row, compared=True)


ROWS = [
    *_frames(),
    *_arrow(),
    *_records(),
    _compared(
        Row(
            "100 pages of 50 ms, one chain, beside a bare socket",
            "seconds",
            "chain:siteline",
            "chain:bare",
            bar=1.03,
        )
    ),
    _compared(
        Row(
            "100 pages of 50 ms, split in 8, beside one chain",
            "seconds",
            "chain:split",
            "chain:siteline",
            bar=0.15,
        )
    ),
    *_memory(),
    *_wide(),
    _compared(
        Row(
            "1,000 small scans at once in asyncio, beside aiohttp",
            "cpu",
            "crowd:siteline",
            "crowd:aiohttp",
            bar=1.0,
        )
    ),
    Row(
        "import siteline, beside importing requests",
        "seconds",
        "cold:importing:siteline",
        "cold:importing:requests",
        bar=0.05,
    ),
    _compared(
        Row(
            "cold script, beside requests and PyJWT",
            "seconds",
            "cold:script:with_siteline",
            "cold:script:with_requests",
            bar=0.25,
        )
    ),
    Row("the wheel", "megabytes", "cold:wheel", unit="MB", bar=8),
]
