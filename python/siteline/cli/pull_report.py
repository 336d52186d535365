"""What a pull says at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline.cli.output import Outcome
from siteline.cli.pull_query import keywords

if TYPE_CHECKING:
    from datetime import datetime

    from siteline import Client
    from siteline.cli.output_file import OutputFile, Written
    from siteline.cli.spool import Range
    from siteline.types import Query, SyncReport

__all__ = ["of_pages", "of_sync", "read_through"]


def read_through(report: SyncReport, wanted: Range) -> datetime:
    """Return up to where the range was read; a warning says what lies ahead of the service."""
    import warnings

    from siteline import SitelineWarning
    from siteline._times import iso
    from siteline.errors import QueryError

    end, through = wanted.query.end, report.read_through
    assert end is not None
    if through is None:
        raise QueryError("The range lies ahead of the service's time: nothing of it can be read.")
    if through < end:
        warnings.warn(
            f"it was read up to {iso(through)}: {iso(end)} lies ahead of the service's time.",
            SitelineWarning,
            stacklevel=2,
        )
    return through


def of_sync(
    client: Client,
    query: Query,
    through: datetime,
    report: SyncReport,
    output: OutputFile,
    written: Written,
    pages_before: int,
) -> Outcome:
    """Return what is said of points that went through a spool."""
    members = {
        "end": through,
        "pages": report.pages,
        "resumed_after_pages": pages_before,
        "points": written.points,
        "requests": report.requests,
        "revised": report.revised,
        "bytes": written.bytes,
    }
    return _outcome(client, query, output, members)


def of_pages(
    client: Client, query: Query, output: OutputFile, pages: int, points: int, requests: int
) -> Outcome:
    """Return what is said of points that were written as the pages brought them."""
    members = {
        "end": query.end,
        "pages": pages,
        "resumed_after_pages": 0,
        "points": points,
        "requests": requests,
        "revised": None,
        "bytes": output.size(),
    }
    return _outcome(client, query, output, members)


def _outcome(client: Client, query: Query, output: OutputFile, known: dict[str, Any]) -> Outcome:
    not_listed = None if known["points"] else _not_listed(client, query)
    members = {
        "query": {
            "site": next(iter(query.site), None),
            "line": next(iter(query.line), None),
            "interval_seconds": query.interval and int(query.interval.total_seconds()),
            "page_size": query.page_size,
            "filters": {name: list(values) for name, values in query.filters.items()},
        },
        "start": query.start,
        **known,
        "output": None if output.is_stdout else output.name,
        "format": output.format,
        "allowance": client.allowance.to_dict(),
        "spool": None,
        "not_listed": not_listed,
    }
    text = _text(output, members)
    if not members["points"]:
        text += f"\n{_why_empty(not_listed)}"
    return Outcome(members, text, has_written=output.is_stdout)


def _not_listed(client: Client, query: Query) -> list[str] | None:
    """Return the ids of the query that discovery does not list, ``None`` where it is refused."""
    import logging
    import warnings

    from siteline.errors import SitelineError

    logging.getLogger("siteline.data").setLevel(logging.ERROR)  # it is said here
    try:
        client.discover()
    except SitelineError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(client.scan(**keywords(query)).report.not_listed)


def _text(output: OutputFile, known: dict[str, Any]) -> str:
    from siteline._counts import counted
    from siteline._times import to_second

    before = known["resumed_after_pages"]
    earlier = f" after {before:,} of an earlier run" if before else ""
    points = counted(known["points"], "point")
    parts = [
        f"{escaped(output.name)}: {points}, {to_second(known['start'])} to "
        f"{to_second(known['end'])} UTC",
        f"{counted(known['pages'], 'page')}{earlier}",
        counted(known["requests"], "request"),
    ]
    if known["bytes"] is not None:
        parts.append(_size(known["bytes"]))
    if known["revised"]:
        parts.append(f"{known['revised']:,} points came again with other values, which stand")
    return "; ".join(parts)


def _size(count: int) -> str:
    unit, name = (1e6, "MB") if count >= 1e6 else (1e3, "kB")
    return f"{count / unit:,.1f} {name}"


def _why_empty(not_listed: list[str] | None) -> str:
    if not_listed is None:
        return "No point: whether the ids may still be read is unknown, discovery was refused."
    if not_listed:
        listed = ", ".join(map(escaped, not_listed))
        return f"No point, and the service does not list {listed}: misspelt, or not authorised."
    return "No point in this range; what was asked for is authorised, as far as discovery shows."
