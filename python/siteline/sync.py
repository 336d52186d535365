"""The report of a sync, and the plan of the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from siteline._counts import counted
from siteline._escape import escaped
from siteline._times import iso, reached, to_second, with_times
from siteline.allowance import Allowance
from siteline.errors import AllowanceExhausted, QueryError, UnreadRange

if TYPE_CHECKING:
    from siteline.reports import (
        AllowanceDict,
        FeedReportDict,
        SetAsideDict,
        SyncReportDict,
        TaskDict,
    )

__all__ = ["FeedReport", "Plan", "SetAside", "SyncReport", "Task"]

_WHY = {
    "resume": "resumed",
    "reread": "requested",
    "edge": "fresh",
    "settle": "due",
    "fill": "never read",
    "audit": "how late it came",
}


class Task(NamedTuple):
    """One range that a sync reads, or has left to read, as one chain.

    - ``feed``: the feed's name; for a scan, the feed whose pages its ``pages`` were estimated from,
      or ``""``
    - ``why``, in order of urgency: ``"resume"`` (begun and not ended), ``"reread"`` (requested),
      ``"edge"`` (fresh), ``"settle"`` (its lateness is over), ``"audit"`` (to
      learn when its points came), ``"fill"`` (never read)
    - ``start``, ``end``: the range, half-open, UTC
    - ``pages``: expected pages, ``None`` where there is no estimate; 0 for a scan that was read

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> task = client.plan(feed, siteline.Store("plant.siteline")).tasks[0]
    >>> task.feed, task.why, task.pages
    ('line-2', 'edge', None)
    """

    feed: str
    """The feed's name."""
    why: Literal["resume", "reread", "edge", "settle", "audit", "fill"]
    """Why the range is read."""
    start: datetime
    """The start of the range, inclusive."""
    end: datetime
    """The end of the range, exclusive."""
    pages: int | None
    """Expected pages; ``None`` where there is no estimate."""

    @classmethod
    def _restore(cls, record: dict[str, Any]) -> Task:
        return cls(**with_times(record, "start", "end"))

    def __str__(self) -> str:
        """Print one line."""
        pages = "" if self.pages is None else f", {counted(self.pages, 'page')}"
        return f"{escaped(self.feed)}: {_range(self.start, self.end)}, {_WHY[self.why]}{pages}"


class SetAside(NamedTuple):
    """A range that a sync does not read for a day.

    The service did not end its chain, or a target cannot store its values.

    - ``start``, ``end``: half-open, UTC; ``until``: when a sync tries it again by itself
    - ``error``: the class of the error that ended its last chain, by name: ``"EndlessChain"``;
      ``pages``: the pages of that chain

    ``sync(..., reread=(start, end))`` tries it before. What was never read of it stays unread
    (:class:`UnreadRange`); what an earlier chain has read stays as it was.

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> client.sync(feed, siteline.Store("plant.siteline"))["line-2"].set_aside
    ()
    """

    start: datetime
    """The start, inclusive."""
    end: datetime
    """The end, exclusive."""
    until: datetime
    """When a sync tries it again by itself."""
    error: str
    """The class of the error that ended its last chain."""
    pages: int
    """The pages of that chain."""

    @classmethod
    def _restore(cls, record: dict[str, Any]) -> SetAside:
        return cls(**with_times(record, "start", "end", "until"))

    def __str__(self) -> str:
        """Print one line."""
        pages = counted(self.pages, "page")
        return (
            f"{_range(self.start, self.end)} set aside until {to_second(self.until)} UTC "
            f"({escaped(self.error)}, {pages})"
        )


