"""The output of ``progress=``: bars, lines, and calls of the user's callable.

The callback runs between two pages, on the thread or in the task that waits for them.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from siteline._awaiting import check_callback
from siteline._counts import counted
from siteline._escape import escaped
from siteline._records.requests import Progress
from siteline._records.store import StoreProgress
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__: list[str] = []


def checked(progress: Any) -> Any:
    """Return the argument ``progress=``, or ``None`` to report nothing."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        check_callback("progress", progress, "Progress", QueryError, other="True, or ")
    return progress


def reporter(progress: Callable[[Progress], object] | bool, title: str) -> Any:
    """Return the callback of one read; ``None`` without a terminal or notebook to show a bar."""
    if progress is not True:
        return progress
    if not _is_visible():
        return None
    try:
        with warnings.catch_warnings():
            # Without ipywidgets tqdm shows text, with a warning.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return _Line(title)
    return _Bar(tqdm(desc=escaped(title), unit=" points", unit_scale=True, leave=True))


def finish(callback: Any) -> None:
    """Close a bar of siteline, which stays visible; nothing for a user's callable."""
    if isinstance(callback, (_Bar, _Line)):
        callback.close()


@contextmanager
def of_long_work(title: str, progress: Any) -> Iterator[Any]:
    """Yield the function that the core calls with the progress of long work, or ``None``."""
    callback = _Line(title) if (progress := checked(progress)) is True else progress
    if callback is None or (progress is True and not _is_visible()):
        yield None
        return
    try:
        yield lambda done, total, finished: callback(StoreProgress(done, total, finished))
    finally:
        finish(callback)


class _Bar:
    """A tqdm bar. Its total is estimated from the fraction or the expected pages."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def __call__(self, progress: Progress) -> None:
        share = progress.fraction
        if not share and progress.pages_expected:
            share = progress.pages / progress.pages_expected
        self._bar.total = (round(progress.points / share) or None) if share else None
        self._bar.set_postfix_str(_pages(progress), refresh=False)
        self._bar.update(progress.points - self._bar.n)

    def close(self) -> None:
        self._bar.refresh()
        self._bar.close()


class _Line:
    """One line that is rewritten, for long work or a read without tqdm."""

    def __init__(self, title: str) -> None:
        self._title = escaped(title)
        self._shown = ""

    def __call__(self, progress: Progress | StoreProgress) -> None:
        if isinstance(progress, StoreProgress):
            text = f"{self._title}: {progress.fraction:4.0%}"
        else:
            share = f"{progress.fraction:.0%}, " if progress.fraction is not None else ""
            text = f"{self._title}: {share}{counted(progress.points, 'point')}, {_pages(progress)}"
        if text != self._shown:
            sys.stderr.write(f"\r{text:<{len(self._shown)}}")
            sys.stderr.flush()
            self._shown = text

    def close(self) -> None:
        if self._shown:
            self._shown = ""
            sys.stderr.write("\n")


def _pages(progress: Progress) -> str:
    left = ""
    if progress.allowance_left is not None:
        left = f", {progress.allowance_left:,} requests left today"
    if progress.pages_expected is None or progress.done:
        return f"{counted(progress.pages, 'page')}{left}"
    return f"{progress.pages:,} of about {counted(progress.pages_expected, 'page')}{left}"


def _in_notebook() -> bool:
    if (marimo := sys.modules.get("marimo")) is not None and marimo.running_in_notebook():
        return True
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # IPython in a terminal has no kernel.
    return getattr(shell, "kernel", None) is not None


def _is_visible() -> bool:
    try:
        return _in_notebook() or sys.stderr.isatty()
    except (AttributeError, ValueError):
        # stderr is None under pythonw, and may be closed.
        return False
