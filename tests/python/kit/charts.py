"""Reads the specification of an Altair chart, as Vega-Lite gets it."""

import json
import re
import warnings
from typing import Any, NamedTuple


class Mark(NamedTuple):
    """A mark of a chart: its kind, its definition, its rows and its channels."""

    kind: str
    look: dict[str, Any]
    rows: list[dict[str, Any]]
    encoding: dict[str, Any]


def spec_of(chart):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec = chart.to_dict()
    json.dumps(spec, allow_nan=False)
    return spec


def svg_of(chart):
    import vl_convert

    return vl_convert.vegalite_to_svg(spec_of(chart))


def panels(chart):
    """Returns the panels of a chart: for each its title and its marks."""
    spec = spec_of(chart)

    def marks(part, name):
        name = part.get("data", {}).get("name", name)
        for layer in part.get("layer", []):
            yield from marks(layer, name)
        if "mark" in part:
            look = part["mark"]
            yield Mark(look["type"], look, spec["datasets"].get(name, []), part["encoding"])

    return [(part.get("title"), list(marks(part, None))) for part in spec.get("vconcat", [spec])]


def marks(chart, kind):
    """Returns the marks of a kind in all panels."""
    return [mark for _, found in panels(chart) for mark in found if mark.kind == kind]


def notes(chart):
    """Returns the lines below the title."""
    return spec_of(chart)["title"]["subtitle"]


def same_svg(one, other):
    """Compares files, apart from the numbers of clipping paths, which count up in a process."""
    return re.sub(r"clip\d+", "clip", one) == re.sub(r"clip\d+", "clip", other)
