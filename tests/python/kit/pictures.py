"""Finds texts in a picture that overlap or are cut off."""

import xml.etree.ElementTree as ET
from itertools import combinations
from typing import NamedTuple

from siteline._plots.texts import width

SVG = "{http://www.w3.org/2000/svg}"
# The only names that a picture may use. None of them can run or fetch something, and none affects
# other pictures on a page.
TAGS = {"svg", "title", "desc", "style", "text", "path"}
ATTRIBUTES = {
    "width", "height", "viewBox", "role", "aria-label",
    "font-family", "font-size", "font-weight", "x", "y",
    "d", "fill", "fill-opacity", "text-anchor", "stroke",
    "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-opacity", "stroke-dasharray",
}  # fmt: skip
COLOURS = {"currentColor", "none"}


class Box(NamedTuple):
    """The bounding box of a text."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


def parsed(svg):
    """Parses a picture, which must be well-formed and harmless, and have a text alternative."""
    root = ET.fromstring(svg)
    elements = list(root.iter())
    assert {element.tag for element in elements} <= {f"{SVG}{name}" for name in TAGS}
    assert {name for element in elements for name in element.keys()} <= ATTRIBUTES  # noqa: SIM118
    fills = {element.get("fill", "none") for element in elements}
    assert {fill for fill in fills if not fill.startswith("#")} <= COLOURS
    assert root.get("role") == "img"
    title, desc = root[0], root[1]
    assert (title.tag, desc.tag) == (f"{SVG}title", f"{SVG}desc")
    assert root.get("aria-label") == f"{title.text}. {desc.text}"
    return root


def estimated(svg):
    """Returns the box of each text. The estimated widths are a little larger than in most fonts."""
    root = parsed(svg)
    boxes = []
    for text in root.iter(f"{SVG}text"):
        size = float(text.get("font-size", root.get("font-size")))
        wide = width(text.text, size)
        x, y = float(text.get("x")), float(text.get("y"))
        left = x - {"middle": wide / 2, "end": wide}.get(text.get("text-anchor"), 0)
        boxes.append(Box(left, y - size * 0.8, left + wide, y + size * 0.25, text.text))
    return boxes, float(root.get("width")), float(root.get("height"))


def faults(boxes, full, height, slack=0.0):
    """Returns the texts that are cut off and the pairs that overlap."""
    found = [
        one
        for one in boxes
        if one.left < -slack or one.right > full + slack or one.top < 0 or one.bottom > height
    ]
    return found + [
        (one, other)
        for one, other in combinations(boxes, 2)
        if one.left < other.right - slack and other.left < one.right - slack
        and one.top < other.bottom - slack and other.top < one.bottom - slack
    ]  # fmt: skip
