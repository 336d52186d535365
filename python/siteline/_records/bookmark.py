"""The position from which a read continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._core import _bookmark_pages
from siteline._counts import counted
from siteline._handles import Itself

if TYPE_CHECKING:
    from collections.abc import Callable


class Bookmark(Itself):
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

    # No dataclass: asdict() would return the cursor.
    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        """Wrap the bytes of a valid bookmark."""
        self._data = data

    @property
    def pages(self) -> int:
        """The number of pages before it."""
        return _bookmark_pages(self._data)

    @classmethod
    def from_bytes(cls, data: bytes) -> Bookmark:
        """Read a bookmark from the ``data`` that :meth:`to_bytes` wrote.

        Raises:
            BookmarkError: The bytes were changed.
        """
        _bookmark_pages(data)
        return cls(data)

    def to_bytes(self) -> bytes:
        """Return the bytes, with a checksum. Keep them as secret as a password."""
        return self._data

    __bytes__ = to_bytes

    def __eq__(self, other: object) -> bool:
        """Compare the bytes."""
        return self._data == other._data if isinstance(other, Bookmark) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the bytes."""
        return hash(self._data)

    def _text(self) -> str:
        return f"<Bookmark after {counted(self.pages, 'page')}>"

    def __reduce__(self) -> tuple[Callable[[bytes], Bookmark], tuple[bytes]]:
        """Pickle the bytes."""
        return (type(self).from_bytes, (self._data,))


Bookmark.__module__ = "siteline.types"