class FeedReport(NamedTuple):
    """What a sync did for one feed.

    - ``name``: the feed's name; ``chains`` read to their end, ``pages`` read
    - ``inserted``, ``revised``, ``unchanged``: points that were new, had other values, or had the
      same; ``flagged``: stored points that a complete read of their range no longer brought
    - ``sequence``: the number of the newest page, for :meth:`Store.changes` and :meth:`Store.as_of`
    - ``settled_through``: everything from the feed's beginning up to this time is settled, or
      ``None``
    - ``read_through``: everything from the feed's beginning up to this time was read, or ``None``
    - ``newest``: the newest instant that was read, perhaps after unread ranges, or ``None``
    - ``late``: points that audits (:class:`Feed`, ``audit_pages=``) found to come or change after
      the lateness: their windows were read again
    - ``set_aside``: a :class:`SetAside` for each range that is not read for a day, because the
      service did not end its chain

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> done = client.sync(feed, siteline.Store("plant.siteline"))["line-2"]
    >>> done.revised, done.inserted > 0, done.settled_through.isoformat()
    (0, True, '2026-11-19T00:00:00+00:00')
    """

    name: str
    """The feed's name."""
    chains: int
    """Chains read to their end."""
    pages: int
    """Pages read."""
    inserted: int
    """Points that were new."""
    revised: int
    """Points that had other values, or were flagged."""
    unchanged: int
    """Points that had the same values."""
    flagged: int
    """Points that a complete read of their range no longer brought."""
    sequence: int
    """The number of the newest page."""
    settled_through: datetime | None
    """Everything from the feed's beginning up to this time is settled."""
    read_through: datetime | None
    """Everything from the feed's beginning up to this time was read."""
    newest: datetime | None
    """The newest instant that was read."""
    late: int
    """Points that audits found to come or change after the lateness."""
    set_aside: tuple[SetAside, ...]
    """Ranges that are not read for a day."""

    @classmethod
    def _restore(cls, record: dict[str, Any]) -> FeedReport:
        set_aside = tuple(map(SetAside._restore, record.pop("set_aside")))
        record = with_times(record, "settled_through", "read_through", "newest")
        return cls(**record, set_aside=set_aside)

    def _sequence_of(self, feed: str) -> int:
        if feed != self.name:
            raise QueryError(f"This report is of the feed {self.name!r}, not of {feed!r}.")
        return self.sequence


