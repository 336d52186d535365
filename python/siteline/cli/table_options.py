"""The options of the commands that write a table: which series, which range, which shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline.cli.arguments import add_zone

if TYPE_CHECKING:
    import argparse

    from siteline import Table

__all__ = [
    "LEVELS",
    "add_range",
    "add_series",
    "add_shape",
    "check_shape",
    "labels_of",
    "levels_of",
    "shaped",
]

LEVELS = ("site", "line", "machine", "device", "tag")

_WORDS = ("machine", "device", "name", "line", "site", "none")
_AGGREGATIONS = ("mean", "sum", "first", "last", "increase")


def add_series(group: argparse._ActionsContainer) -> None:
    """Adds the ids and names that select series."""
    for name in LEVELS:
        what = "ids" if name in ("site", "line") else "ids or names"
        group.add_argument(
            f"--{name}", metavar="ID", action="append", help=f"{what} of {name}s; repeatable"
        )


def add_range(group: argparse._ActionsContainer, *, end: str) -> None:
    """Adds ``--start``, ``--end`` and ``--tz``."""
    group.add_argument(
        "--start", metavar="TIME", help="2026-11-01, 2026-11-01T06:00Z, or -7d before now"
    )
    group.add_argument("--end", metavar="TIME", help=f"exclusive; without it {end}")
    add_zone(group)


def add_shape(made: argparse.ArgumentParser) -> None:
    """Adds the options that change the shape of the table."""
    shape = made.add_argument_group("shape")
    shape.add_argument("--pivot", action="store_true", help="one column for each series")
    shape.add_argument(
        "--resample", metavar="EVERY", help="larger buckets, such as 1d: days of --tz"
    )
    shape.add_argument(
        "--agg", metavar="AGG", choices=_AGGREGATIONS, help="mean, sum, first, last or increase"
    )
    shape.add_argument(
        "--labels",
        metavar="WORD",
        choices=_WORDS,
        help="first part of labels: machine, line, …, none",
    )


def check_shape(options: argparse.Namespace) -> None:
    """Refuses a shape that is not complete, before anything is requested."""
    from siteline.errors import QueryError

    if (options.resample is None) != (options.agg is None):
        raise QueryError(
            "--resample needs --agg, and --agg needs --resample.",
            hint=f"Such as --resample 1d --agg mean. Known are {', '.join(_AGGREGATIONS)}.",
        )


def labels_of(options: argparse.Namespace) -> Any:
    """Returns the keyword ``labels``; ``None`` if it is not given."""
    return False if options.labels == "none" else options.labels


def levels_of(options: argparse.Namespace) -> dict[str, list[str]]:
    """Returns the given ids and names, by level."""
    given = {name: getattr(options, name) for name in LEVELS}
    return {name: ids for name, ids in given.items() if ids}


def shaped(table: Table, options: argparse.Namespace) -> Table:
    """Returns the table in the shape of the options."""
    if options.resample is not None:
        table = table.resample(options.resample, options.agg)
    return table.pivot() if options.pivot else table
