"""``siteline read``: reads the service into a file or to stdout."""

from __future__ import annotations

import logging
import os
import re
import warnings
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline import _doors
from siteline._counts import counted
from siteline._escape import escaped
from siteline._times import iso, to_second
from siteline.cli import table_options as tables
from siteline.cli.arguments import (
    Commands,
    Options,
    add_command,
    add_options,
    add_skip_code,
    given_of,
)
from siteline.cli.clients import client_of, progress_of
from siteline.cli.exits import Exit, status_of
from siteline.cli.output import Outcome, hint, say
from siteline.cli.output_file import OutputFile, add_output
from siteline.cli.spool import Spool
from siteline.errors import ConfigError, QueryError, SitelineError, StoreCorrupt

if TYPE_CHECKING:
    from siteline import Client, Scan, Table
    from siteline.types import RequestEvent

_ASKED = (*tables.LEVELS, "find", "filter", "start", "end", "tz", "interval", "page_size")
"""The options of the query, which a resumed read has from the earlier run."""

_WITHOUT_SPOOL = ("unmerged", "split", "store", "dry_run")

_FOR_PROGRAMS = re.compile(
    r"collect\(\)|bookmark|store=|\bsync\b|Name another file|^Continue after \S+Z\.$"
)
"""Hints about continuing in a program, or in the store of a spool."""


def add(commands: Commands) -> None:
    """Adds the command."""
    made = add_command(
        commands,
        "read",
        _run,
        "With -o, --resume continues a read that was killed, and pays for no page twice.",
        example="siteline read --line L2 --start -7d --interval 5m -o week.parquet",
    )
    add_output(made)
    query = {
        **tables.SERIES,
        **tables.FIND,
        "--filter NAME=VALUE …": "a query parameter to send",
        **tables.range_options("five minutes before now"),
        "--interval WIDTH": "bucket width, such as 5m",
        "--page-size N": "items per page",
    }
    add_options(made.add_argument_group("query"), query)
    tables.add_shape(made)
    more = {
        "--unmerged": "write each page as it arrives",
        "--dry-run": "print the plan; send no page",
    }
    add_options(made, more)
    limits = {
        "--split N|WIDTH": "read this many parts, or parts so long",
        "--concurrency N": "most requests in flight (4)",
        "--store STORE": "read settled data from this store",
        "--deadline DURATION": "time limit of the read",
        "--max-pages N": "end after N pages",
        "--spool FOLDER": "store pages here, also for stdout",
    }
    group = made.add_argument_group("limits and resuming")
    add_options(group, limits)
    either = {
        "--resume": "continue the earlier read of the same query",
        "--restart": "drop the pages of the earlier read, and begin",
    }
    add_options(group.add_mutually_exclusive_group(), either)
    add_skip_code(group)


def _run(options: Options) -> Outcome:
    _check(options)
    if options.dry_run:
        with client_of(options) as client:
            return _planned(options, client)
    output = OutputFile(options)
    spool = _spool_of(options, output)
    requests: list[RequestEvent] = []
    with client_of(options, on_request=requests.append) as client:
        run = _Run(options, client, output, requests)
        if spool is not None:
            return _by_spool(run, spool)
        return _unmerged(run) if options.unmerged else _at_once(run)


class _Run(NamedTuple):
    options: Options
    client: Client
    output: OutputFile
    requests: list[RequestEvent]


def _at_once(run: _Run) -> Outcome:
    with _store_of(run.options) as store:
        scan = _scan(run.options, run.client, store=store)
        try:
            table = scan.collect()
        except BaseException as error:
            way = ""
            if run.options.store is not None:
                store_name = escaped(run.options.store)
                way = f"The pages are kept in {store_name}. The same command continues there."
            elif any(event.kind == "data" for event in run.requests):
                way = "No page is kept: with -o FILE or --spool FOLDER, --resume continues."
            _explain(error, way)
            raise
        return _written(run, table)


def _check(options: Options) -> None:
    tables.check_shape(options)
    if options.unmerged and (options.pivot or options.resample):
        raise ConfigError("--unmerged writes points as sent, not with --pivot or --resample.")
    without = [name for name in _WITHOUT_SPOOL if getattr(options, name)]
    given = _spool_options(options)
    if without and given:
        raise ConfigError(
            f"--{given[0]} is not for a read with --{without[0].replace('_', '-')}.",
            hint="It has no spool. A read with --store continues by itself.",
        )
    if options.start is None and not (options.resume and not given_of(options, _ASKED)):
        raise ConfigError(
            "--start is missing. Without it the service decides, which may cost years of pages.",
            hint="Such as --start -7d or --start 2026-11-01.",
        )


