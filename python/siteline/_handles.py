"""Parts of the public classes over handles of ``siteline._core``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from siteline._keywords import explain, renamed

if TYPE_CHECKING:
    from typing import NoReturn, Protocol, Self

    class _Closes(Protocol):
        def close(self) -> None: ...


class Itself:
    """An object that cannot change, or has a handle: a copy is the object itself.

    Tests may replace its methods, for example with ``mock.patch.object``.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        explain(cls)

    @classmethod
    def _over(cls, handle: object) -> Self:
        """Wrap a handle of the core, without the constructor."""
        made = cls.__new__(cls)
        vars(made)["_handle"] = handle
        return made

    # A type checker that sees these methods accepts every attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise renamed(self, name)

        def __setattr__(self, name: str, value: object) -> None:
            is_special = name.startswith("__")
            if is_special or not name.startswith("_"):
                member = getattr(type(self), name, None)
                if member is None:
                    raise renamed(self, name)
                # Python looks up names such as __enter__ only in the class.
                if is_special or not callable(member):
                    kind = type(self).__name__
                    raise AttributeError(f"attribute {name!r} of {kind!r} objects is read-only")
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        try:
            return self._text()
        except AttributeError:
            # A traceback may show an object after its constructor failed.
            return object.__repr__(self)

    def _text(self) -> str:
        return f"<{type(self).__name__}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class WithHtml:
    """An object that notebooks show as HTML."""

    _html: ClassVar[str]
    """The module and the function that make it."""

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        module, _, name = self._html.partition(".")
        return str(getattr(import_module(f"siteline._display.{module}"), name)(self))


class Closing:
    """An object that the end of a ``with`` block closes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self: _Closes, *exception: object) -> None:
        self.close()


class AsyncClosing:
    """An object that the end of an ``async with`` block closes."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self: _Closes, *exception: object) -> None:
        self.close()


class OfThisProcess(Itself):
    """An object with a handle of this process. It cannot be pickled."""

    _instead: ClassVar[str]
    """The alternative, as the end of the error text."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"A {type(self).__name__} cannot be pickled: {self._instead}.")
