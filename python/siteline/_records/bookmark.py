"""The position from which a read continues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from siteline._core import _bookmark_pages
from siteline._counts import counted
from siteline._keywords import explain

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Bookmark"]


@dataclass(frozen=True, repr=False, slots=True, weakref_slot=True)
@explain
class Bookmark:
    """The position from which a read continues. It contains the cursor: keep it like a password.

    It is valid only for its query, host and subject: ``scan.resume(bookmark)`` raises
    :class:`BookmarkError` for another scan, and for a changed bookmark. Its text does not contain
    the cursor. A pickle does.

    >>> bookmark = next(scan.pages()).bookmark
    >>> saved = bookmark.to_bytes()
    >>> rest = scan.resume(siteline.types.Bookmark.from_bytes(saved))
    >>> [len(page) for page in rest.pages()]
    [30, 12]
    """

    _data: bytes
    pages: int = field(compare=False)
    """The number of pages before it."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Bookmark:
        """Read a bookmark that :meth:`to_bytes` wrote.

        Args:
            data: The bytes.

        Raises:
            BookmarkError: The bytes were changed.
        """
        return cls(data, _bookmark_pages(data))

    def to_bytes(self) -> bytes:
        """Return the bytes, with a checksum. Keep them as secret as a password."""
        return self._data

    __bytes__ = to_bytes

    def __repr__(self) -> str:
        """Return the number of pages."""
        return f"<Bookmark after {counted(self.pages, 'page')}>"

    def __reduce__(self) -> tuple[Callable[[bytes], Bookmark], tuple[bytes]]:
        """Pickle the bytes."""
        return (type(self).from_bytes, (self._data,))


Bookmark.__module__ = "siteline.types"
