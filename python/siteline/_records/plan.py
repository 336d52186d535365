"""The plan of a sync, or of a read."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from siteline._counts import counted
from siteline._escape import escaped
from siteline._handles import WithHtml
from siteline._records.allowance import Allowance
from siteline._records.record import FrozenRecord
from siteline._records.sync import Task, allowance_text, range_text
from siteline._times import to_second
from siteline.errors import AllowanceExhausted


@dataclass(frozen=True, repr=False)
class Plan(WithHtml, FrozenRecord):
    """The expected cost of the next sync, or of a read: the result of :meth:`Client.plan`.

    A page costs one request, and each retry one more. The pages of a scan are known once this
    client has read the same query over any range. A split scan takes more pages:

    >>> scan.split(3) and client.plan(scan).pages is None
    True
    >>> _ = client.scan(site="S1", start="2026-11-02T00:00Z", end="2026-11-03T00:00Z",
    ...                 interval="1h", page_size=30).collect()
    >>> client.plan(scan).pages, client.plan(scan.split(6)).pages
    (3, 6)

    >>> store = siteline.Store("plant.siteline")
    >>> client.plan(feed, store).pages is None
    True
    >>> _ = client.sync(feed, store)
    >>> client.plan(feed, store)
    <Plan nothing to read>
    """

    _html = "sync_html.plan"

    tasks: tuple[Task, ...]
    """A task for each chain, in the order of reading."""
    pages: int | None
    """The expected pages of all tasks; ``None`` if a task has no estimate."""
    allowance: Allowance
    """The current allowance."""
    reserve: int
    """Pages reserved for windows that become due before the allowance is reset."""
    skipped: int
    """The number of ranges that a sync skips: :class:`SkippedRange`."""
    now: datetime
    """The time of the plan."""
    kind: Literal["sync", "scan"]
    """``"sync"`` or ``"scan"``."""

    @property
    def fits(self) -> bool | None:
        """Whether the allowance is enough; ``None`` if that is unknown."""
        if not self.tasks or self.pages == 0:
            return True
        if self.allowance.left is None:
            return None
        if self._least > self.allowance.left:
            return False
        return None if self.pages is None else True

    @property
    def _least(self) -> int:
        """A chain of unknown length takes at least one page."""
        return sum(1 if task.pages is None else task.pages for task in self.tasks)

    def raise_for_allowance(self) -> None:
        """Raise :class:`AllowanceExhausted` if the allowance is known to be too small."""
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
            return f"<Plan nothing to read{self._skipped_text}>"
        return f"<Plan {counted(len(self.tasks), 'chain')}, {_expected(self)}{self._skipped_text}>"

    @property
    def _skipped_text(self) -> str:
        return f", {counted(self.skipped, 'range')} skipped" if self.skipped else ""

    def __str__(self) -> str:
        """Print a line for each chain, and its expected cost."""
        allowance = allowance_text(self.allowance)
        if not self.tasks:
            when = f"{to_second(self.now)} UTC{self._skipped_text}"
            return f"Nothing to read at {when} ({allowance})"
        fits = {True: "enough", False: "not enough", None: "unknown whether that is enough"}
        lines = [
            f"To read at {to_second(self.now)} UTC: {_expected(self)}{self._skipped_text}",
            f"  {allowance}: {fits[self.fits]}",
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
        return f"{range_text(task.start, task.end)}{pages}{source}"


def _expected(plan: Plan) -> str:
    if plan.pages is not None:
        return f"{counted(plan.pages, 'page')} expected"
    known = sum(task.pages or 0 for task in plan.tasks)
    if known:
        return f"{counted(known, 'page')} expected, and an unknown number more"
    return "number of pages unknown"
