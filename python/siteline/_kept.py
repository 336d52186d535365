"""The sentence of an error about the pages that its read kept, and about how to continue."""

from __future__ import annotations

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
    from siteline.scan import ScanBase

__all__: list[str] = []


def _pages(pages: int, points: int) -> str:
    return f"{counted(pages, 'page')} ({counted(points, 'point')})"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def tell(error: BaseException, text: str) -> None:
    """Add the sentence: to the text of an error of siteline, otherwise as a note."""
    if isinstance(error, SitelineError):
        error.kept = text
    elif text not in getattr(error, "__notes__", ()):
        error.add_note(text)


def tell_of_read(error: BaseException, scan: ScanBase, read: tuple[int, int]) -> None:
    """Say how many pages the scan kept. ``read`` are the pages and points of ``error.partial``."""
    pages, points = scan._handle.kept_counts()
    again = f"{scan._waits}error.scan.collect()"
    lost = read[0] - pages
    kept = f"{_pages(pages, points)} {_be(pages)} {'kept' if scan._store is None else 'stored'}"
    if pages == 0 and lost <= 0:
        if isinstance(error, ConfigError):
            return
        text = f"No page is kept: {again} begins again."
    elif isinstance(error, ClosedError):
        text = f"{kept}: a scan of another client continues with resume()."
    elif lost <= 0:
        text = f"{kept}: {again} continues after {'it' if pages == 1 else 'them'}."
    elif pages == 0:
        them = "it" if lost == 1 else "them"
        text = f"{_pages(*read)} {_be(lost)} in error.partial, but {again} starts again and pays "
        text += f"for {them} again."
    else:
        text = f"{kept}, but {again} pays again for {counted(lost, 'page')} of the failed chain."
    tell(error, text)


def tell_of_iterator(error: BaseException, what: str, name: str) -> None:
    """Say what an iterator of pages or points returned before the error."""
    if isinstance(error, CursorRejected | CursorLoop | EndlessChain):
        way = f"a new scan.{name}() starts again and pays for all pages again"
    else:
        way = "the same iterator continues after that"
    tell(error, f"{what} returned before the error: {way}.")


def tell_of_sync(error: BaseException, progress: Any) -> None:
    """Say what a sync stored before the error."""
    if progress.pages:
        text = f"{_pages(progress.pages, progress.points)} {_be(progress.pages)} stored"
        tell(
            error,
            f"{text}: the next sync continues after {'it' if progress.pages == 1 else 'them'}.",
        )
    elif not isinstance(error, ConfigError):
        tell(error, "No page is stored: the next sync begins again.")