@dataclass(frozen=True)
class SyncReport:
    """What a sync did. Made by :meth:`Client.sync`; it prints as a line for each feed.

    - ``feeds``: name to :class:`FeedReport`; ``report["line-2"]`` is short for
      ``report.feeds["line-2"]``
    - ``pages``, ``inserted``, ``revised``, ``unchanged``, ``flagged``: sums over all feeds
    - ``settled_through``, ``read_through``: the earliest of all feeds
    - ``requests``: requests made, repeats included
    - ``complete``: whether everything planned has been read; if not, ``todo`` has each
      :class:`Task` that is left, ``ended_by`` says why, and ``resumes_at`` is when to sync again
    - ``ended_by``: ``"allowance"`` (used up, or its rest is reserved), ``"max_pages"`` (the next
      sync can go on at once), ``"set_aside"`` (all that is left is), ``None`` where it is complete
    - ``allowance``: the :class:`Allowance` at the end; ``now``: the time the sync was planned for

    Reports can be compared, hashed, pickled, and given to :meth:`Store.changes` and
    :meth:`Store.as_of`.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> report.complete, report.flagged, list(report.feeds), report["line-2"].sequence > 0
    (True, 0, ['line-2'], True)
    """

    _feeds: tuple[FeedReport, ...] = field(repr=False)
    requests: int
    """Requests made, repeats included."""
    complete: bool
    """Whether everything planned has been read."""
    ended_by: Literal["allowance", "max_pages", "set_aside"] | None
    """What ended the sync before all was read; ``None`` where it is complete."""
    resumes_at: datetime | None
    """When to sync again; ``None`` where it is complete."""
    todo: tuple[Task, ...]
    """The tasks that are left."""
    allowance: Allowance = field(hash=False)
    """The allowance at the end."""
    now: datetime
    """The time the sync was planned for."""

    @classmethod
    def _restore(cls, record: dict[str, Any]) -> SyncReport:
        return cls(
            _feeds=tuple(map(FeedReport._restore, record.pop("feeds"))),
            todo=tuple(map(Task._restore, record.pop("todo"))),
            allowance=Allowance(**with_times(record.pop("allowance"), "resets_at")),
            **with_times(record, "resumes_at", "now"),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was pickled; 0.2.0 did not say what ended a sync."""
        vars(self).update({"ended_by": None, **state})

    @property
    def feeds(self) -> Mapping[str, FeedReport]:
        """What was done for each feed, in the order given."""
        return MappingProxyType({one.name: one for one in self._feeds})

    @property
    def pages(self) -> int:
        """Pages read."""
        return sum(one.pages for one in self._feeds)

    @property
    def inserted(self) -> int:
        """Points that were new."""
        return sum(one.inserted for one in self._feeds)

    @property
    def revised(self) -> int:
        """Points that had other values, or were flagged."""
        return sum(one.revised for one in self._feeds)

    @property
    def unchanged(self) -> int:
        """Points that had the same values."""
        return sum(one.unchanged for one in self._feeds)

    @property
    def flagged(self) -> int:
        """Points that a complete read of their range no longer brought."""
        return sum(one.flagged for one in self._feeds)

    @property
    def settled_through(self) -> datetime | None:
        """All feeds are settled from their beginning up to this time; ``None`` if one is not."""
        return _earliest([one.settled_through for one in self._feeds])

    @property
    def read_through(self) -> datetime | None:
        """All feeds have been read from their beginning up to this time; ``None`` if one is not."""
        return _earliest([one.read_through for one in self._feeds])

    def __getitem__(self, feed: str) -> FeedReport:
        """Return what was done for one feed."""
        return self.feeds[feed]

    def _sequence_of(self, feed: str) -> int:
        if feed not in self.feeds:
            names = ", ".join(map(repr, self.feeds))
            raise QueryError(f"This report is not of the feed {feed!r}: it is of {names}.")
        return self.feeds[feed].sequence

    def raise_for_incomplete(self) -> None:
        """Raise :class:`AllowanceExhausted`, with ``retry_at``, if something is left to read.

        Where all that is left was set aside, or ``max_pages=`` ended the sync, it is
        :class:`UnreadRange`.
        """
        if self.complete:
            return
        if self.ended_by == "max_pages":
            raise UnreadRange(
                f"the sync is not complete: {_left(self.todo)}; it has asked for as many pages as "
                "max_pages= allows",
                retry_at=self.resumes_at,
                retryable=True,
                spans=tuple((task.start, task.end) for task in self.todo),
                hint="Call sync() again: it continues where it stopped.",
            )
        named = [(feed.name, one) for feed in self._feeds for one in feed.set_aside]
        ranges = [one for _, one in named]
        if ranges and self.resumes_at == min(one.until for one in ranges):
            shown = "; ".join(f"{name}: {one}" for name, one in named[:3])
            shown += "; …" if len(ranges) > 3 else ""
            raise UnreadRange(
                f"the sync is not complete: {shown}",
                retry_at=self.resumes_at,
                spans=tuple((one.start, one.end) for one in ranges),
                hint="Their chains were not read to their end. "
                "sync(..., reread=(start, end)) tries them before.",
            )
        raise AllowanceExhausted(
            f"the sync is not complete: {_left(self.todo)}; the allowance is used up or reserved "
            f"for windows that become due ({_allowance(self.allowance)})",
            retry_at=self.resumes_at,
            retryable=True,
            hint="Call sync() again after retry_at: it continues where it stopped.",
        )

    def to_dict(self) -> SyncReportDict:
        """Return plain dicts, lists, numbers and ISO 8601 texts, for ``json.dumps``."""
        return {
            "now": iso(self.now),
            "complete": self.complete,
            "ended_by": self.ended_by,
            "resumes_at": iso(self.resumes_at),
            "pages": self.pages,
            "inserted": self.inserted,
            "revised": self.revised,
            "unchanged": self.unchanged,
            "flagged": self.flagged,
            "requests": self.requests,
            "settled_through": iso(self.settled_through),
            "read_through": iso(self.read_through),
            "feeds": [_feed_dict(one) for one in self._feeds],
            "todo": [_task_dict(task) for task in self.todo],
            "allowance": _allowance_dict(self.allowance),
        }

    def __repr__(self) -> str:
        """Summarize in one line."""
        state = "complete" if self.complete else f"incomplete, {_left(self.todo)}"
        return f"<SyncReport {state}: {counted(self.pages, 'page')}, {_points(self)}>"

    def __str__(self) -> str:
        """Print a line for each feed, and what is left to read."""
        state = "complete" if self.complete else "incomplete"
        lines = [
            f"Sync {state}, {to_second(self.now)} UTC: {counted(self.pages, 'page')}, "
            f"{counted(self.requests, 'request')} ({_allowance(self.allowance)})"
        ]
        width = max(len(escaped(one.name)) for one in self._feeds)
        for one in self._feeds:
            name = escaped(one.name)
            lines += [f"  {name:<{width}}  {_points(one)}", f"  {'':<{width}}  {_reach(one)}"]
            lines += [f"  {'':<{width}}  {range}" for range in one.set_aside[:3]]
        if not self.complete:
            when = "" if self.resumes_at is None else f", from {to_second(self.resumes_at)} UTC on"
            when = ", as max_pages= ended the sync" if self.ended_by == "max_pages" else when
            lines.append(f"  still to do{when}: {_left(self.todo)}")
            lines += [f"    {task}" for task in self.todo[:5]]
            lines += [f"    … and {len(self.todo) - 5} more"] if len(self.todo) > 5 else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import sync_html

        return sync_html.report(self)


@dataclass(frozen=True, repr=False)
class Plan:
    """What the next sync, or a read of scans, would cost. Made by :meth:`Client.plan`.

    - ``tasks``: a :class:`Task` for each chain, in the order in which they would be read
    - ``pages``: the expected pages of all tasks, ``None`` while those of one are unknown
    - ``allowance``: the current :class:`Allowance`; ``reserve``: pages reserved for windows that
      become due before the allowance is reset
    - ``set_aside``: the number of ranges that a sync leaves out for a day: :class:`SetAside`
    - ``now``: the time of the plan; ``kind``: ``"sync"`` or ``"scan"``
    - ``fits``: whether the allowance is enough, ``None`` where that is unknown

    A page costs one request; each retry costs one more. The pages of a scan can be estimated once
    this client has read the same query over any range; a split scan takes more pages:

    >>> scan.split(3) and client.plan(scan).pages is None
    True
    >>> _ = client.scan(site="S1", start="2026-11-02T00:00Z", end="2026-11-03T00:00Z",
    ...                 interval="1h", page_size=30).collect()
    >>> client.plan(scan).pages, client.plan(scan.split(6)).pages
    (3, 6)

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> store = siteline.Store("plant.siteline")
    >>> client.plan(feed, store).pages is None
    True
    >>> _ = client.sync(feed, store)
    >>> client.plan(feed, store)
    <Plan nothing to read>
    """

    tasks: tuple[Task, ...]
    """A task for each chain, in the order in which they would be read."""
    pages: int | None
    """The expected pages of all tasks; ``None`` while those of one are unknown."""
    allowance: Allowance = field(hash=False)
    """The current allowance."""
    reserve: int
    """Pages reserved for windows that become due before the allowance is reset."""
    set_aside: int
    """The number of ranges that a sync leaves out for a day."""
    now: datetime
    """The time of the plan."""
    kind: Literal["sync", "scan"]
    """What is planned."""

    @classmethod
    def _restore(cls, record: dict[str, Any], kind: Literal["sync", "scan"]) -> Plan:
        return cls(
            tasks=tuple(map(Task._restore, record.pop("tasks"))),
            allowance=Allowance(**with_times(record.pop("allowance"), "resets_at")),
            kind=kind,
            **with_times(record, "now"),
        )

    @property
    def fits(self) -> bool | None:
        """Whether the requests that are left are enough; ``None`` where that is unknown."""
        if not self.tasks or self.pages == 0:
            return True
        if self.allowance.left is None:
            return None
        if self._least > self.allowance.left:
            return False
        return None if self.pages is None else True

    @property
    def _least(self) -> int:
        """The least number of expected pages: a chain of unknown length takes one or more."""
        return sum(1 if task.pages is None else task.pages for task in self.tasks)

    def raise_for_allowance(self) -> None:
        """Raise :class:`AllowanceExhausted` if the allowance is known not to be enough."""
        if self.fits is not False:
            return
        least = "" if self.pages is not None else " or more"
        raise AllowanceExhausted(
            f"{counted(self._least, 'page')}{least} are expected, and the daily allowance has "
            f"{counted(self.allowance.left or 0, 'request')} left",
            retry_at=self.allowance.resets_at,
            retryable=True,
            hint="A sync may begin anyway: it stops after a page, and the next sync continues. A "
            "scan takes fewer pages with a larger page_size= or interval=, with a shorter range, "
            "or unsplit.",
        )

    def __repr__(self) -> str:
        """Summarize in one line."""
        if not self.tasks:
            return f"<Plan nothing to read{self._aside}>"
        return f"<Plan {counted(len(self.tasks), 'chain')}, {_expected(self)}{self._aside}>"

    @property
    def _aside(self) -> str:
        return f", {counted(self.set_aside, 'range')} set aside" if self.set_aside else ""

    def __str__(self) -> str:
        """Print a line for each chain, and its expected cost."""
        if not self.tasks:
            when = f"{to_second(self.now)} UTC{self._aside}"
            return f"Nothing to read at {when} ({_allowance(self.allowance)})"
        fits = {True: "enough", False: "not enough", None: "unknown whether that is enough"}
        lines = [
            f"To read at {to_second(self.now)} UTC: {_expected(self)}{self._aside}",
            f"  {_allowance(self.allowance)}: {fits[self.fits]}",
        ]
        if self.reserve:
            reserved = counted(self.reserve, "page")
            lines.append(f"  {reserved} reserved for windows that become due today")
        line = str if self.kind == "sync" else self._scan_line
        lines += [f"  {line(task)}" for task in self.tasks[:12]]
        lines += [f"  … and {len(self.tasks) - 12} more"] if len(self.tasks) > 12 else []
        return "\n".join(lines)

    def _scan_line(self, task: Task) -> str:
        known = "unknown" if task.pages is None else counted(task.pages, "page")
        pages = f": {known}" if len(self.tasks) > 1 else ""
        source = f", estimated from the feed {escaped(task.feed)}" if task.feed else ""
        return f"{_range(task.start, task.end)}{pages}{source}"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import sync_html

        return sync_html.plan(self)


def _expected(plan: Plan) -> str:
    if plan.pages is not None:
        return f"{counted(plan.pages, 'page')} expected"
    known = sum(task.pages or 0 for task in plan.tasks)
    if known:
        return f"{counted(known, 'page')} expected, and an unknown number more"
    return "number of pages unknown"


def _points(counts: SyncReport | FeedReport) -> str:
    flagged = f", {counts.flagged:,} flagged" if counts.flagged else ""
    return (
        f"{counts.inserted:,} inserted, {counts.revised:,} revised, "
        f"{counts.unchanged:,} unchanged{flagged}"
    )


def _reach(one: FeedReport) -> str:
    if one.newest is None:
        return "no chain completed yet"
    return reached(one.settled_through, one.read_through, one.newest, to_second)


def _left(todo: tuple[Task, ...]) -> str:
    if not todo:
        return "something is left"
    if any(task.pages is None for task in todo):
        return f"{counted(len(todo), 'chain')} left"
    return f"{counted(sum(task.pages or 0 for task in todo), 'page')} left"


def _allowance(shown: Allowance) -> str:
    if shown.left is None:
        return "no daily allowance is set"
    return f"{shown.left:,} left until {to_second(shown.resets_at)} UTC"


def _feed_dict(one: FeedReport) -> FeedReportDict:
    return {
        "name": one.name,
        "chains": one.chains,
        "pages": one.pages,
        "inserted": one.inserted,
        "revised": one.revised,
        "unchanged": one.unchanged,
        "flagged": one.flagged,
        "sequence": one.sequence,
        "settled_through": iso(one.settled_through),
        "read_through": iso(one.read_through),
        "newest": iso(one.newest),
        "late": one.late,
        "set_aside": [_set_aside_dict(range) for range in one.set_aside],
    }


def _set_aside_dict(one: SetAside) -> SetAsideDict:
    return {
        "start": iso(one.start),
        "end": iso(one.end),
        "until": iso(one.until),
        "error": one.error,
        "pages": one.pages,
    }


def _task_dict(task: Task) -> TaskDict:
    return {
        "feed": task.feed,
        "why": task.why,
        "start": iso(task.start),
        "end": iso(task.end),
        "pages": task.pages,
    }


def _allowance_dict(allowance: Allowance) -> AllowanceDict:
    return {
        "used": allowance.used,
        "limit": allowance.limit,
        "left": allowance.left,
        "resets_at": iso(allowance.resets_at),
    }


def _earliest(times: list[datetime | None]) -> datetime | None:
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None


def _range(start: datetime, end: datetime) -> str:
    return f"{to_second(start)} to {to_second(end)}"
