"""Names for series: what ``labels=`` of frames takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from siteline._discovered import Ids
from siteline._records.series import SeriesIds
from siteline.catalogue import Catalogue, joined
from siteline.errors import QueryError, SitelineWarning

__all__: list[str] = []

_Series: TypeAlias = Sequence[Ids]
_newest: dict[bytes, Catalogue] = {}


def names(labels: Any, series: _Series, body: bytes | None) -> list[str]:
    """Return a name for each series; the ids where it has none.

    ``body``: the newest discovery response of the client that read them.
    """
    name = _naming(labels, body)
    found = [name(ids) for ids in series]
    for label in found:
        if label is not None and not isinstance(label, str):
            raise QueryError(f"labels= gave a {type(label).__name__}; a label is text, or None.")
    return [joined(ids) if one is None else one for ids, one in zip(series, found, strict=True)]


def names_of_rows(labels: Any, series: _Series, body: bytes | None) -> list[str]:
    """Return a name for each series, for a column; a name of two of them is told."""
    found = names(labels, series, body)
    known: dict[str, Ids] = {}
    for name, ids in zip(found, series, strict=True):
        other = known.setdefault(name, ids)
        if other is not ids:
            warnings.warn(
                f"Two series have the label {name!r}: {joined(other)} and {joined(ids)}. "
                "Their rows stay apart by their ids alone.",
                SitelineWarning,
                stacklevel=2,
            )
            break
    return found


def for_pictures(labels: Any, body: bytes | None) -> Any:
    """Return a mapping or a callable of names, or of names and units; ``None`` for the ids."""
    if labels is None or labels is False:
        return None
    if labels is True:
        labels = _of_discovery(body)
    if isinstance(labels, Catalogue):
        return labels._name_and_unit
    if not callable(labels) and not isinstance(labels, Mapping):
        raise _refused(labels)
    return labels


def _naming(labels: Any, body: bytes | None) -> Callable[[Ids], str | None]:
    if labels is True:
        labels = _of_discovery(body)
    if isinstance(labels, Catalogue):
        return labels._label
    if isinstance(labels, Mapping):
        of = labels
        return lambda ids: of[ids] if ids in of else of.get(ids[-1])
    if callable(labels):
        call: Callable[[SeriesIds], str | None] = labels
        return lambda ids: call(SeriesIds(*ids))
    raise _refused(labels)


def _refused(labels: Any) -> QueryError:
    return QueryError(
        f"labels= is a {type(labels).__name__}.",
        hint="Give True, a Catalogue, a mapping of tag GUIDs (or of five ids), or a callable.",
    )


def _of_discovery(body: bytes | None) -> Catalogue:
    """Return the catalogue of a discovery response; several frames in a row have the same."""
    from siteline._records.discovery import Discovery

    if body is None:
        raise QueryError(
            "labels=True has no names: the client that read these points has had no discovery "
            "response, or they are of a store or a pickle.",
            hint="Call client.series() before, a request that the allowance does not count, or "
            "give its result as labels=.",
        )
    catalogue = _newest.get(body)
    if catalogue is None:
        catalogue = Catalogue(Discovery(body))
        _newest.clear()
        _newest[body] = catalogue
    if not catalogue:
        raise QueryError(
            "labels=True has no names: discovery lists no series that siteline recognises.",
            hint="client.series().report says what stands there; give client.series(shape=...).",
        )
    return catalogue
