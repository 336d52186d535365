"""Errors for types that cannot be pickled or copied; they say what to do instead."""

from __future__ import annotations

import copyreg

from siteline._core import (
    RecordIterator,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_INSTEAD: dict[type[Any], str] = {
    RecordIterator: "pickle the scan, and page.bookmark for the position in it",
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
