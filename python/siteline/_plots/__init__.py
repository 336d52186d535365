"""Shared parts of the charts: colours, axes, titles, zoom, and times on the clock of a zone.

Vega draws times only in UTC and in the zone of the browser. So charts contain what the clock of the
zone shows, in milliseconds, on a scale of UTC. Text and background have the colours of the Altair
theme; marks are readable on light and dark pages. Looks are set on marks and axes, because Altair
combines only charts without a config.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import catch_warnings, filterwarnings
from zlib import crc32

from siteline._escape import escaped
from siteline._times import in_zone
from siteline.errors import QueryError
from siteline.frames import needing

with needing("altair numpy", "a chart", "plot"):
    import altair as alt
    import numpy  # noqa: F401 - for the points

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

__all__ = ["alt"]

BLUE, AMBER, RED, GREY = "#3d8fd1", "#c98a1b", "#d9534f", "#808080"
_Chart = TypeVar("_Chart", "alt.LayerChart", "alt.VConcatChart")
# Colour-blind readers can distinguish the first two.
COLOURS = [BLUE, AMBER, "#3a9d7c", "#a878c8", "#c4698a", "#7f8c3a", "#5aa9b8", "#b0764f", "#8a8fd8",
           "#d98a5f", "#6f9f3f", "#9a7fa0"]  # fmt: skip
GRID: dict[str, Any] = dict.fromkeys(("gridColor", "domainColor", "tickColor"), GREY)
GRID |= {"gridOpacity": 0.2}
WHEN = "utcFormat(datum.{0}, utcseconds(datum.{0}) ? '%Y-%m-%d %H:%M:%S' : '%Y-%m-%d %H:%M')"
_LABEL = (
    "utcFormat(datum.value, utcseconds(datum.value) ? '%H:%M:%S' : utchours(datum.value) + "
    "utcminutes(datum.value) ? '%H:%M' : utcdayofyear(datum.value) == 1 ? '%Y' : '%b %-d')"
)


def clock(at: datetime, zone: tzinfo) -> float:
    """Return what the clock of a zone shows at a time, in milliseconds."""
    shown = in_zone(at, zone).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return shown / timedelta(milliseconds=1)


def safe(text: object) -> str:
    """Return external text that cannot hide other text or end a script of a page.

    Altair does not escape specifications in HTML, so ``</script>`` would end the script.
    """
    return escaped(text).replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}")


def data(rows: Iterable[Any]) -> Any:
    """Return a chart of these rows, without marks."""
    return alt.Chart(alt.InlineData(list(rows)))


def panel(layers: Sequence[Any], inner: int, height: Any, head: str = "", *lines: str) -> Any:
    """Return layers as a chart of this size, with a small title."""
    look = {"fontSize": 11, "fontWeight": "normal", "subtitleFontSize": 10, "offset": 4}
    title = _title(head, lines, inner, frame="group", **look) if head else alt.Undefined
    view = alt.ViewBackground(stroke=None)
    return alt.layer(*layers, width=inner, height=height, view=view, title=title)


def finished(chart: _Chart, head: str, notes: Sequence[str], width: int, *words: str) -> _Chart:
    """Return a chart with its title, notes, and a description for readers who cannot see it."""
    look = {"fontSize": 14, "subtitleFontSize": 11, "subtitlePadding": 4, "offset": 12}
    description = safe(". ".join(filter(None, [head, *words, *notes])))
    return chart.properties(title=_title(head, notes, width, **look), description=description)


def _title(head: str, lines: Iterable[str], limit: int, **look: Any) -> Any:
    subtitle = [safe(line) for line in lines if line] or alt.Undefined
    return alt.TitleParams(safe(head), subtitle=subtitle, anchor="start", limit=limit, **look)


def time_x(field: str, start: float, end: float, inner: int, *, has_labels: bool = True) -> Any:
    """Return a time axis between two times of the clock, in milliseconds."""
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


def line_colours(field: str, names: list[str], **legend: Any) -> Any:
    """Return the colours of named lines, with a legend."""
    key = alt.Legend(
        title=None, orient="bottom", symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2,
        **legend,
    )  # fmt: skip
    return alt.Color(field, scale=alt.Scale(domain=names, range=COLOURS), legend=key)


def bars(rows: Iterable[Any], part: str, looks: dict[str, str], **legend: Any) -> Any:
    """Return bars in the colour of their part, with an outline, and a legend."""
    key = alt.Legend(title=None, orient="bottom", symbolType="square", **legend)
    fills, lines = (
        alt.Scale(domain=[*looks], range=[look[:digits] for look in looks.values()])
        for digits in (9, 7)
    )
    return data(rows).mark_bar(strokeWidth=1, aria=False).encode(
        fill=alt.Fill(f"{part}:N", scale=fills, legend=key if looks else None),
        stroke=alt.Stroke(f"{part}:N", scale=lines),
    )  # fmt: skip


def zoomed(panels: Sequence[Any], key: object) -> Any:
    """Return panels in one chart: the mouse zooms and moves the range of all.

    Altair names the zoom by its settings, so that two charts would share one.
    """
    name = f"zoom_{crc32(repr(key).encode()):08x}"
    for place, one in enumerate(panels):
        # Altair keeps a name that ends with the place of the panel.
        one.layer[0].name = f"{name}_{place}"
    chart = panels[0]
    if len(panels) > 1:
        chart = alt.vconcat(*panels, spacing=10).resolve_scale(x="shared")
    with catch_warnings():
        filterwarnings("ignore", "Automatically deduplicated", UserWarning)
        return chart.add_params(alt.selection_interval(name=name, bind="scales", encodings=["x"]))


def size(given: int) -> int:
    """Return the width of the plot area in a chart of this width."""
    if isinstance(given, bool) or not 300 <= given <= 4_000:
        raise QueryError(f"width={given!r} is not a number of pixels from 300 to 4000.")
    return given - 90


def first(given: Sequence[Any], most: int, name: str) -> tuple[Sequence[Any], str]:
    """Return the first rows or panels, and a note that counts the others."""
    if isinstance(most, bool) or most < 1:
        raise QueryError(f"{name}={most!r} is less than 1.")
    more = len(given) - most
    return given[:most], f"not shown: {more:,} more ({name}={most})" if more > 0 else ""
