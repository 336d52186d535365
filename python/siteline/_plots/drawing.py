"""A picture as SVG: its elements, and the document around them.

Text and axes have the colour of the page (``currentColor``), the rest has colours with contrast to
white and to black; nothing has a background. There is no script, no style sheet but one line in a
file of its own, and no name that could meet another picture's on a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

from siteline._escape import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__: list[str] = []

BLUE, AMBER, RED, GREY = "#3d8fd1", "#c98a1b", "#d9534f", "#808080"
"""Readable on white and on black; colour-blind readers can distinguish blue and amber."""
# For what is one of several, such as feeds: colours and how opaque, in order.
SERIES = (BLUE, AMBER, "#3a9d7c", "#a878c8", "#c4698a", "#7f8c3a")
FONT = "system-ui,sans-serif"
SIZE = 11
"""The size of most texts, in pixels."""
TITLE_SIZE = 13
NARROWEST, WIDEST = 400, 4_000
"""How wide a picture may be, in pixels."""

# A file has no page around it whose colour it could take.
_STYLE = "<style>svg{color:#24292f}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"


@dataclass(frozen=True)
class Drawing:
    """A picture: its size in pixels, what it says, and its elements."""

    width: int
    height: float
    title: str
    description: str
    body: str

    def __post_init__(self) -> None:
        """Keep what may stand in a file and in a terminal: names are texts of others."""
        for name, longest in (("title", 300), ("description", 3_000)):
            given = escaped(getattr(self, name))
            cut = given if len(given) <= longest else f"{given[: longest - 1]}…"
            object.__setattr__(self, name, cut)

    def svg(self, *, standalone: bool) -> str:
        """Write the SVG; a standalone one has dark text on light pages, light text on dark ones."""
        size = f'width="{self.width}" height="{number(self.height)}"'
        box = f'viewBox="0 0 {self.width} {number(self.height)}"'
        label = escape(f"{self.title}. {self.description}", quote=True)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" '
            f'aria-label="{label}" font-family="{FONT}" font-size="{SIZE}">'
            f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
            f"{_STYLE if standalone else ''}{self.body}</svg>\n"
        )


def number(value: float) -> str:
    """Write a coordinate to a tenth of a pixel."""
    return f"{round(value * 10) / 10:g}"


def polyline(points: Iterable[tuple[float, float]], *, closed: bool = False) -> str:
    """Return the path through some points: the first one, and the steps from each to the next.

    Steps are shorter to write than places. Each is between rounded places: no error adds up.
    """
    written: list[str] = []
    before = (0, 0)
    for x, y in points:
        place = (round(x * 10), round(y * 10))
        step = (place[0] - before[0], place[1] - before[1])
        if not written:
            written.append(f"M{_tenths(step[0])} {_tenths(step[1])}l")
        elif step != (0, 0):
            along, up = map(_tenths, step)
            between = "" if up.startswith("-") else " "
            after = "" if written[-1].endswith("l") or along.startswith("-") else " "
            written.append(f"{after}{along}{between}{up}")
        before = place
    if not written:
        return ""
    if len(written) == 1:
        written.append("0 0")
    return "".join(written) + ("z" if closed else "")


def _tenths(count: int) -> str:
    whole, tenth = divmod(abs(count), 10)
    sign = "-" if count < 0 else ""
    digits = f"{whole or ''}.{tenth}" if tenth else f"{whole}"
    return f"{sign}{digits}"


def text(
    x: float,
    y: float,
    content: str,
    *,
    anchor: Literal["start", "middle", "end"] = "start",
    size: int = SIZE,
    faint: bool = False,
    bold: bool = False,
) -> str:
    """Write a text; ``x`` is its start, middle or end, ``y`` its base line."""
    options = "" if anchor == "start" else f' text-anchor="{anchor}"'
    options += "" if size == SIZE else f' font-size="{size}"'
    options += ' fill-opacity=".7"' if faint else ""
    options += ' font-weight="600"' if bold else ""
    place = f'x="{number(x)}" y="{number(y)}"'
    return f'<text {place} fill="currentColor"{options}>{escape(content)}</text>'


def stroke(path: str, colour: str, width: float, *, dashes: str = "", opacity: float = 1) -> str:
    """Draw lines, with round ends: a line of no length is a dot."""
    if not path:
        return ""
    options = f' stroke-dasharray="{dashes}"' if dashes else ""
    options += f' stroke-opacity="{opacity:g}"' if opacity != 1 else ""
    ends = 'stroke-linecap="round" stroke-linejoin="round"'
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}" {ends}{options}/>'
    )


def filled(path: str, colour: str, opacity: float = 1) -> str:
    """Fill areas."""
    options = f' fill-opacity="{opacity:g}"' if opacity != 1 else ""
    return f'<path d="{path}" fill="{colour}"{options}/>' if path else ""


def box(x: float, y: float, width: float, height: float) -> str:
    """Return the path of a rectangle."""
    x, y, width, height = map(number, (x, y, width, height))  # type: ignore[assignment]
    return f"M{x} {y}h{width}v{height}h-{width}z"


def frame(x: float, y: float, width: float, height: float, line: float = 1.5) -> str:
    """Return the path of a rectangle whose outline, so wide, lies within these bounds."""
    inner = (x + line / 2, y + line / 2, max(width - line, 0.1), max(height - line, 0.1))
    return box(*inner)


def rules(lines: Iterable[tuple[float, float, float, float]]) -> str:
    """Return the path of straight lines, each from a point to a point."""
    return "".join(
        f"M{number(x)} {number(y)}L{number(to_x)} {number(to_y)}" for x, y, to_x, to_y in lines
    )
