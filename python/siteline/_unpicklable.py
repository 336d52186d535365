"""Errors for types that cannot be pickled or copied; they say what to do instead."""

from __future__ import annotations

import copyreg

from siteline._core import (
    PageIterator,
    RecordIterator,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_BOOKMARK = "pickle the scan, and page.bookmark for the position in it"
_INSTEAD: dict[type[Any], str] = {
    PageIterator: _BOOKMARK,
    RecordIterator: _BOOKMARK,
}


def register_refusals() -> None:
    """Make ``pickle`` and ``copy`` raise ``TypeError`` for these types."""
    for cls, instead in _INSTEAD.items():
        register_refusal(cls, instead)


def register_refusal(cls: type[Any], instead: str) -> None:
    """Make them raise it for this type; ``instead`` says what to do."""

    def refuse(_object: object) -> NoReturn:
        raise TypeError(f"A {cls.__name__} cannot be pickled or copied: {instead}.")

    copyreg.pickle(cls, refuse)
