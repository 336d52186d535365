"""The report of a sync."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from siteline._counts import counted
from siteline._escape import escaped
from siteline._handles import WithHtml
from siteline._records.allowance import Allowance
from siteline._records.record import FrozenRecord
from siteline._times import reached, to_second
from siteline.errors import AllowanceExhausted, PageLimitReached, UnreadRange

WHY = {
    "resume": "resumed",
    "reread": "requested",
    "recent": "recent",
    "settle": "due",
    "backfill": "never read",
    "audit": "measures lateness",
}


@dataclass(frozen=True)
class Task(FrozenRecord):
    """One range that a sync reads, or has left to read, as one chain.

    >>> task = client.plan(feed, siteline.Store("plant.siteline")).tasks[0]
    >>> task.feed, task.why, task.pages
    ('line-2', 'recent', None)
    """

    feed: str
    """The feed's name. For a scan: the feed that ``pages`` was estimated from, or ``""``."""
    why: Literal["resume", "reread", "recent", "settle", "audit", "backfill"]
    """Why the range is read, in order of urgency.

    - ``"resume"``: its chain has begun and not ended
    - ``"reread"``: ``reread=`` contains it
    - ``"recent"``: it is newer than everything read so far
    - ``"settle"``: its lateness has passed
    - ``"audit"``: it is read again to measure when its points arrived
    - ``"backfill"``: it was never read
    """
    start: datetime
    """The start of the range, inclusive, in UTC."""
    end: datetime
    """The end of the range, exclusive."""
    pages: int | None
    """Expected pages; ``None`` without an estimate, 0 for a scan that was read."""

    def __str__(self) -> str:
        """Print one line."""
        pages = "" if self.pages is None else f", {counted(self.pages, 'page')}"
        span = range_text(self.start, self.end)
        return f"{escaped(self.feed)}: {span}, {WHY[self.why]}{pages}"


@dataclass(frozen=True)
class SkippedRange(FrozenRecord):
    """A range that no sync reads for a day.

    The service did not end its chain, or a target cannot store its values.
    ``sync(..., reread=(start, end))`` reads it earlier. Parts that were never read stay unread
    (:class:`UnreadRange`). Points of an earlier chain stay.
    """

    start: datetime
    """The start, inclusive, in UTC."""
    end: datetime
    """The end, exclusive."""
    until: datetime
    """When the next sync reads it again."""
    error: str
    """The class of the error that ended its chain, such as ``"EndlessChain"``."""
    pages: int
    """The pages of that chain."""

    def __str__(self) -> str:
        """Print one line."""
        pages = counted(self.pages, "page")
        return (
            f"{range_text(self.start, self.end)} skipped until {to_second(self.until)} UTC "
            f"({escaped(self.error)}, {pages})"
        )


@dataclass(frozen=True)
class FeedReport(FrozenRecord):
    """The report of a sync for one feed.

    :meth:`Store.changes` and :meth:`Store.read` accept it.

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
    """New points."""
    revised: int
    """Points with other values than before, or withdrawn before."""
    unchanged: int
    """Points with the same values as before."""
    withdrawn: int
    """Stored points that a complete read of their range no longer contained."""
    sequence: int
    """The number of the newest page."""
    settled_through: datetime | None
    """Everything from the feed's start up to this time is settled."""
    read_through: datetime | None
    """Everything from the feed's start up to this time was read."""
    newest: datetime | None
    """The newest instant that was read, perhaps after unread ranges."""
    late: int
    """Points that, by audits, arrived or changed after the lateness. They were read again."""
    skipped: tuple[SkippedRange, ...]
    """Ranges that no sync reads for a day."""

    _store: str | None = field(default=None, repr=False)
    """The id of the store."""


