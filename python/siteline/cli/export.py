"""``siteline store export``: writes the points of a store to a file or to stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._escape import escaped
from siteline.cli.arguments import add_command
from siteline.cli.clients import existing_store
from siteline.cli.output import Outcome
from siteline.cli.output_file import OutputFile, add_output
from siteline.cli.table_options import (
    add_range,
    add_series,
    add_shape,
    check_shape,
    labels_of,
    levels_of,
    shaped,
)

if TYPE_CHECKING:
    import argparse

    from siteline import Store, Table
    from siteline.cli.arguments import _Commands

__all__ = ["add"]


def add(actions: _Commands) -> None:
    """Adds the command."""
    made = add_command(
        actions,
        "export",
        _run,
        "write the points of a feed",
        "Sends no request and needs no credential.",
        example="siteline store export plant.siteline line-2 --final --start -7d -o week.csv",
    )
    made.add_argument("store", metavar="STORE", help="the store's file")
    made.add_argument("feed", metavar="FEED", help="the feed's name")
    add_output(made)
    made.add_argument("--final", action="store_true", help="only settled points")
    query = made.add_argument_group("query")
    add_series(query)
    query.add_argument("--find", metavar="TEXT", help="only series with this text in ids or names")
    add_range(query, end="the newest instant that was read")
    add_shape(made)


def _run(options: argparse.Namespace) -> Outcome:
    check_shape(options)
    output = OutputFile(options)
    with existing_store(options.store) as store:
        table = _read(options, store)
        made = shaped(table, options)
        output.write(made)
        known = {"points": len(table), "rows": len(made), "report": table.report.to_dict()}
    members = {
        "store": options.store,
        "feed": options.feed,
        **known,
        **output.members,
    }
    return Outcome(members, _text(output, known), has_written=output.is_stdout)


def _read(options: argparse.Namespace, store: Store) -> Table:
    from siteline.errors import QueryError

    labels = labels_of(options)
    table = store.read(
        options.feed,
        options.start,
        options.end,
        final=options.final,
        tz=options.tz,
        labels="machine" if labels is None else labels,
    )
    if options.find is None and not levels_of(options):
        return table
    found = table.find(options.find, **levels_of(options))
    if not len(found.series):
        raise QueryError(
            f"No series of {options.feed} is selected.",
            hint=f"siteline series --store {options.store} lists its series.",
        )
    return found


def _text(output: OutputFile, known: dict[str, int]) -> str:
    from siteline._counts import counted

    rows = "" if known["rows"] == known["points"] else f"{counted(known['rows'], 'row')}; "
    text = f"{escaped(output.name)}: {counted(known['points'], 'point')}; {rows}"
    return text.rstrip("; ") if output.is_stdout else text + output.size
