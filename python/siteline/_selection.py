"""The ids and filters that users give, as lists of text for the core."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product, repeat
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from siteline._core import Frame
from siteline._discovered import LEVELS as ALL_LEVELS
from siteline._escape import described
from siteline._records.series import SeriesIds
from siteline.errors import ConfigError, QueryError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._discovered import Ids, Row
    from siteline._series import Names
    from siteline.table import Table

    Series: TypeAlias = (
        Table | pd.DataFrame | pl.DataFrame | pa.Table | Iterable[str | Sequence[str | None] | None]
    )

# The levels by which a read filters its pages, and their places among the five ids.
LEVELS = {level: at for at, level in enumerate(ALL_LEVELS) if at > 1}
_MOST_UNLISTED = 10
_RESERVED = (
    *("siteid", "lineid", "from", "to", "aggregationintervalseconds", "pagesize", "cursor"),
)
_NO_SERIES = (
    "series= is a table of series, a DataFrame or Arrow stream with their five id columns, or the "
    "five ids of a "
    "series (site, line, machine, device, tag; None where it has none), or a list of such."
)


def _text(value: str, name: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            message = f"{name}= holds half a surrogate pair: it is no Unicode text."
            raise QueryError(message) from None
    return value


def value_of(value: Any, name: str) -> str:
    """Return a value of a parameter as text. Ids may be integers."""
    if isinstance(value, str):
        return _text(value, name)
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        number = index(value)
        if -(2**63) <= number < 2**63:
            return str(number)
    raise QueryError(f"{name}= is {described(value)}: give text or a whole number.")


def ids_of(given: Any, name: str) -> list[str]:
    if given is None:
        return []
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        return [value_of(given, name)]
    ids = [value_of(one, name) for one in given]
    if not ids:
        raise QueryError(f"{name}= is empty.", hint=f"Leave {name}= out to select all.")
    return ids


def filters_of(given: Any) -> list[tuple[str, list[str]]]:
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
        filters.append((name, [value_of(one, what) for one in values]))
    return filters


def query(site: Any, line: Any, interval: Any, page_size: Any, filters: Any) -> tuple[Any, ...]:
    return ids_of(site, "site"), ids_of(line, "line"), interval, page_size, filters_of(filters)


def feed_query(site: Any, line: Any, *others: Any) -> tuple[Any, ...]:
    """Return the arguments of a feed, which has one site and line."""
    for name, given in (("site", site), ("line", line)):
        if not isinstance(given, str) and hasattr(given, "__iter__"):
            message = f"{name}= is {described(given)}: a feed has one {name}."
            raise QueryError(message, hint="Make a feed for each, and sync them together.")
    return query(site, line, *others)


def extra_columns(names: Any) -> list[str]:
    known = _items(names)
    if known is None or not all(isinstance(name, str) for name in known):
        message = 'extra_columns= is a list of member names, such as ["quality"].'
        raise QueryError(message)
    return [_text(name, "extra_columns") for name in known]


def picked(*levels: Any, series: Any) -> tuple[Any, ...]:
    """Return the ids of the five levels, and the series, that a store read selects."""
    ids = [ids_of(given, name) or None for given, name in zip(levels, ALL_LEVELS, strict=True)]
    return tuple(ids), None if series is None else _series(series)


def of_names(picked: tuple[Any, ...], names: Names, series: Iterable[Ids]) -> tuple[Any, ...]:
    """Replace the names in the ids of a store read with the ids that have them."""
    levels, chosen = picked
    rows = [row for ids in series if (row := names.row(ids)) is not None]
    found = list(levels)
    for level, at in LEVELS.items():
        known = {row.ids[at] for row in rows}
        ids: dict[Any, None] = {}
        for text in levels[at] or ():
            named = [row.ids[at] for row in rows if row.names[at] == text and row.ids[at]]
            if text not in known and not named:
                _refuse_similar(text, level, {row.names[at] for row in rows if row.names[at]})
            ids.update(dict.fromkeys([text] if text in known or not named else named))
        found[at] = [*ids] or None
    return tuple(found), chosen


def _refuse_similar(text: str, level: str, names: set[Any]) -> None:
    if near := nearest(text, sorted(names)):
        hint = f"{as_hint(near)}store.series() lists all ids and names."
        raise QueryError(f'No series of the feed has {level} "{text}".', hint=hint)


def _series(given: Any) -> list[Ids]:
    found = [_five(ids) for ids in _rows(given)]
    if not found:
        raise QueryError("series= is empty.", hint="Leave series= out to read all.")
    return found


def _rows(given: Any) -> Iterable[Any]:
    if (kind := getattr(given, "kind", None)) is not None and hasattr(given, "_handle"):
        if kind != "series":
            hint = "Give its series: series=table.series."
            raise QueryError(f"series= is a table of {kind}, not of series.", hint=hint)
        series: list[Any] = given._handle.series()
        return series
    if hasattr(given, "_handle"):
        raise QueryError(_NO_SERIES)
    # The stream of a pandas frame needs pyarrow.
    is_pandas = hasattr(given, "iloc") and hasattr(given, "columns")
    if (found := None if is_pandas else Frame.ids_of(given, [*SeriesIds._fields])) or is_pandas:
        names = found[0] if found else list(given.columns)
        if missing := [name for name in SeriesIds._fields if name not in names]:
            hint = f"It has the columns {', '.join(map(str, names[:20]))}."
            raise QueryError(f"series= has no column {', '.join(missing)}.", hint=hint)
        if twice := [name for name in SeriesIds._fields if names.count(name) > 1]:
            raise QueryError(f"series= has several columns {', '.join(twice)}.")
        columns = found[1] if found else [list(given[name]) for name in SeriesIds._fields]
        return zip(*columns, strict=True)
    items = _items(given)
    if items is None:
        raise QueryError(_NO_SERIES)
    # The items of one series are ids. The items of a list are series.
    if items and all(_is_missing(item) or isinstance(item, str) for item in items):
        return [items]
    return items


def _items(given: Any) -> list[Any] | None:
    try:
        return None if isinstance(given, str) else list(given)
    except TypeError:
        return None


def _five(given: Any) -> Any:
    items = [None if _is_missing(item) else item for item in _items(given) or ()]
    if len(items) != 5:
        raise QueryError(_NO_SERIES)
    return tuple(None if item is None else value_of(item, "series") for item in items)


def _is_missing(item: Any) -> bool:
    """Whether an item is ``None`` or the missing value of a frame."""
    is_nan = isinstance(item, float) and item != item
    return item is None or is_nan or type(item).__name__ == "NAType"


def filter_names(given: Any) -> dict[str, str]:
    """Check the query parameters that filter by machine, device and tag."""
    if not isinstance(given, Mapping) or not all(isinstance(one, str) for one in given.values()):
        example = '{"machine": "machineId"}'
        raise ConfigError(f"filter_names= is a mapping of levels to parameters: {example}.")
    if unknown := [str(name) for name in given if name not in LEVELS]:
        hint = f"The levels are {', '.join(LEVELS)}; site and line have parameters of their own."
        raise ConfigError(f"filter_names= has no level {', '.join(unknown)}.", hint=hint)
    values = list(given.values())
    if any(not one or one.lower() in _RESERVED for one in values) or len(values) > len({*values}):
        hint = "Each level has a parameter of its own that siteline does not send otherwise."
        raise ConfigError(f"filter_names={dict(given)!r} cannot be sent.", hint=hint)
    return dict(given)


def selection(
    machine: Any,
    device: Any,
    tag: Any,
    series: Any,
    parameters: Mapping[str, str] | None,
    *,
    by_name: bool,
) -> tuple[Any, ...] | None:
    """Return the ids and names that a read selects, and the parameters by which they are sent.

    ``None`` for all series. Raises QueryError if no series of ``series`` has the ids. Names are
    compared later.
    """
    if machine is device is tag is series is None:
        return None
    given = zip((machine, device, tag), LEVELS, strict=True)
    levels = [ids_of(one, name) for one, name in given]
    sent = [(parameters or {}).get(name) for name in LEVELS]
    chosen = [] if series is None else _series(series)
    wanted = [(at, texts) for at, texts in zip(LEVELS.values(), levels, strict=True) if texts]
    is_one = any(all(ids[at] in texts for at, texts in wanted) for ids in chosen)
    if chosen and not by_name and not is_one:
        message = "No series of series= matches machine=, device= and tag=."
        raise QueryError(message, hint="Use series= only.")
    return levels, chosen, sent


def paid(
    filtered: int,
    points: int,
    levels: list[list[str]],
    series: list[Ids],
    parameters: list[str | None],
) -> str:
    """Return the warning about points that were paid for but not selected."""
    text = f"{filtered:,} of the {points:,} points that were read are not selected, but their "
    text += "pages were counted. "
    used = [
        (name, parameter)
        for name, texts, parameter in zip(LEVELS, levels, parameters, strict=True)
        if texts or series
    ]
    if open := [name for name, parameter in used if parameter is None]:
        example = ", ".join(f'"{name}": "..."' for name in open)
        return f"{text}If the service can filter them, state how: filter_names={{{example}}}."
    sent = ", ".join(str(parameter) for _, parameter in used)
    return f"{text}The service does not filter by {sent}: correct filter_names."


def unnamed(levels: list[list[str]], reason: str | None) -> str:
    """Return the warning about texts that cannot be compared with names."""
    texts = zip(LEVELS, levels, strict=True)
    given = ", ".join(f"{name} {text!r}" for name, texts in texts for text in texts)
    why = reason or "discovery lists no series"
    return f"Only ids were selected, and not names ({given}), because {why}."


class Found(NamedTuple):
    """The series that discovery lists for a selection."""

    named: list[Ids]
    """Series that are selected by a name, or without a complete list of ids."""
    ids: list[list[str]]
    """The ids of machines, devices and tags."""
    not_listed: list[str]


def found(
    levels: list[list[str]],
    series: list[Ids],
    names: Names | None,
    places: tuple[Sequence[str], Sequence[str]],
) -> Found:
    """Find the series of a selection in the names that discovery has.

    ``places`` are the selected ids of sites and lines. Raises QueryError if none is found.
    """
    if names is None or not names.rows:
        return Found([], levels, [])
    wanted = [(at, set(texts)) for at, texts in zip(LEVELS.values(), levels, strict=True) if texts]
    listed = names.rows
    unlisted = [
        f'{name} "{text}"'
        for (name, at), texts in zip(LEVELS.items(), levels, strict=True)
        if texts and not any(_is_unknown(row, at) for row in listed)
        for text in sorted(set(texts) - _known(names, at))
    ]
    if series:
        # Discovery may have fewer ids than the selected series.
        rows = [(ids, names.row(ids)) for ids in map(SeriesIds._make, series)]
        missing = [" / ".join(map(str, ids)) for ids, row in rows if row is None]
        unlisted += [f'series "{ids}"' for ids in missing[:_MOST_UNLISTED]]
        listed = [row._replace(ids=ids) for ids, row in rows if row is not None]
    # A site or line that is not listed is a warning of the read.
    here = [
        (at, {*ids})
        for at, ids in enumerate(places)
        if ids and {*ids} <= {row.ids[at] for row in names.rows}
    ]
    chosen = [
        row
        for row in listed
        if all(_is_unknown(row, at) or _has(row, at, texts) for at, texts in wanted)
        and all(row.ids[at] is None or row.ids[at] in known for at, known in here)
    ]
    if not chosen:
        raise _nothing(here + wanted, names, unlisted)
    named = [
        selected
        for row in chosen
        # Whole series are compared exactly.
        if (None in row.ids and not series) or any(row.ids[at] not in texts for at, texts in wanted)
        for selected in _with_ids(row, wanted)
    ]
    return Found(
        named, [*map(_sent, LEVELS.values(), levels, repeat(names), repeat(chosen))], unlisted
    )


def _is_unknown(row: Row, at: int) -> bool:
    """Whether discovery has no id and no name of a level."""
    return row.ids[at] is None and row.names[at] is None


def _has(row: Row, at: int, texts: Collection[str]) -> bool:
    return row.ids[at] in texts or row.names[at] in texts


def _known(names: Names, at: int) -> set[str]:
    return {one for row in names.rows for one in (row.ids[at], row.names[at]) if one}


def _with_ids(row: Row, wanted: list[tuple[int, set[str]]]) -> Iterable[Ids]:
    """Return the ids of a series, with the given texts for ids that discovery lacks."""
    texts = {at: sorted(texts) for at, texts in wanted if _is_unknown(row, at)}
    return product(*(texts.get(at, [one]) for at, one in enumerate(row.ids)))  # type: ignore[return-value]


def _sent(at: int, texts: list[str], names: Names, chosen: list[Row]) -> list[str]:
    """Return the ids to send: the ids of a name's series, or the text itself.

    Nothing is sent for a name without an id.
    """
    if any(row.ids[at] is None and row.names[at] in texts for row in chosen):
        return []
    of_name = {row.names[at] for row in names.rows} - {row.ids[at] for row in names.rows}
    ids = {row.ids[at] for row in chosen if row.names[at] in texts}
    return sorted({text for text in texts if text not in of_name} | {id for id in ids if id})


def nearest(text: str, known: Collection[str]) -> list[str]:
    """Return the most similar texts, ignoring case."""
    from difflib import get_close_matches

    folded, text = {one.casefold(): one for one in known}, text.casefold()
    near = get_close_matches(text, folded, 3)
    near += [one for one in folded if len(text) > 1 and text in one and one not in near]
    return [folded[one] for one in near[:3]]


def as_hint(near: Collection[str]) -> str:
    """Return the most similar texts as a sentence; nothing if there are none."""
    return f"Nearest: {', '.join(map(repr, near))}. " if near else ""


def nearest_zones(name: str) -> str:
    from zoneinfo import available_timezones

    return as_hint(nearest(name, available_timezones()))


def unlisted(texts: Sequence[str], names: Names | None) -> str:
    """Return the warning about unlisted ids of a query, such as ``line "l1"``."""
    found: dict[str, None] = {}
    for text in texts:
        level, _, id = text.partition(" ")
        if level == "series":
            continue
        at = ALL_LEVELS.index(level)
        known = () if names is None else _known(names, at)
        found.update(dict.fromkeys(nearest(id.strip('"'), known)))
    similar = f" Did you mean {' or '.join(map(repr, found))}?" if found else ""
    listed = ", ".join(texts)
    return f"Discovery does not list {listed}: the service may have no points for it.{similar}"


def _nothing(wanted: list[tuple[int, set[str]]], names: Names, unlisted: list[str]) -> QueryError:
    near: dict[str, None] = {}
    elsewhere: list[str] = []
    for at, texts in wanted:
        known = sorted(_known(names, at))
        for text in sorted(texts.difference(known)):
            near.update(dict.fromkeys(nearest(text, known)))
            levels = [one for level, one in enumerate(ALL_LEVELS) if text in _known(names, level)]
            elsewhere += [f'"{text}" is a {level}. ' for level in levels]
    given = ", ".join(f"{ALL_LEVELS[at]} {' or '.join(sorted(texts))}" for at, texts in wanted)
    what = ", ".join(unlisted) or f"{given}, all of them together"
    similar = as_hint(near) or "".join(elsewhere)
    hint = f"{similar}No page was requested; client.series() lists all ids and names."
    return QueryError(f"Discovery lists no series of {what}.", hint=hint)
