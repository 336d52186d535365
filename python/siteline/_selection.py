"""The ids and filters that users give, as lists of text for the core."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Any

from siteline.errors import QueryError

if TYPE_CHECKING:
    from siteline._discovered import Ids

__all__: list[str] = []

_NO_SERIES = (
    "series= is the five ids of a series (site, line, machine, device, tag; None where it has none)"
    ", or a list of such."
)


def described(value: Any) -> str:
    """Return the type of a value, without its content."""
    if value is None:
        return "None (is an environment variable unset?)"
    return f"an object of type {type(value).__name__}"


def _text(value: str, name: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            message = f"{name}= holds half a surrogate pair: it is no Unicode text."
            raise QueryError(message) from None
    return value


def _value(value: Any, name: str) -> str:
    """Return one value of a parameter (J17: ids may be integers)."""
    if isinstance(value, str):
        return _text(value, name)
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        number = index(value)
        if -(2**63) <= number < 2**63:
            return str(number)
    raise QueryError(f"{name}= is {described(value)}: give text or a whole number.")


def _ids(given: Any, name: str) -> list[str]:
    """Return one id, or those of an iterable."""
    if given is None:
        return []
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        return [_value(given, name)]
    ids = [_value(one, name) for one in given]
    if not ids:
        raise QueryError(f"{name}= is empty.", hint=f"Leave {name}= out to read all.")
    return ids


def _filters(given: Any) -> list[tuple[str, list[str]]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        like = '{"machineId": ["M1", "M2"]}'
        raise QueryError(f"filters= is a mapping of parameter names to values, such as {like}.")
    filters = []
    for name, value in given.items():
        if not isinstance(name, str):
            raise QueryError(f"filters= has the name {name!r}: a name is text.")
        values = value if isinstance(value, list | tuple) else [value]
        what = f'filters["{_text(name, "filters")}"]'
        filters.append((name, [_value(one, what) for one in values]))
    return filters


def query(site: Any, line: Any, interval: Any, page_size: Any, filters: Any) -> tuple[Any, ...]:
    """Return the arguments of a query, without its range."""
    return _ids(site, "site"), _ids(line, "line"), interval, page_size, _filters(filters)


def feed_query(site: Any, line: Any, *others: Any) -> tuple[Any, ...]:
    """Return the arguments of a feed's queries, which have one site and line."""
    for name, given in (("site", site), ("line", line)):
        if not isinstance(given, str) and hasattr(given, "__iter__"):
            message = f"{name}= is {described(given)}: a feed has one {name}."
            raise QueryError(message, hint="Make a feed for each, and sync them together.")
    return query(site, line, *others)


def extra_columns(names: Any) -> list[str]:
    """Return the names of extra columns."""
    known = [] if names is None else _items(names)
    if known is None or not all(isinstance(name, str) for name in known):
        message = 'extra_columns= is a list of member names, such as ["quality"].'
        raise QueryError(message)
    return [_text(name, "extra_columns") for name in known]


def picked(*levels: Any, series: Any) -> tuple[Any, ...]:
    """Return the ids of the five levels, and the series, that are picked in a store."""
    names = ("site", "line", "machine", "device", "tag")
    ids = [_picked(given, name) for given, name in zip(levels, names, strict=True)]
    return tuple(ids), None if series is None else _series(series)


def _picked(given: Any, name: str) -> list[str] | None:
    if given is None:
        return None
    items = _items(given)
    items = [given] if items is None else items
    for item in items:
        if not isinstance(item, str):
            message = f"{name}= is an id or a list of ids; this is {described(item)}."
            raise QueryError(message)
    return [_text(item, name) for item in items]


def _series(given: Any) -> list[Ids]:
    items = _items(given)
    if items is None:
        raise QueryError(_NO_SERIES)
    # Ids stand in one series, series in a list of several.
    if items and all(_is_missing(item) or isinstance(item, str) for item in items):
        items = [items]
    return [_five(_items(item)) for item in items]


def _items(given: Any) -> list[Any] | None:
    """Return the items of an iterable; ``None`` for text and for anything else."""
    try:
        return None if isinstance(given, str) else list(given)
    except TypeError:
        return None


def _five(items: list[Any] | None) -> Any:
    ids = [None if _is_missing(item) else item for item in items or ()]
    if len(ids) != 5 or not all(id is None or isinstance(id, str) for id in ids):
        raise QueryError(_NO_SERIES)
    return tuple(id if id is None else _text(id, "series") for id in ids)


def _is_missing(item: Any) -> bool:
    """Return whether a series has no such id: ``None``, and what frames have for it."""
    is_nan = isinstance(item, float) and item != item
    return item is None or is_nan or type(item).__name__ == "NAType"
