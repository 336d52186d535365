"""How far a read has come: what ``progress=`` of ``client.data(...)`` tells.

The core calls nothing of Python while it works. It is told between two pages, by the thread that
waits for them (in asyncio: by the task that does), with no lock held.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

__all__ = ["Progress"]


class Progress(NamedTuple):
    """How far a read has come, told after each page to the callable given as ``progress=``.

    Only what is known: nobody says beforehand how many pages there are (§4.3).

    - ``pages``, ``points``: read by this read so far; points that came twice count twice
    - ``requests``: made for them, retries included, and for the next page, where that is asked for
      already
    - ``allowance_left``: requests left today, ``None`` where no limit is known (§8)
    - ``newest``: the newest bucket timestamp so far, ``None`` before the first point
    - ``fraction``: how much of the range lies before it: while the pages come in order of time, and
      hold more than one series to see that by; else ``None``; 1 after the last page
    - ``done``: whether the last page has been read

    What the callable raises ends the read, and nothing is lost: the same ``collect()``, or the next
    ``next(pages)``, goes on with what was read.

    >>> told = []
    >>> frame = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
    ...                     interval="1h", page_size=50, progress=told.append).to_pandas()
    >>> [(now.pages, now.points, now.done) for now in told]
    [(1, 50, False), (2, 72, True)]
    """

    pages: int
    """Pages that this read has read."""
    points: int
    """Points on them, repeats included."""
    requests: int
    """Requests made for them and for what is asked for already, retries included."""
    allowance_left: int | None
    """Requests left today, or ``None`` where no limit is known."""
    newest: datetime | None
    """The newest bucket timestamp so far."""
    fraction: float | None
    """How much of the range lies behind, where that is known."""
    done: bool
    """Whether the last page has been read."""


def reporter(progress: Callable[[Progress], object] | bool, title: str) -> Any:
    """Whom to tell of one read: a callable, or ``None`` where nobody looks."""
    if progress is not True:
        return progress
    notebook = _in_notebook()
    if not notebook and not _is_terminal(sys.stderr):
        return None
    try:
        with warnings.catch_warnings():
            # Without ipywidgets it says so, and shows text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return _Line(title)
    return _Bar(tqdm(desc=title, unit=" points", unit_scale=True, leave=True))


def reporters(asked: list[tuple[Callable[[Progress], object] | bool | None, str]]) -> list[Any]:
    """Whom to tell of reads side by side: those that want a bar share one."""
    wanted = [title for progress, title in asked if progress is True]
    bar = reporter(True, f"{wanted[0]}, {_many(len(wanted), 'scan')}") if wanted else None
    shared = None if bar is None else _Shared(bar, len(wanted))
    return [
        shared and shared.one() if progress is True else progress or None for progress, _ in asked
    ]


def finish(told: Any) -> None:
    """Let a bar of ours stand as it is; a callable of the user's has heard ``done``."""
    if isinstance(told, (_Bar, _Line, _One)):
        told.close()


class _Bar:
    """A bar of tqdm's. Its length is known where the fraction is."""

    __slots__ = ("_bar",)

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def __call__(self, now: Progress) -> None:
        if now.fraction:
            self._bar.total = round(now.points / now.fraction)
        self._bar.set_postfix_str(_counted(now), refresh=False)
        self._bar.update(now.points - self._bar.n)

    def close(self) -> None:
        self._bar.refresh()
        self._bar.close()


class _Line:
    """Without tqdm: one line, written over itself."""

    __slots__ = ("_title", "_width")

    def __init__(self, title: str) -> None:
        self._title = title
        self._width = 0

    def __call__(self, now: Progress) -> None:
        share = f"{now.fraction:.0%}, " if now.fraction is not None else ""
        text = f"{self._title}: {share}{_many(now.points, 'point')}, {_counted(now)}"
        sys.stderr.write(f"\r{text:<{self._width}}")
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        if self._width:
            self._width = 0
            sys.stderr.write("\n")


class _Shared:
    """One bar for several reads."""

    __slots__ = ("_bar", "_count", "_told")

    def __init__(self, bar: Any, count: int) -> None:
        self._bar = bar
        self._count = count
        self._told: list[Progress | None] = []

    def one(self) -> _One:
        """Whom to tell of the next one of the reads."""
        self._told.append(None)
        return _One(self, len(self._told) - 1)

    def tell(self, number: int, now: Progress) -> None:
        self._told[number] = now
        begun = [one for one in self._told if one is not None]
        fractions = [one.fraction for one in begun if one.fraction is not None]
        times = [one.newest for one in begun if one.newest is not None]
        self._bar(
            Progress(
                pages=sum(one.pages for one in begun),
                points=sum(one.points for one in begun),
                requests=sum(one.requests for one in begun),
                allowance_left=now.allowance_left,
                newest=max(times, default=None),
                fraction=sum(fractions) / self._count if len(fractions) == len(begun) else None,
                done=len(begun) == self._count and all(one.done for one in begun),
            )
        )

    def close(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()


class _One:
    """One of the reads that share a bar."""

    __slots__ = ("_number", "_shared")

    def __init__(self, shared: _Shared, number: int) -> None:
        self._shared = shared
        self._number = number

    def __call__(self, now: Progress) -> None:
        self._shared.tell(self._number, now)

    def close(self) -> None:
        self._shared.close()


def _counted(now: Progress) -> str:
    left = "" if now.allowance_left is None else f", {now.allowance_left:,} requests left today"
    return f"{_many(now.pages, 'page')}{left}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # The shell of a terminal has no kernel.
    return getattr(shell, "kernel", None) is not None


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        # None under pythonw, or closed.
        return False
