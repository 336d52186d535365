"""What a sync did, and what the next one would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from siteline import html_sync
from siteline.errors import AllowanceExhausted, QueryError

if TYPE_CHECKING:
    from siteline._siteline import Allowance

__all__ = ["FeedReport", "Plan", "SyncReport", "Task"]

_WHY = {
    "resume": "go on",
    "reread": "asked for",
    "edge": "fresh",
    "settle": "due",
    "fill": "never read",
}


class Task(NamedTuple):
    """One range that a sync reads or is still to read, as one chain.

    - ``feed``: the feed's name; for a scan that of the feed that has shown how many pages it takes,
      or ``""``
    - ``why``: ``"resume"`` (begun and not ended), ``"reread"`` (asked for), ``"edge"`` (fresh),
      ``"settle"`` (its lateness is over), ``"fill"`` (never read): in this order
    - ``start``, ``end``: the range, half-open, UTC
    - ``pages``: expected pages, ``None`` while nothing of the kind has been seen; 0 for a scan that
      was read

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> task = client.plan(feed, siteline.Store("plant.siteline")).tasks[0]
    >>> task.feed, task.why, task.pages
    ('line-2', 'edge', None)
    """

    feed: str
    """The feed's name."""
    why: Literal["resume", "reread", "edge", "settle", "fill"]
    """Why it is read."""
    start: datetime
    """Where it begins."""
    end: datetime
    """Where it ends."""
    pages: int | None
    """Expected pages, where pages of the kind have been seen."""

    def __str__(self) -> str:
        """Print it as a line."""
        pages = "" if self.pages is None else f", {_many(self.pages, 'page')}"
        return f"{self.feed}: {_range(self.start, self.end)}, {_WHY[self.why]}{pages}"


class FeedReport(NamedTuple):
    """What a sync did for one feed.

    - ``name``: the feed's; ``chains`` read to their end, ``pages`` read
    - ``inserted``, ``revised``, ``unchanged``: points that were new, that came with other values,
      that came again as they were; ``flagged``: stored points that a complete read of their range
      no longer brought
    - ``sequence``: the number of the newest page: for :meth:`Store.changes` and :meth:`Store.as_of`
    - ``settled_through``: all from the feed's beginning up to here is settled, or ``None``
    - ``read_through``: the newest end of what has been read, or ``None``

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
    """Points that were not there."""
    revised: int
    """Points that were there with other values, or flagged."""
    unchanged: int
    """Points that were there as they came."""
    flagged: int
    """Points that a complete read of their range no longer brought."""
    sequence: int
    """The number of the newest page."""
    settled_through: datetime | None
    """All from the feed's beginning up to here is settled."""
    read_through: datetime | None
    """The newest end of what has been read."""

    def _sequence_of(self, feed: str) -> int:
        if feed != self.name:
            raise QueryError(f"This report is of the feed {self.name!r}, not of {feed!r}.")
        return self.sequence