def _spool_options(options: Options) -> list[str]:
    return [name for name in ("resume", "restart", "spool") if getattr(options, name)]


def _spool_of(options: Options, output: OutputFile) -> Spool | None:
    given = _spool_options(options)
    if options.unmerged and not output.is_lines:
        raise ConfigError(f"--unmerged writes csv or jsonl, not {output.format}.")
    if output.is_stdout and options.spool is None:
        if given:
            raise ConfigError(f"--{given[0]} needs -o FILE or --spool FOLDER.")
        return None
    if any(getattr(options, name) for name in _WITHOUT_SPOOL):
        return None
    folder, name = os.path.split(output.path)
    beside = os.path.join(folder, f".{name}.siteline")
    with suppress(ValueError):  # another drive
        beside = min(beside, os.path.relpath(beside), key=len)
    return Spool(options.spool or beside, is_made=options.spool is None)


def _scan(options: Options, client: Client, **more: Any) -> Scan:
    """Returns the scan of the options. ``--find`` costs a discovery request."""
    filters: dict[str, list[str]] = {}
    for written in options.filter or ():
        name, separator, value = written.partition("=")
        if not (name and separator):
            raise QueryError(f"--filter {written!r} is not NAME=VALUE, such as machineId=M7.")
        filters.setdefault(name, []).append(value)
    given = {
        "start": options.start,
        **tables.levels_of(options),
        "filters": filters or None,
        "split": int(options.split) if (options.split or "").isdigit() else options.split,
        "labels": tables.labels_of(options),
        "progress": progress_of(options),
    }
    names = ("end", "tz", "interval", "page_size", "concurrency", "deadline", "max_pages")
    given |= given_of(options, names)
    keywords = {name: value for name, value in {**given, **more}.items() if value is not None}
    if options.find is not None and not options.dry_run:
        found = client.series().find(options.find, **tables.levels_of(options))
        if not len(found):
            raise QueryError(
                f"No series contains {options.find!r}. No page was requested.",
                hint=f"{_doors.nearest(found)}siteline series lists all series.",
            )
        keywords["series"] = found
    return client.scan(**keywords)


def _store_of(options: Options) -> Any:
    from siteline.store import Store

    if options.store is None:
        return nullcontext()
    if options.dry_run:
        return Store(options.store, labels=False, read_only=True)
    return Store(options.store)


def _planned(options: Options, client: Client) -> Outcome:
    with _store_of(options) as store:
        plan = client.plan(_scan(options, client, store=store))
    status = Exit.SPENT if plan.fits is False else Exit.DONE
    return Outcome({"store": options.store, **plan.to_dict()}, str(plan), status)


def _by_spool(run: _Run, spool: Spool) -> Outcome:
    options, client = run.options, run.client
    if not options.verbose:
        logging.getLogger("siteline.sync").setLevel(logging.ERROR)  # the error has the same text
    spool.lock()
    try:
        _begin(run, spool)
    except BaseException:
        spool.remove() if spool.is_empty else spool.close()
        raise
    before = _pages_of(spool) or 0
    try:
        table = _scan(options, client, store=spool.store).collect()
        outcome = _written(run, table, before)
    except BaseException as error:
        pages = _pages_of(spool)
        is_kept = pages != 0
        spool.close() if is_kept else spool.remove()
        members = {"spool": spool.path if is_kept else None, "pages": pages}
        nothing = "" if isinstance(error, ConfigError) else "No page was read."
        _explain(error, _way_on(error, spool, pages) if is_kept else nothing, members)
        raise
    spool.remove()
    return outcome


