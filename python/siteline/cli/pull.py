"""``siteline pull``: one read of the service into a file or to stdout."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline.cli import pull_query, pull_report
from siteline.cli.arguments import add_command, add_query, add_skip_code
from siteline.cli.clients import client_of, progress_of
from siteline.cli.exits import Exit, status_of
from siteline.cli.output import hint, is_terminal, say
from siteline.cli.output_file import OutputFile, add_output
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from siteline import Client
    from siteline.cli.arguments import _Commands
    from siteline.cli.output import Outcome
    from siteline.cli.spool import Spool
    from siteline.types import Progress

__all__ = ["add"]

# Points whose writing takes seconds.
_MANY = 500_000

_DETAILS = """\
Each page is written to a spool as soon as it was read, a hidden file beside the output. The output
is made of it at the end, in one step: one row for each point, by series, then time; of a point that
came more than once the latest. Memory does not grow with the range. After Ctrl-C, a kill, an error
or a spent allowance the spool is kept, and --resume goes on with the same chain."""


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(commands, "pull", _run, SUMMARIES["pull"], details=_DETAILS)
    add_output(made)
    add_query(made)
    going_on = made.add_argument_group("going on")
    either = going_on.add_mutually_exclusive_group()
    either.add_argument(
        "--resume",
        action="store_true",
        help="go on where an earlier run of the same query ended; where there is none, begin. "
        "Without any argument of the query it is that of the earlier run",
    )
    either.add_argument(
        "--restart", action="store_true", help="remove what an earlier run has read, and begin"
    )
    going_on.add_argument(
        "--spool",
        metavar="FILE",
        help="the spool, if it is not to be beside the output; with -o - it is what --resume needs",
    )
    made.add_argument(
        "--as-read",
        action="store_true",
        help="csv and jsonl: write rows as the pages bring them, at once and unmerged (a point "
        "that comes twice is there twice), without a spool",
    )
    add_skip_code(made)


def _run(options: argparse.Namespace) -> Outcome:
    output = OutputFile(options)
    _check(options, output)
    _leave_to_errors(options)
    client = client_of(options)
    pull_query.fix_range(options, client)
    with output.locked():
        if options.as_read:
            return _as_read(options, client, output)
        with _place(options, output) as path:
            return _by_spool(options, client, output, path)


def _check(options: argparse.Namespace, output: OutputFile) -> None:
    """Refuse arguments that do not go together."""
    from siteline.errors import ConfigError

    if options.as_read:
        if output.format not in ("csv", "jsonl"):
            raise ConfigError(f"--as-read writes lines, csv or jsonl, not {output.format}.")
        if options.resume or options.restart or options.spool:
            raise ConfigError("--as-read has no spool: nothing is kept of it to go on with.")
    elif len(options.site or ()) > 1 or len(options.line or ()) > 1:
        message = "The spool of a pull has one site and one line."
        raise ConfigError(message, hint="Pull each on its own, or use --as-read.")
    elif output.is_stdout and not options.spool and (options.resume or options.restart):
        raise ConfigError("With -o - the spool needs a name to be found again: --spool FILE.")
    if options.spool and not output.is_stdout and output.meets(options.spool):
        # It would be removed at the end, and the output with it.
        raise ConfigError(f"--spool {options.spool} is a file of the output {output.name} itself.")
    if not (options.resume and pull_query.is_bare(options)):
        pull_query.check_start(options)


def _leave_to_errors(options: argparse.Namespace) -> None:
    """Keep back what a sync logs of a range that failed: the error says it, for a pull."""
    if not options.verbose:
        import logging

        logging.getLogger("siteline.sync").setLevel(logging.ERROR)


@contextmanager
def _place(options: argparse.Namespace, output: OutputFile) -> Iterator[str]:
    """Give the path of the spool, which is this run's alone."""
    from siteline.cli.run_lock import locked
    from siteline.cli.spool import private_folder

    if options.spool is None and output.is_stdout:
        with private_folder() as folder:
            yield os.path.join(folder, "pull.siteline")
        return
    # A pull of another output may name the same spool.
    path = options.spool or output.beside("part")
    with locked(f"{path}-run", path):
        yield path


