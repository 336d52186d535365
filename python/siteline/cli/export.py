"""``siteline store export``: writes the points of a store to a file or to stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline import _doors
from siteline._counts import counted
from siteline._escape import escaped
from siteline.cli import table_options as tables
from siteline.cli.arguments import Commands, Options, add_command, add_options
from siteline.cli.clients import STORE, feed_of
from siteline.cli.output import Outcome
from siteline.cli.output_file import OutputFile, add_output
from siteline.errors import QueryError
from siteline.store import Store

if TYPE_CHECKING:
    from siteline import Store, Table


def add(actions: Commands) -> None:
    """Adds the command."""
    made = add_command(
        actions,
        "export",
        _run,
        "Sends no request and needs no credential.",
        summary="write the points of a feed",
        example="siteline store export plant.siteline line-2 --final --start -7d -o week.csv",
        options={**STORE, "--final": "only settled points"},
    )
    add_options(made, {"feed FEED": "the feed's name; not needed if there is only one"}, nargs="?")
    add_output(made)
    query = made.add_argument_group("query")
    bounds = tables.range_options("the newest instant that was read")
    add_options(query, {**tables.SERIES, **tables.FIND, **bounds})
    tables.add_shape(made)


def _run(options: Options) -> Outcome:
    tables.check_shape(options)
    output = OutputFile(options)
    with Store(options.store, labels=False, read_only=True) as store:
        options.feed = feed_of(store, options.feed)
        table = _read(options, store)
        made = tables.shaped(table, options)
        output.write(made)
        points, rows = len(table), len(made)
        known = {"points": points, "rows": rows, "report": table.report.to_dict()}
    members = {"store": options.store, "feed": options.feed, **known, **output.members}
    parts = [f"{escaped(output.name)}: {counted(points, 'point')}"]
    parts += [counted(rows, "row")] if rows != points else []
    parts += [] if output.is_stdout else [output.size]
    return Outcome(members, "; ".join(parts), has_written=output.is_stdout)


def _read(options: Options, store: Store) -> Table:
    labels = tables.labels_of(options)
    table = store.read(
        options.feed,
        options.start,
        options.end,
        final=options.final,
        tz=options.tz,
        labels="machine" if labels is None else labels,
    )
    if options.find is None and not tables.levels_of(options):
        return table
    found = table.find(options.find, **tables.levels_of(options))
    if not len(found.series):
        raise QueryError(
            f"No series of {options.feed} is selected.",
            hint=f"{_doors.nearest(found)}siteline series --store {options.store} lists them.",
        )
    return found
