"""Parts of the public classes over handles of ``siteline._core``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from siteline._patching import Replaceable

if TYPE_CHECKING:
    from typing import NoReturn, Self

__all__: list[str] = []


class OfThisProcess(Replaceable):
    """An object with a handle of this process. It cannot be pickled."""

    __slots__ = ()

    _instead: ClassVar[str]
    """The end of the error text: the alternative."""

    def __repr__(self) -> str:
        """Name the class."""
        return f"<{type(self).__name__}>"

    def __copy__(self) -> Self:
        """Return the object itself."""
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        """Return the object itself."""
        return self

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise TypeError(f"A {type(self).__name__} cannot be pickled: {self._instead}.")
