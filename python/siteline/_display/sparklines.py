"""Series as small line charts: a table row for each, with its ids and its extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._display.elements import (
    BLUE,
    FAINT,
    LEFT,
    RIGHT,
    WIDTH,
    html_table,
    instant,
    muted,
    number,
    svg,
    text,
)
from siteline._times import from_microseconds

if TYPE_CHECKING:
    from siteline._display.protocols import Pixel, Preview

__all__: list[str] = []

_HEIGHT = 26
# The height of the lowest pixels, which show where there are points.
_PRESENCE = 3
_IDS = ("site", "line", "machine", "device", "tag")
_TAG = len(_IDS) - 1


def sparklines(preview: Preview) -> str:
    """Draw the series of a preview."""
    series = preview["series"]
    ids = [line["ids"] for line in series]
    # Ids that all series share are written once, above the table; the tag always has a column.
    differing = [n for n in range(len(_IDS)) if n == _TAG or len({one[n] for one in ids}) > 1]
    shared = " · ".join(
        f"{_IDS[n]} {text(ids[0][n])}"
        for n in range(len(_IDS))
        if n not in differing and ids[0][n] is not None
    )
    names = [(_IDS[n], LEFT) for n in differing]
    numbers = [("lowest", RIGHT), ("highest", RIGHT), ("points", RIGHT)]
    rows = [
        [
            *((text(line["ids"][n]), LEFT) for n in differing),
            (_line(line["stretches"]), LEFT),
            *((number(value), RIGHT) for value in line["values"] or (None, None)),
            (f"{line['points']:,}", RIGHT),
        ]
        for line in series
    ]
    caption = f'<div style="margin-top:8px">{shared}</div>' if shared else ""
    more = muted("… and more series", "div") if preview["more"] else ""
    return caption + html_table([*names, (_axis(preview), LEFT), *numbers], rows) + more


def _axis(preview: Preview) -> str:
    start, end = (instant(from_microseconds(bound)) for bound in preview["range"])
    return (
        f'<div style="width:{WIDTH}px;font-size:10.5px"><span style="float:left">{start}</span>'
        f'<span style="float:right">{end}</span></div>'
    )


def _line(stretches: list[list[Pixel]]) -> str:
    height = _HEIGHT - _PRESENCE
    line, presence = [], []
    for stretch in stretches:
        ends = [
            (pixel["x"], f"{(1 - share) * (height - 4) + 2:.1f}")
            for pixel in stretch
            for share in dict.fromkeys((pixel["low"], pixel["high"]))
        ]
        # A single point is drawn as a dot, by the round ends of the line.
        ends += [ends[0]] if len(ends) == 1 else []
        line.append("M" + "L".join(f"{x + 0.5} {y}" for x, y in ends))
        first, last = stretch[0]["x"], stretch[-1]["x"]
        presence.append(f"M{first} {_HEIGHT - 1}H{max(last, first) + 1}")
    return (
        f"{svg(_HEIGHT, 'values over time; below them, where there are points')}"
        f'<rect width="{WIDTH}" height="{_HEIGHT}" rx="2" fill="{FAINT}"/>'
        f'<path d="{"".join(line)}" fill="none" stroke="{BLUE}" stroke-width="1.4" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
        f'<path d="{"".join(presence)}" fill="none" stroke="{BLUE}" stroke-opacity=".5" '
        'stroke-width="2"/></svg>'
    )
