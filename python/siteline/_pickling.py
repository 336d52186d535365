"""What cannot be pickled or copied: ``pickle`` and ``copy`` of these say what to do instead."""

from __future__ import annotations

import copyreg

from siteline._siteline import Clock, Page, PageIterator, RecordIterator, Sandbox, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_FRAMES = "pickle to_pandas() or to_arrow() of it, which are made for it"
_BOOKMARK = "pickle the scan, and page.bookmark for the place in it"
_INSTEAD: dict[type[Any], str] = {
    Table: _FRAMES,
    Page: _FRAMES,
    PageIterator: _BOOKMARK,
    RecordIterator: _BOOKMARK,
    Sandbox: "its base_url is enough for a client elsewhere, with a key that was enrolled here",
    Clock: "it is a clock of this process",
}


def register_refusals() -> None:
    """Make ``pickle`` and ``copy`` raise ``TypeError`` for these, with the way to do it."""
    for cls, instead in _INSTEAD.items():
        copyreg.pickle(cls, _refusal(cls, instead))


def _refusal(cls: type[Any], instead: str) -> Callable[[Any], tuple[Any, ...]]:
    def refuse(_thing: object) -> NoReturn:
        raise TypeError(f"A {cls.__name__} is neither pickled nor copied: {instead}.")

    return refuse