def _by_spool(
    options: argparse.Namespace, client: Client, output: OutputFile, path: str
) -> Outcome:
    from siteline.cli.writers import COLUMNS

    spool = _opened(options, path)
    try:
        wanted = pull_query.of_spool(options, client, spool)
        selected = pull_query.selected(options, client)
    except BaseException:
        spool.leave()
        raise
    pages_before = spool.pages
    if options.resume and not pages_before:
        hint(f"There is nothing to resume for {escaped(output.name)}: it begins.")
    try:
        with _shown_progress(options, output) as progress:
            report = spool.read(client, wanted, progress)
        through = pull_report.read_through(report, wanted)
        points = spool.points(through, *selected)
        if len(points) > _MANY:
            hint(f"Writing {len(points):,} points to {escaped(output.name)}.")
        written = output.write(points, COLUMNS)
    except BaseException as error:
        is_private = output.is_stdout and not options.spool
        _say_what_is_kept(error, spool, is_private=is_private, again=_again(options))
        raise
    spool.remove()
    return pull_report.of_sync(client, wanted.query, through, report, output, written, pages_before)


def _opened(options: argparse.Namespace, path: str) -> Spool:
    from siteline.cli.spool import Spool, remove
    from siteline.errors import StoreError

    is_named = options.spool is not None
    if options.restart:
        if is_named:
            # It may be a store with the user's own feeds, which this refuses.
            Spool(path).close()
        remove(path)
    try:
        return Spool(path)
    except StoreError as error:
        if not is_named:
            way = "--restart removes the spool, --spool FILE names another, on a local disk."
            error.hint = f"{error.hint} {way}" if error.hint else way
        raise


@contextmanager
def _shown_progress(
    options: argparse.Namespace, output: OutputFile
) -> Iterator[Callable[[Progress], object] | None]:
    from siteline.progress import finish, reporter

    # Rows and progress on one terminal would be mixed.
    is_mixed = output.is_stdout and options.as_read and is_terminal(sys.stdout)
    callback = reporter(progress_of(options) and not is_mixed, output.name)
    try:
        yield callback or None
    finally:
        finish(callback)


def _again(options: argparse.Namespace) -> str:
    """Return what goes on with the spool: of times that count from now, not the same command."""
    if options.counts_from_now:
        return "--resume in the place of the query's arguments"
    return "The same command with --resume"


def _say_what_is_kept(error: BaseException, spool: Spool, *, is_private: bool, again: str) -> None:
    """Add to what is said of the error what is kept, and where to go on."""
    from siteline._counts import counted

    pages = spool.leave()
    read = "what was read" if pages is None else counted(pages, "page")
    if pages == 0:
        way = "No page was read, and nothing is kept."
    elif is_private:
        way = f"Not kept: {read}. With --spool FILE it would be."
    else:
        is_refused = status_of(error) is Exit.INCOMPLETE
        goes_on = "begins the chain anew" if is_refused else "goes on there"
        way = f"Kept in {escaped(spool.path)}: {read}. {again} {goes_on}."
    is_kept = pages != 0 and not is_private
    _tell(error, way, {"spool": spool.path if is_kept else None, "pages": pages})


def _tell(error: BaseException, way: str, members: dict[str, Any]) -> None:
    """Have what is said of an error end with what to do now."""
    if isinstance(error, KeyboardInterrupt):
        say(f"siteline: {way}")
        vars(error).update(members=members)
    if isinstance(error, BrokenPipeError) or not isinstance(error, Exception):
        return  # nobody reads it any more, or a signal ends the process
    known = getattr(error, "hint", None)
    if status_of(error) in (Exit.SPENT, Exit.INCOMPLETE):
        known = None  # it tells a program what to call
    if (retry_at := getattr(error, "retry_at", None)) is not None:
        from siteline._times import to_second

        way += f" There are requests again from {to_second(retry_at)} UTC on."
    vars(error).update(hint=f"{known} {way}" if known else way, members=members)


def _as_read(options: argparse.Namespace, client: Client, output: OutputFile) -> Outcome:
    from siteline.cli.writers import COLUMNS, header, lines

    pages = points = requests = 0

    with _shown_progress(options, output) as progress:

        def count(now: Progress) -> None:
            nonlocal requests
            requests = now.requests
            if progress is not None:
                progress(now)

        scan = pull_query.scan_of(options, client, count)
        try:
            with output.opened() as stream:
                for page in scan.pages():
                    if not pages:
                        stream.write(header(output.format, COLUMNS))
                    for text, rows in lines(output.format, COLUMNS, page.records(named=True)):
                        stream.write(text)
                        points += rows
                    stream.flush()
                    pages += 1
        except BaseException as error:
            _tell(error, "Nothing to go on with is kept of --as-read.", {"pages": pages})
            raise
    return pull_report.of_pages(client, scan.query, output, pages, points, requests)