def _begin(run: _Run, spool: Spool) -> None:
    options, client, name = run.options, run.client, run.output.name
    if options.restart:
        spool.clear()
    asked = given_of(options, _ASKED)
    if spool.is_damaged:
        hint_of_it = f"--restart removes {escaped(spool.path)} and reads again."
        raise StoreCorrupt(f"The query in {spool.path} is damaged.", hint=hint_of_it)
    if spool.kept is None:
        if options.resume and not asked:
            raise ConfigError(
                f"There is no earlier read of {name} to resume.",
                hint="Give the query, at least --start.",
            )
        if options.resume:
            hint(f"There is no earlier read of {escaped(name)}: a new one begins.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the scan that reads warns
            given = given_of(options, ("start", "end", "tz", "interval"))
            query = client.scan(**given).query
        spool.begin(client, asked, {"start": iso(query.start), "end": iso(query.end)})
    elif not options.resume:
        pages = _pages_of(spool)
        resumes = "" if pages is None else "--resume continues it, "
        raise ConfigError(
            f"{spool.path} has {_counted(pages, 'page')} of an earlier read.",
            hint=f"{resumes}--restart drops its pages and begins again.",
        )
    else:
        spool.check(client, asked)
        vars(options).update({name: spool.kept["asked"].get(name) for name in _ASKED})
    assert spool.kept is not None
    options.start, options.end = spool.kept["start"], spool.kept["end"]


def _pages_of(spool: Spool) -> int | None:
    """The number of kept pages; ``None`` for a damaged spool."""
    try:
        return spool.pages
    except SitelineError:
        return None


def _way_on(error: BaseException, spool: Spool, pages: int | None) -> str:
    path = escaped(spool.path)
    if status_of(error) is Exit.DAMAGED or pages is None:
        return f"--restart removes {path} and reads again."
    if _has_no_cursor(error):
        return (
            "The chain cannot be continued: --resume tries it again only a day later. "
            f"--restart removes {path} and starts again, and all pages are paid for again."
        )
    kept = f"{_counted(pages, 'page')} of this read {'is' if pages == 1 else 'are'} kept in {path}"
    return f"{kept}. The same command with --resume continues."


def _has_no_cursor(error: BaseException) -> bool:
    # The store of the spool skips such a chain for a day.
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint({"CursorLoop", "CursorRejected", "EndlessChain", "UnreadRange"})


def _explain(error: BaseException, way: str, members: dict[str, Any] | None = None) -> None:
    if isinstance(error, KeyboardInterrupt) and way:
        say(f"siteline: {way}")
        vars(error).update(members=members or {})
    if isinstance(error, BrokenPipeError) or not isinstance(error, Exception):
        return
    known = getattr(error, "hint", None)
    is_at_end = bool(way) and _has_no_cursor(error)
    if known is not None and (is_at_end or _FOR_PROGRAMS.search(known)):
        known = None
    if (retry_at := getattr(error, "retry_at", None)) is not None and not is_at_end:
        way = f"{way} The next requests are possible from {to_second(retry_at)} UTC on."
    with suppress(AttributeError):
        is_sentence = known is None or ("\n" not in known and known.endswith("."))
        text = (" " if is_sentence else "\n").join(filter(None, (known, way)))
        vars(error).update(hint=text or None, members=members or {})


def _unmerged(run: _Run) -> Outcome:
    pages = 0

    def counted() -> Any:
        nonlocal pages
        for page in scan.pages():
            pages += 1
            yield page

    scan = _scan(run.options, run.client)
    try:
        with run.output.opened() as stream:
            rows = run.output.write_lines(stream, counted())
    except BaseException as error:
        _explain(error, "--unmerged keeps no page.", {"pages": pages})
        raise
    known = {"start": scan.query.start, "end": scan.query.end, "pages": pages, "points": rows}
    return _outcome(run, {**known, "rows": rows, "report": None})


def _written(run: _Run, table: Table, before: int = 0) -> Outcome:
    report, query = table.report, table.query
    assert query is not None
    made = tables.shaped(table, run.options)
    run.output.write(made)
    known = {
        "start": query.start,
        "end": query.end,
        "pages": report.pages,
        "resumed_after_pages": before,
        "points": len(table),
        "rows": len(made),
        "report": report.to_dict(),
    }
    return _outcome(run, known)


def _outcome(run: _Run, known: dict[str, Any]) -> Outcome:
    members = {
        **known,
        "requests": sum(event.kind == "data" for event in run.requests),
        **run.output.members,
        "allowance": run.client.allowance.to_dict(),
    }
    return Outcome(members, _text(run.output, members), has_written=run.output.is_stdout)


def _text(output: OutputFile, known: dict[str, Any]) -> str:
    rows, points = known["rows"], known["points"]
    before = known.get("resumed_after_pages")
    parts = [
        f"{escaped(output.name)}: {_counted(points, 'point')}, {to_second(known['start'])} to "
        f"{to_second(known['end'])} UTC",
        *([_counted(rows, "row")] if rows != points else []),
        _counted(known["pages"], "page")
        + (f" after {before:,} of an earlier run" if before else ""),
        _counted(known["requests"], "request"),
        *([] if output.is_stdout else [output.size]),
    ]
    text = "; ".join(parts)
    report = known["report"]
    if points or report is None:
        return text
    if listed := report["not_listed"]:
        return f"{text}\nDiscovery does not list {', '.join(map(escaped, listed))}."
    return f"{text}\nThe service has no point for this query."


def _counted(count: int | None, noun: str) -> str:
    return f"some {noun}s" if count is None else counted(count, noun)