@dataclass(frozen=True, repr=False)
class SyncReport(WithHtml, FrozenRecord):
    """The report of :meth:`Client.sync`. It prints as a line for each feed.

    ``report["line-2"]`` is the :class:`FeedReport` of a feed. Counts are sums over all feeds.
    :meth:`Store.changes` and :meth:`Store.read` accept it.

    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> report.complete, report.withdrawn, report["line-2"].sequence > 0
    (True, 0, True)
    """

    _html = "sync_html.report"

    now: datetime
    """The time that the sync was planned for."""
    complete: bool
    """Whether everything planned was read."""
    ended_by: Literal["allowance", "max_pages", "skipped"] | None
    """Why something is left to read; ``None`` if the sync is complete.

    - ``"allowance"``: the allowance is used up, or the rest is reserved
    - ``"max_pages"``: the next sync can continue at once
    - ``"skipped"``: only skipped ranges are left
    """
    resumes_at: datetime | None
    """When to sync again; ``None`` for at once, or if nothing is left."""
    requests: int
    """Requests made, repeats included."""
    feeds: tuple[FeedReport, ...]
    """The report of each feed, in the order given."""
    tasks: tuple[Task, ...]
    """The remaining tasks."""
    allowance: Allowance
    """The allowance at the end."""

    @property
    def pages(self) -> int:
        """Pages read."""
        return sum(one.pages for one in self.feeds)

    @property
    def inserted(self) -> int:
        """New points."""
        return sum(one.inserted for one in self.feeds)

    @property
    def revised(self) -> int:
        """Points with other values than before, or withdrawn before."""
        return sum(one.revised for one in self.feeds)

    @property
    def unchanged(self) -> int:
        """Points with the same values as before."""
        return sum(one.unchanged for one in self.feeds)

    @property
    def withdrawn(self) -> int:
        """Stored points that a complete read of their range no longer contained."""
        return sum(one.withdrawn for one in self.feeds)

    @property
    def settled_through(self) -> datetime | None:
        """All feeds are settled up to this time; ``None`` if one is not."""
        return _earliest([one.settled_through for one in self.feeds])

    @property
    def read_through(self) -> datetime | None:
        """All feeds were read up to this time; ``None`` if one was not."""
        return _earliest([one.read_through for one in self.feeds])

    def __getitem__(self, feed: str) -> FeedReport:
        """Return the report of one feed."""
        for one in self.feeds:
            if one.name == feed:
                return one
        raise KeyError(
            f"{feed!r}; feeds of this report: {', '.join(one.name for one in self.feeds)}"
        )

    def raise_for_incomplete(self) -> None:
        """Raise an error if something is left to read.

        Raises:
            AllowanceExhausted: The allowance ended the sync. ``retry_at`` is when to sync again.
            PageLimitReached: ``max_pages=`` ended the sync.
            UnreadRange: Only skipped ranges are left.
        """
        if self.complete:
            return
        if self.ended_by == "max_pages":
            raise PageLimitReached(
                f"The sync stopped after the {self.pages} pages that max_pages= allows; "
                f"{_left(self.tasks)}.",
                retryable=True,
                hint="Call sync() again: it continues where it stopped.",
            )
        named = [(feed.name, one) for feed in self.feeds for one in feed.skipped]
        ranges = [one for _, one in named]
        if ranges and self.resumes_at == min(one.until for one in ranges):
            shown = "; ".join(f"{name}: {one}" for name, one in named[:3])
            shown += "; …" if len(ranges) > 3 else ""
            raise UnreadRange(
                f"the sync is not complete: {shown}",
                retry_at=self.resumes_at,
                spans=tuple((one.start, one.end) for one in ranges),
                hint="Their chains were not read to their end. "
                "sync(..., reread=(start, end)) reads them earlier.",
            )
        raise AllowanceExhausted(
            f"the sync is not complete: {_left(self.tasks)}; the allowance is used up or reserved "
            f"for windows that become due ({allowance_text(self.allowance)})",
            retry_at=self.resumes_at,
            retryable=True,
            hint="Call sync() again after retry_at: it continues where it stopped.",
        )

    def __repr__(self) -> str:
        """Summarize in one line."""
        state = "complete" if self.complete else f"incomplete, {_left(self.tasks)}"
        return f"<SyncReport {state}: {counted(self.pages, 'page')}, {_points(self)}>"

    def __str__(self) -> str:
        """Print a line for each feed, and the remaining tasks."""
        state = "complete" if self.complete else "incomplete"
        lines = [
            f"Sync {state}, {to_second(self.now)} UTC: {counted(self.pages, 'page')}, "
            f"{counted(self.requests, 'request')} ({allowance_text(self.allowance)})"
        ]
        width = max((len(escaped(one.name)) for one in self.feeds), default=0)
        for one in self.feeds:
            name = escaped(one.name)
            lines += [f"  {name:<{width}}  {_points(one)}", f"  {'':<{width}}  {_reach(one)}"]
            lines += [f"  {'':<{width}}  {range}" for range in one.skipped[:3]]
        if not self.complete:
            when = "" if self.resumes_at is None else f", from {to_second(self.resumes_at)} UTC on"
            if self.ended_by == "max_pages":
                when = ", as max_pages= ended the sync"
            elif self.ended_by == "allowance":
                when = f", as the daily allowance ended the sync{when}"
            lines.append(f"  still to do{when}: {_left(self.tasks)}")
            lines += [f"    {task}" for task in self.tasks[:5]]
            lines += [f"    … and {len(self.tasks) - 5} more"] if len(self.tasks) > 5 else []
        return "\n".join(lines)


def allowance_text(shown: Allowance) -> str:
    """Write what is left of the allowance."""
    if shown.left is None:
        return "no daily allowance is set"
    return f"{shown.left:,} left until {to_second(shown.resets_at)} UTC"


def range_text(start: datetime, end: datetime) -> str:
    """Write a range."""
    return f"{to_second(start)} to {to_second(end)}"


def _points(counts: SyncReport | FeedReport) -> str:
    withdrawn = f", {counts.withdrawn:,} withdrawn" if counts.withdrawn else ""
    return (
        f"{counts.inserted:,} inserted, {counts.revised:,} revised, "
        f"{counts.unchanged:,} unchanged{withdrawn}"
    )


def _reach(one: FeedReport) -> str:
    if one.newest is None:
        return "nothing was read completely yet"
    return reached(one.settled_through, one.read_through, one.newest, to_second)


def _left(tasks: tuple[Task, ...]) -> str:
    if not tasks:
        return "something is left"
    if any(task.pages is None for task in tasks):
        return f"{counted(len(tasks), 'chain')} left"
    return f"{counted(sum(task.pages or 0 for task in tasks), 'page')} left"


def _earliest(times: list[datetime | None]) -> datetime | None:
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None
