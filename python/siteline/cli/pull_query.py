"""The query of a pull: with an end that stays as it is, new or of an earlier run."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from siteline.cli.arguments import SELECTED, query_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from siteline import Client, Scan, Table
    from siteline.cli.spool import Range, Spool
    from siteline.types import Progress, Query

__all__ = ["check_start", "fix_range", "is_bare", "keywords", "of_spool", "scan_of", "selected"]


def is_bare(options: argparse.Namespace) -> bool:
    """Whether no argument of the query was given."""
    names = ("site", "line", *SELECTED, "start", "end", "tz", "interval", "page_size")
    return not options.filter and all(getattr(options, name) is None for name in names)


def check_start(options: argparse.Namespace) -> None:
    """Refuse a query without a start."""
    from siteline.errors import ConfigError

    if options.start is None:
        raise ConfigError(
            "--start is required: without it the service would decide, perhaps years back."
        )


def fix_range(options: argparse.Namespace, client: Client) -> None:
    """Replace the times of the arguments by instants, which stay the same from now on.

    ``counts_from_now`` is set where they would not in another run of the same command.
    """
    given = [str(time).strip() for time in (options.start, options.end)]
    options.counts_from_now = any(time == "now" or time.startswith("-") for time in given)
    if options.start is None and options.end is None:
        return
    bounds = {"start": options.start, "end": options.end, "tz": options.tz}
    query = _data(client, **bounds, **query_of(options))
    options.start = query.start
    if options.end is not None:
        options.end = query.end


def scan_of(
    options: argparse.Namespace,
    client: Client,
    progress: Callable[[Progress], object] | None = None,
) -> Scan:
    """Make the scan of the arguments. Its end is fixed, and does not lie ahead of now (§4.5.1)."""
    from siteline import SitelineWarning
    from siteline._times import iso

    end = options.end
    if end is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            now = client.scan(start=None, settle_lag=0, **query_of(options)).query.end
        assert now is not None
        if now < end:
            warnings.warn(
                f"--end {iso(end)} lies ahead of now: it is read up to {iso(now)}, and its newest "
                "buckets are not complete yet. Without --end it stays five minutes behind.",
                SitelineWarning,
                stacklevel=2,
            )
            end = now
    # The ten columns have no names.
    bounds = {"start": options.start, "end": end}
    return client.scan(**bounds, labels=False, progress=progress, **query_of(options))


def selected(options: argparse.Namespace, client: Client) -> tuple[dict[str, Any], Table | None]:
    """Return the machines, devices and tags of the arguments, and the series that have names.

    Raises:
        QueryError: Discovery lists series, and none of these.
    """
    from siteline.errors import QueryError

    levels = {name: ids for name in SELECTED if (ids := getattr(options, name))}
    if not levels:
        return {}, None
    series = client.series()
    if series.report.listed and not len(series.find(**levels)):
        given = ", ".join(f"--{name} {' '.join(ids)}" for name, ids in levels.items())
        message = f"Discovery lists no series of {given}."
        raise QueryError(message, hint="No page was requested. siteline series lists all.")
    return levels, series


def of_spool(options: argparse.Namespace, client: Client, spool: Spool) -> Range:
    """Return what to read: what the arguments say, which must be what the spool has begun.

    Raises :class:`ConfigError` where there is a spool that nobody asked to go on with, and where it
    is one of another query.
    """
    from siteline._counts import counted
    from siteline.cli.spool import Range
    from siteline.errors import ConfigError

    if spool.feed is None:
        check_start(options)
        return Range.of(client, scan_of(options, client).query, options.end)
    if not options.resume:
        raise ConfigError(
            f"{spool.path} has {counted(spool.pages, 'page')} of an earlier run.",
            hint="--resume goes on there, --restart removes them and begins.",
        )
    if options.counts_from_now:
        raise ConfigError(
            f"{spool.path} is of an earlier run: times that count from now are others in this one.",
            hint="--resume alone goes on there; --restart removes what it has read and begins.",
        )
    if is_bare(options):
        wanted = Range.of(client, _data(client, **_of_feed(spool)), spool.asked_end)
    else:
        query = _data(client, start=options.start, end=spool.end, **query_of(options))
        wanted = Range.of(client, query, options.end)
    if differences := spool.differences(wanted):
        raise ConfigError(
            f"{spool.path} was begun with another query: {'; '.join(differences)}.",
            hint="--resume with the arguments of the earlier run goes on there, or with none of a "
            "query; --restart removes what it has read and begins.",
        )
    return wanted


def keywords(query: Query) -> dict[str, Any]:
    """Return a query as the keywords of :meth:`siteline.Client.scan`."""
    return {
        **{name: getattr(query, name) or None for name in ("site", "line", *SELECTED)},
        "start": query.start,
        "end": query.end,
        "interval": query.interval,
        "page_size": query.page_size,
        "filters": query.filters or None,
    }


def _data(client: Client, **given: Any) -> Query:
    """Return the query of these arguments, without its warnings, which are said once elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return client.scan(**given).query


def _of_feed(spool: Spool) -> dict[str, Any]:
    feed = spool.feed
    assert feed is not None
    return {
        "site": feed.site,
        "line": feed.line,
        "start": feed.start,
        "end": spool.end,
        "interval": feed.interval,
        "page_size": feed.page_size,
        "filters": feed.filters or None,
    }
