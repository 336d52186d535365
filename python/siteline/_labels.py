"""Labels: one text for each series, from the names and units that discovery lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from siteline._series import Names, joined
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteline._discovered import Ids, Row
    from siteline.table import Table

Labels: TypeAlias = (
    Literal["machine", "device", "name", "line", "site", False] | Mapping[Any, str] | "Table"
)

# The names of series, or why there are none.
Known: TypeAlias = tuple[Names | None, str | None]

DEFAULT: Labels = "machine"
NOTHING_LISTED = "discovery lists no series that siteline recognises"
# The first part of a label, from the shortest label to the longest.
_WORDS = ("name", "device", "machine", "line", "site")
_NAME = 4
# Columns of a pivoted table have the labels as names, next to this one.
_RESERVED = "timestamp"
_newest: dict[tuple[bytes, str], Names] = {}


class Found(NamedTuple):
    """The labels of some series."""

    of_series: dict[Ids, str] | None
    """A label for each series; ``None`` without labels."""
    word: str | None
    """The first part of the labels: ``"machine"`` and so on, or ``"ids"``."""
    reason: str | None
    """Why there are no names."""


def checked(labels: Any) -> Labels:
    """Return the labels, or raise QueryError."""
    if labels is None or labels is False:
        return False
    if isinstance(labels, str):
        is_known = labels in _WORDS
    else:
        is_known = isinstance(labels, Mapping) or getattr(labels, "kind", None) == "series"
    if not is_known:
        words = ", ".join(f'"{word}"' for word in reversed(_WORDS))
        raise QueryError(
            f"labels={labels!r} is unknown.",
            hint=f"Give {words}, False, a mapping of tag ids or SeriesIds to text, or a table of "
            "series.",
        )
    return labels  # type: ignore[no-any-return]


def needs_names(labels: Any) -> bool:
    return labels is not False and isinstance(labels, (str, Mapping))


def names_of(known: tuple[bytes, dict[str, Any] | None] | None, refusal: str | None) -> Known:
    """Return the names in a discovery response, or why there are none."""
    if known is None and refusal is not None:
        return None, _refused(refusal)
    if known is None:
        return None, "discovery was not read, or the points are from a store or a pickle"
    body, shape = known
    key = (body, repr(shape))
    names = _newest.get(key)
    if names is None:
        names = Names.of_body(json.loads(body), shape)
        _newest.clear()
        _newest[key] = names
    return names, None if names.rows else NOTHING_LISTED


def kept_names(kept: Sequence[tuple[int, bytes | None, str | None, str | None]]) -> Known:
    """Return the names that a store keeps, newest first."""
    rows: dict[Ids, Row] = {}
    names: Names | None = None
    for _, body, shape, _ in kept:
        if body is not None:
            found = Names.of_body(json.loads(body), json.loads(shape) if shape else None)
            rows = {**{row.ids: row for row in found.rows}, **rows}
            names = names or found
    if names is not None and rows:
        return Names([*rows.values()], names.report), None
    if not kept:
        return None, "no sync has kept names in this store"
    refusal = next((refusal for *_, refusal in kept if refusal), None)
    return None, NOTHING_LISTED if refusal is None else _refused(refusal)


def _refused(refusal: str) -> str:
    return "discovery failed: " + refusal.partition("\n")[0].rstrip(".")


def find(labels: Labels, series: Sequence[Ids], names: Names | None, reason: str | None) -> Found:
    """Return the labels of all series of a table.

    If two are equal, all labels begin one level higher, at last with the five ids.
    """
    if labels is False:
        return Found(None, None, None)
    rows = {ids: None if names is None else names.row(ids) for ids in series}
    given = _given(labels, series)
    start = _WORDS.index(labels if isinstance(labels, str) else "machine")
    # A given label begins without a level, so it can get more of them.
    steps = len(_WORDS) if given else len(_WORDS) - start
    for step in range(steps):
        place = min(start + step, len(_WORDS) - 1)
        of_series = {
            ids: _raised(ids, row, _NAME - step, given[ids])
            if ids in given
            else _label(ids, row, _NAME - place)
            for ids, row in rows.items()
        }
        texts = set(of_series.values())
        if len(texts) == len(of_series) and _RESERVED not in texts:
            known = any(row is not None and row.names[_NAME] for row in rows.values())
            return Found(of_series, _WORDS[place] if known else "ids", reason)
    return Found({ids: joined(ids) for ids in series}, "ids", reason)


def _given(labels: Labels, series: Sequence[Ids]) -> dict[Ids, str]:
    """Return the labels of these series in a mapping or a table of series."""
    if isinstance(labels, str) or labels is False:
        return {}
    if isinstance(labels, Mapping):
        texts = {ids: labels.get(ids, labels.get(ids[_NAME])) for ids in series}
        return {ids: str(text) for ids, text in texts.items() if text is not None}
    names, _ = labels._known_names()
    of_series = labels._find_labels().of_series or {}
    rows = {ids: None if names is None else names.row(ids) for ids in series}
    return {ids: of_series[row.ids] for ids, row in rows.items() if row and row.ids in of_series}


def _label(ids: Ids, row: Row | None, first: int) -> str:
    if row is None or not (name := row.names[_NAME]):
        return joined(ids)
    return _raised(ids, row, first, f"{name} [{row.unit}]" if row.unit else name)


def _raised(ids: Ids, row: Row | None, first: int, text: str) -> str:
    """Return a text after the names or ids of the levels above it, from the first on."""
    above = [(row and row.names[level]) or ids[level] for level in range(first, _NAME)]
    return " / ".join([*filter(None, above), text])
