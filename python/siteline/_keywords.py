"""Errors for wrong keywords; they name the right one."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["explained"]

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


def explained(**others: str) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]:
    """Makes an unknown keyword of a constructor a ``TypeError`` that names the right keyword.

    Args:
        others: Names that users may try, and what to write instead. A name that resembles a
            keyword needs no entry.
    """

    def decorate(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
        code = function.__code__
        known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        place = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def call(*arguments: _P.args, **keywords: _P.kwargs) -> _Result:
            try:
                if keywords.keys() - known:
                    raise TypeError(_refusal(place, keywords, known, others)) from None
                return function(*arguments, **keywords)
            finally:
                # A traceback with local variables must not show a key or a passphrase.
                del arguments, keywords

        return call

    return decorate


def _refusal(
    place: str, given: Iterable[str], known: tuple[str, ...], others: dict[str, str]
) -> str:
    from difflib import get_close_matches

    name = next(name for name in given if name not in known)
    near = get_close_matches(name, known, 1)
    instead = others.get(name) or (f"{near[0]}=" if near else None)
    advice = f"write {instead}" if instead else f"it has {', '.join(f'{one}=' for one in known)}"
    return f"{place}() has no argument {name!r}: {advice}."
