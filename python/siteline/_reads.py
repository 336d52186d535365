"""The loops of ``collect()`` and ``gather()`` that call ``progress=`` between two pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from siteline._records.progress import Progress
from siteline.gathered import Gathered
from siteline.progress import finish, reporters

if TYPE_CHECKING:
    from collections.abc import Callable

    from siteline._core import Bookmark, Client, Scan
    from siteline.errors import SitelineError
    from siteline.table import Table


def collect(scan: Scan, callback: Callable[[Progress], object]) -> Table:
    """Read all pages of a scan. An exception of the callback leaves the read where it is."""
    collecting = scan._collecting()
    try:
        while isinstance(step := scan._step(collecting).wait(), Progress):
            callback(step)
        return step
    finally:
        scan._end(collecting)
        finish(callback)


def gather(client: Client, scans: Any, concurrency: Any) -> Gathered:
    """Read several scans to their ends."""
    with Reads(client, scans, concurrency) as reads:
        while (page := reads.core._step(reads.reported).wait()) is not None:
            reads.report(*page)
        return reads.gathered()


class Reads:
    """Several scans that are being read, and the callbacks that their pages are reported to."""

    __slots__ = ("_callbacks", "core", "reported")

    def __init__(self, client: Client, scans: Any, concurrency: Any) -> None:
        """Begin; nothing is sent before the first step of ``core``."""
        self.core = client.gathering(scans, concurrency)
        self._callbacks = reporters(self.core._wanted())
        self.reported = [callback is not None for callback in self._callbacks]

    def __enter__(self) -> Self:
        """Enter; leaving drops the open requests, and closes the bars."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Drop the open requests, and close the bars."""
        try:
            self.core._end()
        finally:
            for callback in self._callbacks:
                finish(callback)

    def report(self, index: int, progress: Progress) -> None:
        """Call the callback of one scan, where it has one."""
        callback = self._callbacks[index]
        if callback is not None:
            callback(progress)

    def gathered(self) -> Gathered:
        """Return the tables, after the last step."""
        return Gathered(tuple(self.core._tables()))


def describe(
    error: SitelineError,
    index: int,
    scans: list[tuple[Bookmark | None, Table | None, Scan]],
) -> None:
    """Store in the error of one scan of a gather how far each of them has come."""
    error.bookmarks, error.partials, error.scans = map(list, zip(*scans, strict=True))
    error.bookmark, error.partial, _ = scans[index]
    error.scan_index = index
