"""Objects whose methods a test may replace, as ``mock.patch.object`` does."""

from __future__ import annotations

from types import MemberDescriptorType
from typing import TYPE_CHECKING

__all__ = ["Replaceable"]

if TYPE_CHECKING:
    # A type checker would accept any attribute if it saw __setattr__.
    class Replaceable:
        """Methods can be replaced in one object."""

else:

    class Replaceable:
        """Methods can be replaced in one object. Nothing else can be set: no misspelled option."""

        __slots__ = ("__dict__", "__weakref__")

        def __setattr__(self, name: str, value: object) -> None:
            member, kind = getattr(type(self), name, None), type(self).__name__
            if member is None:
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            is_slot = isinstance(member, MemberDescriptorType)
            # Python looks up names such as __enter__ in the class only.
            if not is_slot and (not callable(member) or name.startswith("__")):
                raise AttributeError(f"attribute {name!r} of {kind!r} objects is read-only")
            object.__setattr__(self, name, value)
