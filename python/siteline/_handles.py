"""Parts of the public classes over handles of ``siteline._core``."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ClassVar, ParamSpec, TypeVar

from siteline._patching import Replaceable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType
    from typing import NoReturn, Self

__all__: list[str] = []

P = ParamSpec("P")
R = TypeVar("R")


class OfThisProcess(Replaceable):
    """An object with a handle of this process. It cannot be pickled."""

    __slots__ = ()

    _instead: ClassVar[str]
    """The end of the error text: the alternative."""

    def __copy__(self) -> Self:
        """Return the object itself."""
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        """Return the object itself."""
        return self

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise TypeError(f"A {type(self).__name__} cannot be pickled: {self._instead}.")


def explains_keywords(
    moved: Mapping[str, str] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make the error for a wrong keyword name the right one.

    ``moved`` maps keywords that have another place now to the replacement.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        code: CodeType = function.__code__
        known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        name = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def explained(*args: P.args, **kwargs: P.kwargs) -> R:
            for given in kwargs:
                if given not in known:
                    raise TypeError(_explanation(name, given, known, moved or {}))
            return function(*args, **kwargs)

        return explained

    return decorate


def _explanation(
    function: str, given: str, known: tuple[str, ...], moved: Mapping[str, str]
) -> str:
    from difflib import get_close_matches

    text = f"{function}() got an unexpected keyword argument '{given}'."
    if given in moved:
        return f"{text} Write {moved[given]}."
    near = get_close_matches(given, known, 1, 0.7)
    return f"{text} Did you mean '{near[0]}'?" if near else text
