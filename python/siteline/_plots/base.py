"""Shared parts of the charts: colours, axes, titles, and times on the clock of a zone.

Vega draws times in UTC or in the zone of the browser, and in no other zone. So charts contain the
time that the clock of the zone shows, in milliseconds, on a scale of UTC. Text, axes and background
have the colours of the Altair theme; the colours of the marks are readable on light and dark pages.
"""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zlib import crc32

import altair as alt

from siteline._escape import escaped
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

BLUE, AMBER, RED, GREY = "#3d8fd1", "#c98a1b", "#d9534f", "#808080"
# Colour-blind readers can distinguish the first two.
COLOURS = [BLUE, AMBER, "#3a9d7c", "#a878c8", "#c4698a", "#7f8c3a", "#5aa9b8", "#b0764f", "#8a8fd8",
           "#d98a5f", "#6f9f3f", "#9a7fa0"]  # fmt: skip
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
GRID: dict[str, Any] = {
    "gridColor": GREY,
    "gridOpacity": 0.2,
    "domainColor": GREY,
    "tickColor": GREY,
}
WHEN = "utcFormat(datum.{}, '%Y-%m-%d %H:%M{}')"
_LABEL = (
    "utcFormat(datum.value, utcseconds(datum.value) ? '%H:%M:%S' : utchours(datum.value) + "
    "utcminutes(datum.value) ? '%H:%M' : utcdayofyear(datum.value) == 1 ? '%Y' : '%b %-d')"
)


def micros(at: datetime) -> int:
    """Return a time as microseconds since the Unix epoch."""
    return (at - EPOCH) // MICROSECOND


def on_clock(at: int, zone: tzinfo) -> float:
    """Return what the clock of a zone shows at a time in microseconds, in milliseconds."""
    try:
        offset = (EPOCH + at * MICROSECOND).astimezone(zone).utcoffset() or timedelta(0)
    except OverflowError:
        offset = timedelta(0)
    shown = at + offset // MICROSECOND
    return shown / 1000 if shown % 1000 else shown // 1000


def zoned(at: int, zone: tzinfo) -> str:
    """Write a time on the clock of a zone: ``2026-11-01 00:00``."""
    shown = EPOCH + timedelta(milliseconds=on_clock(at, zone))
    return f"{shown:%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def safe(text: object) -> str:
    """Return external text that cannot hide other text or end a script of a page.

    Altair does not escape specifications in HTML, so ``</script>`` would end the script.
    """
    return escaped(text).replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}")


def finished(chart: Any, head: str, notes: Iterable[str], width: int, words: Sequence[str]) -> Any:
    """Return a chart with its title, notes, and a description for readers who cannot see it."""
    title = alt.TitleParams(
        safe(head), subtitle=[safe(line) for line in notes if line], anchor="start", fontSize=14,
        subtitleFontSize=11, subtitlePadding=4, offset=12, limit=width,
    )  # fmt: skip
    return chart.properties(title=title, description=safe(". ".join(filter(None, [head, *words]))))


def panel_title(text: str, inner: int, *lines: str) -> Any:
    """Return the title of a panel, with further lines below it."""
    return alt.TitleParams(
        safe(text), subtitle=[safe(line) for line in lines] or alt.Undefined, anchor="start",
        frame="group", fontSize=11, subtitleFontSize=10, fontWeight="normal", offset=4, limit=inner,
    )  # fmt: skip


def panel(layers: Sequence[Any], inner: int, height: Any, **options: Any) -> Any:
    """Return layers as a chart of this size without a frame."""
    view = alt.ViewBackground(stroke=None)
    return alt.layer(*layers, width=inner, height=height, view=view, **options)


def data(rows: Sequence[Any]) -> Any:
    """Return a chart of these rows, without marks."""
    return alt.Chart(alt.InlineData(list(rows)))


def time_x(field: str, start: float, end: float, inner: int, *, has_labels: bool = True) -> Any:
    """Return an axis of time between two milliseconds of the clock."""
    axis = alt.Axis(
        title=None, labelExpr=_LABEL, labels=has_labels, ticks=has_labels, labelOverlap=True,
        labelFlush=True, labelBound=True, tickCount=inner // 80, **GRID,
    )  # fmt: skip
    scale = alt.Scale(type="utc", domain=[start, max(end, start + 1)], nice=False)
    return alt.X(f"{field}:T", axis=axis, scale=scale)


def number_axis(unit: str | None, height: int, **options: Any) -> Any:
    """Return an axis of numbers. All have the same width, so that panels are aligned."""
    return alt.Axis(
        title=unit and safe(unit), tickCount=max(height // 32, 3), domain=False, ticks=False,
        minExtent=44, titleFontWeight="normal", **GRID, **options,
    )  # fmt: skip


def filled(field: str, looks: dict[str, tuple[str, str]], **legend: Any) -> dict[str, Any]:
    """Return the colours of the inside and the outline of boxes, with a legend."""
    names = list(looks)
    fills, lines = ([look[place] for look in looks.values()] for place in (0, 1))
    key = alt.Legend(title=None, orient="bottom", symbolType="square", **legend)
    return {
        "fill": alt.Fill(field, scale=alt.Scale(domain=names, range=fills), legend=key),
        "stroke": alt.Stroke(field, scale=alt.Scale(domain=names, range=lines)),
    }


def zoomed(panels: Sequence[Any], key: object) -> Any:
    """Return panels whose range the mouse zooms and moves, all of them together.

    The names of Altair depend on the parameter only, so that two charts would share it. Altair
    keeps a name that ends with the place of the panel.
    """
    name = f"zoom_{crc32(repr(key).encode()):08x}"
    found = []
    for place, one in enumerate(panels):
        one.layer[0].name = f"{name}_{place}"
        zoom = alt.selection_interval(name=name, bind="scales", encodings=["x"])
        found.append(one.add_params(zoom))
    if len(found) == 1:
        return found[0]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Automatically deduplicated", UserWarning)
        return alt.vconcat(*found, spacing=10).resolve_scale(x="shared")


def size(given: int) -> int:
    """Return the width of the marks in a chart that is so wide."""
    if isinstance(given, bool) or not 300 <= given <= 4_000:
        raise QueryError(f"width={given!r} is not a number of pixels from 300 to 4000.")
    return given - 90


def first(given: Sequence[Any], most: int, name: str, what: str) -> tuple[Sequence[Any], str]:
    """Return the first rows or panels, and a note that counts the others."""
    if isinstance(most, bool) or most < 1:
        raise QueryError(f"{name}={most!r} is less than 1.")
    more = len(given) - most
    plural = "s" * (more > 1 and what[-1] != "s")
    note = f"… and {more:,} more {what}{plural} {'is' if more == 1 else 'are'} not shown"
    return given[:most], f"{note} ({name}={most})" if more > 0 else ""
