"""The options of the commands that write a table: which series, which range, which shape."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from siteline.cli.arguments import ZONE, Options, add_options, given_of
from siteline.errors import QueryError

if TYPE_CHECKING:
    from siteline import Table

LEVELS = ("site", "line", "machine", "device", "tag")
SERIES = {
    f"--{name} ID …": f"{'ids' if name in ('site', 'line') else 'ids or names'} of {name}s"
    for name in LEVELS
}
FIND = {"--find TEXT": "only series with this text in ids or names"}

_WORDS = ("machine", "device", "name", "line", "site", "none")
_AGGREGATIONS = ("mean", "sum", "first", "last", "increase")


def range_options(end: str) -> dict[str, str]:
    """Returns ``--start``, ``--end`` and ``--tz``."""
    return {
        "--start TIME": "2026-11-01, 2026-11-01T06:00Z, or -7d before now",
        "--end TIME": f"exclusive; without it {end}",
        **ZONE,
    }


def add_shape(made: argparse.ArgumentParser) -> None:
    """Adds the options that change the shape of the table."""
    shape = made.add_argument_group("shape")
    resample = {"--resample EVERY": "larger buckets, such as 1d: days of --tz"}
    add_options(shape, {"--pivot": "one column for each series", **resample})
    add_options(shape, {"--agg AGG": ", ".join(_AGGREGATIONS)}, choices=_AGGREGATIONS)
    labels = {"--labels WORD": "first part of labels: machine, line, …, none"}
    add_options(shape, labels, choices=_WORDS)


def check_shape(options: Options) -> None:
    """Refuses a shape that is not complete, before anything is requested."""
    if (options.resample is None) != (options.agg is None):
        raise QueryError(
            "--resample needs --agg, and --agg needs --resample.",
            hint=f"Such as --resample 1d --agg mean. Known are {', '.join(_AGGREGATIONS)}.",
        )


def labels_of(options: Options) -> Any:
    """Returns the keyword ``labels``; ``None`` if it is not given."""
    return False if options.labels == "none" else options.labels


def levels_of(options: Options) -> dict[str, list[str]]:
    """Returns the given ids and names, by level."""
    return given_of(options, LEVELS)


def shaped(table: Table, options: Options) -> Table:
    """Returns the table in the shape of the options."""
    if options.resample is not None:
        table = table.resample(options.resample, options.agg)
    return table.pivot() if options.pivot else table
