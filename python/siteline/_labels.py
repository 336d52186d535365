"""Labels: one text for each series, from the names and units that discovery has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from siteline.catalogue import Catalogue, joined
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteline._core import Frame
    from siteline._discovered import Ids
    from siteline.catalogue import SeriesInfo

__all__: list[str] = []

Labels: TypeAlias = (
    Literal["machine", "device", "name", "line", "site", False] | Mapping[Any, str] | Catalogue
)

# The first part of a label, from the shortest label to the longest.
_WORDS = ("name", "device", "machine", "line", "site")
_NAME = 4
_newest: dict[bytes, Catalogue] = {}


class Found(NamedTuple):
    """The labels of some series, and how they were made."""

    of_series: dict[Ids, str] | None
    """A label for each series; ``None`` without labels."""
    word: str | None
    """The first part of the labels: ``"machine"`` and so on, or ``"ids"``."""
    reason: str | None
    """Why there are no names."""


def checked(labels: Any) -> Labels:
    """Return the labels.

    Raises:
        QueryError: for anything else.
    """
    if labels is None or labels is False:
        return False
    is_known = isinstance(labels, (Mapping, Catalogue)) or labels in _WORDS
    if not is_known:
        words = ", ".join(f'"{word}"' for word in reversed(_WORDS))
        raise QueryError(
            f"labels={labels!r} is unknown.",
            hint=f"Give {words}, False, a mapping of tag ids or SeriesIds to text, or a catalogue.",
        )
    return labels  # type: ignore[no-any-return]


def needs_names(labels: Any) -> bool:
    """Whether these labels use the names that discovery has."""
    return labels not in (None, False) and not isinstance(labels, Catalogue)


def find(labels: Labels, series: Sequence[Ids], frame: Frame) -> Found:
    """Return the labels of all series of a frame."""
    if labels is False:
        return Found(None, None, None)
    names, reason = catalogue_of(labels, frame.discovery())
    word = labels if isinstance(labels, str) else "machine"
    given = labels if isinstance(labels, Mapping) else {}
    rows = {ids: None if names is None else names._row(ids) for ids in series}
    for place in range(_WORDS.index(word), len(_WORDS)):
        first = _NAME - place
        of_series = {ids: _label(ids, rows[ids], first, given) for ids in series}
        if len(set(of_series.values())) == len(of_series):
            known = any(row is not None and row.name for row in rows.values())
            return Found(of_series, _WORDS[place] if known else "ids", reason)
    return Found({ids: joined(ids) for ids in series}, "ids", reason)


def catalogue_of(labels: Labels, body: bytes | None) -> tuple[Catalogue | None, str | None]:
    """Return the names to use, or why there are none."""
    if isinstance(labels, Catalogue):
        return labels, None
    if body is None:
        return None, "discovery was not read, or the points are from a store or a pickle"
    names = _newest.get(body)
    if names is None:
        from siteline._records.discovery import Discovery

        names = Catalogue(Discovery(body))
        _newest.clear()
        _newest[body] = names
    return names, None if names else "discovery lists no series that siteline recognises"


def _label(ids: Ids, row: SeriesInfo | None, first: int, given: Mapping[Any, str]) -> str:
    own = given.get(ids, given.get(ids[_NAME])) if given else None
    if own is not None:
        return str(own)
    if row is None or not row.name:
        return joined(ids)
    parts = [row.names[level] or ids[level] for level in range(first, _NAME)]
    name = f"{row.name} [{row.unit}]" if row.unit else row.name
    return " / ".join([*filter(None, parts), name])
