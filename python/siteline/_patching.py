"""A base class that lets tests replace methods, for example with ``mock.patch.object``."""

from __future__ import annotations

from types import MemberDescriptorType
from typing import TYPE_CHECKING, NoReturn

from siteline._keywords import explain, renamed

__all__ = ["Replaceable"]

if TYPE_CHECKING:
    # A type checker that sees __setattr__ accepts every attribute.
    class Replaceable:
        """An object with replaceable methods."""

else:

    class Replaceable:
        """An object with replaceable methods. It rejects all other assignments, such as typos."""

        __slots__ = ("__dict__", "__weakref__")

        def __init_subclass__(cls) -> None:
            """Explain wrong arguments of the methods."""
            super().__init_subclass__()
            explain(cls)

        def __getattr__(self, name: str) -> NoReturn:
            raise renamed(self, name)

        def __setattr__(self, name: str, value: object) -> None:
            member = getattr(type(self), name, None)
            if member is None:
                raise renamed(self, name)
            is_slot = isinstance(member, MemberDescriptorType)
            # Python looks up names such as __enter__ only in the class.
            if not is_slot and (not callable(member) or name.startswith("__")):
                kind = type(self).__name__
                raise AttributeError(f"attribute {name!r} of {kind!r} objects is read-only")
            object.__setattr__(self, name, value)