@dataclass(frozen=True)
class SyncReport:
    """What a sync did. Made by :meth:`Client.sync`; printed, it tells it in lines.

    - ``feeds``: name to :class:`FeedReport`; ``report["line-2"]`` is short for it
    - ``pages``, ``inserted``, ``revised``, ``unchanged``, ``flagged``: of all feeds together
    - ``settled_through``, ``read_through``: the earliest of all feeds
    - ``requests``: requests made, repeats included
    - ``complete``: whether all that was planned has been read; if not, ``todo`` lists the
      :class:`Task` that are left and ``resumes_at`` says when to go on
    - ``allowance``: the :class:`Allowance` at its end; ``now``: the time it was planned for

    Reports are equal, hashable and picklable; keep them: :meth:`Store.changes` and
    :meth:`Store.as_of` take them.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    ...                      since="2026-11-15T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> report.complete, report.flagged, list(report.feeds), report["line-2"].sequence > 0
    (True, 0, ['line-2'], True)
    """

    _feeds: tuple[FeedReport, ...] = field(repr=False)
    requests: int
    complete: bool
    resumes_at: datetime | None
    todo: tuple[Task, ...]
    allowance: Allowance = field(hash=False)
    now: datetime

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
        """Points that were not there."""
        return sum(one.inserted for one in self._feeds)

    @property
    def revised(self) -> int:
        """Points that were there with other values, or flagged."""
        return sum(one.revised for one in self._feeds)

    @property
    def unchanged(self) -> int:
        """Points that were there as they came."""
        return sum(one.unchanged for one in self._feeds)

    @property
    def flagged(self) -> int:
        """Points that a complete read of their range no longer brought."""
        return sum(one.flagged for one in self._feeds)

    @property
    def settled_through(self) -> datetime | None:
        """All feeds are settled from their beginning up to here; ``None`` where one is not."""
        return _earliest([one.settled_through for one in self._feeds])

    @property
    def read_through(self) -> datetime | None:
        """All feeds have been read up to here; ``None`` where one has not been read."""
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
        """Raise :class:`AllowanceExhausted`, with ``retry_at``, where something is left to do."""
        if self.complete:
            return
        raise AllowanceExhausted(
            f"the sync is not complete: {_left(self.todo)}; the allowance is used up or held back "
            f"for what becomes due ({_allowance(self.allowance)})",
            retry_at=self.resumes_at,
            retryable=True,
            hint="Call sync() again after retry_at: it goes on where it was.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and ISO texts: what ``json.dumps`` takes."""
        totals = ("pages", "inserted", "revised", "unchanged", "flagged")
        return {
            "now": _iso(self.now),
            "complete": self.complete,
            "resumes_at": _iso(self.resumes_at),
            **{name: getattr(self, name) for name in totals},
            "requests": self.requests,
            "settled_through": _iso(self.settled_through),
            "read_through": _iso(self.read_through),
            "feeds": [_plain(one) for one in self._feeds],
            "todo": [_plain(task) for task in self.todo],
            "allowance": _plain_allowance(self.allowance),
        }

    def __repr__(self) -> str:
        """Tell the most important in one line."""
        state = "complete" if self.complete else f"incomplete, {_left(self.todo)}"
        return f"<SyncReport {state}: {_many(self.pages, 'page')}, {_points(self)}>"

    def __str__(self) -> str:
        """Print a line for each feed, and what is left."""
        state = "complete" if self.complete else "incomplete"
        lines = [
            f"Sync {state}, {_time(self.now)} UTC: {_many(self.pages, 'page')}, "
            f"{_many(self.requests, 'request')} ({_allowance(self.allowance)})"
        ]
        width = max(len(one.name) for one in self._feeds)
        for one in self._feeds:
            lines += [f"  {one.name:<{width}}  {_points(one)}", f"  {'':<{width}}  {_reach(one)}"]
        if not self.complete:
            when = "" if self.resumes_at is None else f", from {_time(self.resumes_at)} UTC on"
            lines.append(f"  still to do{when}: {_left(self.todo)}")
            lines += [f"    {task}" for task in self.todo[:5]]
            lines += [f"    … and {len(self.todo) - 5} more"] if len(self.todo) > 5 else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return html_sync.report(self)


@dataclass(frozen=True, repr=False)
class Plan:
    """What the next sync, or scans, would read and cost. Made by :meth:`Client.plan`.

    - ``tasks``: a :class:`Task` for each chain, in the order in which they would be read
    - ``pages``: expected pages of all, ``None`` while that is not known for each
    - ``allowance``: the :class:`Allowance` as it stands; ``reserve``: pages held back for windows
      that become due before it begins anew
    - ``now``: the time it was planned for; ``kind``: ``"sync"`` or ``"scan"``
    - ``fits``: whether the allowance is enough, ``None`` where that is not known

    A page costs a request; each repeat after a fault costs one more. How many pages a scan takes is
    known once this client has read its like, of whatever range; split, it takes more:

    >>> scan.split(3) and client.plan(scan).pages is None
    True
    >>> _ = client.data(site="S1", start="2026-11-02T00:00Z", end="2026-11-03T00:00Z",
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
    pages: int | None
    allowance: Allowance = field(hash=False)
    reserve: int
    now: datetime
    kind: Literal["sync", "scan"]

    @property
    def fits(self) -> bool | None:
        """Whether what is left of the allowance is enough; ``None`` where that is not known."""
        if not self.tasks or self.pages == 0:
            return True
        if self.allowance.left is None:
            return None
        if self._least > self.allowance.left:
            return False
        return None if self.pages is None else True

    @property
    def _least(self) -> int:
        """What is expected at least: a chain that nothing is known of takes one page or more."""
        return sum(1 if task.pages is None else task.pages for task in self.tasks)

    def raise_for_allowance(self) -> None:
        """Raise :class:`AllowanceExhausted` where it is known that the allowance is not enough."""
        if self.fits is not False:
            return
        least = "" if self.pages is not None else " or more"
        raise AllowanceExhausted(
            f"{_many(self._least, 'page')}{least} are expected, and the daily allowance has "
            f"{_many(self.allowance.left or 0, 'request')} left",
            retry_at=self.allowance.resets_at,
            retryable=True,
            hint="A sync may begin all the same: it stops at a page, and the next one goes on. A "
            "scan takes fewer pages with a larger page_size= or interval=, with a shorter range, "
            "or unsplit.",
        )

    def __repr__(self) -> str:
        """Tell the most important in one line."""
        if not self.tasks:
            return "<Plan nothing to read>"
        return f"<Plan {_many(len(self.tasks), 'chain')}, {_expected(self)}>"

    def __str__(self) -> str:
        """Print a line for each chain, and what it would cost."""
        if not self.tasks:
            return f"Nothing to read at {_time(self.now)} UTC ({_allowance(self.allowance)})"
        fits = {True: "enough", False: "not enough", None: "whether that is enough is not known"}
        lines = [
            f"To read at {_time(self.now)} UTC: {_expected(self)}",
            f"  {_allowance(self.allowance)}: {fits[self.fits]}",
        ]
        if self.reserve:
            lines.append(f"  {_many(self.reserve, 'page')} held back for what becomes due today")
        told = str if self.kind == "sync" else self._scan
        lines += [f"  {told(task)}" for task in self.tasks[:12]]
        lines += [f"  … and {len(self.tasks) - 12} more"] if len(self.tasks) > 12 else []
        return "\n".join(lines)

    def _scan(self, task: Task) -> str:
        known = "not known yet" if task.pages is None else _many(task.pages, "page")
        pages = f": {known}" if len(self.tasks) > 1 else ""
        seen = f", as the feed {task.feed} has shown" if task.feed else ""
        return f"{_range(task.start, task.end)}{pages}{seen}"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return html_sync.plan(self)


def _expected(plan: Plan) -> str:
    if plan.pages is not None:
        return f"{_many(plan.pages, 'page')} expected"
    known = sum(task.pages or 0 for task in plan.tasks)
    if known:
        return f"{_many(known, 'page')} expected and more, of what has not been seen yet"
    return "how many pages is not known yet: none of the kind has been seen"


def _points(counted: SyncReport | FeedReport) -> str:
    said = f"{counted.inserted:,} inserted, {counted.revised:,} revised, "
    flagged = f", {counted.flagged:,} flagged" if counted.flagged else ""
    return f"{said}{counted.unchanged:,} unchanged{flagged}"


def _reach(one: FeedReport) -> str:
    if one.read_through is None:
        return "nothing read to its end yet"
    settled = "nothing settled yet"
    if one.settled_through is not None:
        settled = f"settled through {_time(one.settled_through)}"
    return f"{settled}, read through {_time(one.read_through)}"


def _left(todo: tuple[Task, ...]) -> str:
    if not todo:
        return "something is left"
    if any(task.pages is None for task in todo):
        return f"{_many(len(todo), 'chain')} left"
    return f"{_many(sum(task.pages or 0 for task in todo), 'page')} left"


def _allowance(shown: Allowance) -> str:
    if shown.left is None:
        return "no daily allowance is set"
    return f"{shown.left:,} left until {_time(shown.resets_at)} UTC"


def _plain(one: FeedReport | Task) -> dict[str, Any]:
    return {
        name: _iso(value) if isinstance(value, datetime) else value
        for name, value in one._asdict().items()
    }


def _plain_allowance(shown: Allowance) -> dict[str, Any]:
    resets_at = _iso(shown.resets_at)
    return {"used": shown.used, "limit": shown.limit, "left": shown.left, "resets_at": resets_at}


def _earliest(times: list[datetime | None]) -> datetime | None:
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def _range(start: datetime, end: datetime) -> str:
    return f"{_time(start)} to {_time(end)}"


def _time(at: datetime) -> str:
    text = at.strftime("%Y-%m-%d %H:%M:%S")
    return text.removesuffix(":00")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
