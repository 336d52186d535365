"""The sentence of an error about the pages that its read kept, and about how to continue."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from siteline._counts import counted
from siteline.errors import (
    ClosedError,
    ConfigError,
    CursorLoop,
    CursorRejected,
    EndlessChain,
    SitelineError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from siteline.scan import ScanBase


def pages_and_points(pages: int, points: int, verb: str = "") -> str:
    """Return the counts, with the form of *be* that fits the pages."""
    be = {"are": "is", "were": "was"}.get(verb, verb) if pages == 1 else verb
    return f"{counted(pages, 'page')} ({counted(points, 'point')}) {be}".rstrip()


def note(error: BaseException, kept: str, step: str) -> None:
    """Add the sentence: to the text of an error of siteline, otherwise as a note.

    A pickle has no ``step``, which needs the scan or the iterator.
    """
    if isinstance(error, SitelineError):
        error.kept = f"{kept}{step}."
        error._pickled_kept = f"{kept}."
    elif f"{kept}{step}." not in getattr(error, "__notes__", ()):
        error.add_note(f"{kept}{step}.")


def note_read(error: BaseException, scan: ScanBase, read: tuple[int, int]) -> None:
    """Add the number of pages that the scan kept; ``read`` counts ``error.partial``."""
    pages, points = scan._handle.kept_counts()
    again = f"{scan._waits}error.scan.collect()"
    lost = read[0] - pages
    kept = f"{pages_and_points(pages, points, 'are')} {'kept' if scan._store is None else 'stored'}"
    if pages == 0 and lost <= 0:
        if isinstance(error, ConfigError):
            return
        # Another attempt cannot help after an error that is not retryable.
        step = f": {again} begins again" if getattr(error, "retryable", True) else ""
        kept = "No page is kept"
    elif isinstance(error, ClosedError):
        step = ": a scan of another client continues with resume()"
    elif lost <= 0:
        step = f": {again} continues after {'it' if pages == 1 else 'them'}"
    elif pages == 0:
        them = "it" if lost == 1 else "them"
        kept = pages_and_points(*read, "were") + " read"
        step = f" (error.partial), but {again} starts again and pays for {them} again"
    else:
        step = f", but {again} pays again for {counted(lost, 'page')} of the failed chain"
    note(error, kept, step)


@contextmanager
def noted(scan: ScanBase | None, name: str, returned: Callable[[], str]) -> Iterator[None]:
    """Add the returned points to an error of an iterator, and set its attribute ``scan``."""
    try:
        yield
    except BaseException as error:
        if scan is not None:
            error.scan = scan  # type: ignore[attr-defined]
            step = ": the same iterator continues after that"
            if isinstance(error, CursorRejected | CursorLoop | EndlessChain):
                step = f": a new scan.{name}() starts again and pays for all pages again"
            note(error, f"{returned()} returned before the error", step)
        raise


def note_sync(error: BaseException, progress: Any, *, is_handed: bool = False) -> None:
    """Add the number of pages that a sync stored, or its iterator returned, before the error."""
    be, what, next_ = "are", "stored", "the next sync"
    if is_handed:
        be, what = "were", "returned before the error"
        next_ = "a sync that begins with the states"
    if progress.pages:
        kept = pages_and_points(progress.pages, progress.points, be)
        them = "it" if progress.pages == 1 else "them"
        note(error, f"{kept} {what}: {next_} continues after {them}", "")
    elif not isinstance(error, ConfigError):
        note(error, f"No page is {what.split()[0]}: the next sync begins again", "")
