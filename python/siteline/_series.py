"""Names and units of series, and the tables of kind "series"."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from siteline._discovered import LEVELS, Ids, Row
from siteline._points import RecordIterator
from siteline._records.series import SeriesIds
from siteline._selection import nearest
from siteline._warn import warn
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteline._core import Frame
    from siteline._labels import Labels
    from siteline.table import Table

_UNNAMED = (None,) * len(LEVELS)
_LEVEL_NAMES = tuple(f"{level}_name" for level in LEVELS[:-1])
_MOST_COMPARED = 2_000
"""Texts that are compared with those of a search without a match."""
_MOST_ASKED = 10
"""Texts of such a search that are compared: it may have thousands of ids."""


class Names:
    """The names and units of series."""

    def __init__(self, rows: list[Row], report: dict[str, Any]) -> None:
        self.rows, self.report = rows, report
        self._by_ids = {row.ids: row for row in rows}
        self._by_tag: dict[str | None, list[Row]] = defaultdict(list)
        for row in rows:
            self._by_tag[row.ids[-1]].append(row)

    @classmethod
    def of_body(cls, body: Mapping[str, Any], shape: Mapping[str, Any] | None = None) -> Names:
        """Find the series of a discovery response."""
        from siteline._discovery_shape import DiscoveryShape, read

        found, places = read(body, DiscoveryShape(**shape) if shape else None)
        rows: dict[Ids, Row] = {}
        for row in found:
            rows.setdefault(row.ids, row)
        report = {
            "repeated": len(found) - len(rows),
            "not_ended": any("cursor" in name.lower() and body[name] for name in body),
            **places.report(),
        }
        return cls(list(rows.values()), report)

    @classmethod
    def of_frame(cls, frame: Frame) -> Names:
        rows = []
        for given in RecordIterator[dict[str, Any]](frame.records(), named=False):
            ids = SeriesIds(*map(given.pop, SeriesIds._fields))
            name, unit, path, listed = map(given.pop, ("name", "unit", "path", "listed"))
            above = tuple(given.pop(level, None) for level in _LEVEL_NAMES)
            rows.append(Row(ids, (*above, name), unit, path, listed, given))
        return cls(rows, frame.report())

    def row(self, ids: Ids) -> Row | None:
        """Return the row of a series. Discovery may have fewer ids than pages."""
        exact = self._by_ids.get(ids)
        if exact is not None or ids[-1] is None:
            return exact
        of_tag = [
            row
            for row in self._by_tag.get(ids[-1], ())
            if all(one is None or one == other for one, other in zip(row.ids, ids, strict=True))
        ]
        return of_tag[0] if len(of_tag) == 1 else None

    def __reduce__(self) -> tuple[Any, ...]:
        return Names, (self.rows, self.report)


NO_NAMES = Names.of_body({})


def joined(ids: Iterable[str | None]) -> str:
    return " / ".join(id or "" for id in ids)


def rows_of(names: Names | None, series: Iterable[Ids]) -> list[Row]:
    """Return a row for each series. One without names has its ids as path."""
    rows = []
    for ids in series:
        row = None if names is None else names.row(ids)
        if row is None:
            row = Row(ids, _UNNAMED, None, " / ".join(filter(None, ids)), False, {})
        rows.append(row._replace(ids=ids))
    return rows


def of_client(
    body: bytes,
    shape: Mapping[str, Any] | None,
    seen: Sequence[Ids],
    is_all: bool,
    labels: Labels,
) -> Table:
    """Return the series of a discovery response, or of pages if it lists none.

    The table always has the column ``label``, also with ``labels=False``.
    """
    from siteline._labels import DEFAULT

    names = Names.of_body(json.loads(body), shape)
    if names.report["not_ended"]:
        warn(["The discovery body has a cursor: it may list only a part of the series."])
    if not names.rows:
        which = f"{len(seen):,} series of data" if seen else "none was read yet"
        warn(
            [
                "Discovery lists no series that siteline recognises, so the table has those that "
                f"pages of this client had: {which}. report.not_recognised lists the members of "
                "the body; Client(shape=Shape(discovery=DiscoveryShape(...))) states where the "
                "series are."
            ]
        )
    rows = names.rows or rows_of(None, dict.fromkeys(seen))
    return table(rows, names, DEFAULT if labels is False else labels, is_all=is_all)


def table(
    rows: list[Row],
    names: Names,
    labels: Labels,
    tz: str = "UTC",
    found: Any = None,
    *,
    is_all: bool = True,
) -> Table:
    from siteline._core import Frame
    from siteline.table import Table

    listed = sum(row.listed for row in rows)
    report = {**names.report, "listed": listed, "seen": len(rows) - listed}
    report = {**report, "seen_is_complete": is_all}
    frame = Frame.of_series([row.ids for row in rows], _columns(rows), report)
    return Table(frame, tz, labels, found, (Names(rows, report), None))


def _columns(rows: list[Row]) -> list[tuple[str, str, list[Any]]]:
    columns: list[tuple[str, str, list[Any]]] = [
        ("name", "text", [row.names[-1] for row in rows]),
        ("unit", "text", [row.unit for row in rows]),
        ("path", "text", [row.path for row in rows]),
        ("listed", "flag", [row.listed for row in rows]),
    ]
    for level, name in enumerate(_LEVEL_NAMES):
        names = [row.names[level] for row in rows]
        if any(names):
            columns.append((name, "text", names))
    known = {*(name for name, _, _ in columns), *SeriesIds._fields, "label"}
    for member in dict.fromkeys(name for row in rows for name in row.members):
        name = member
        while name in known:
            name += "_"
        known.add(name)
        columns.append((name, *_typed([row.members.get(member) for row in rows])))
    return columns


def _typed(values: list[Any]) -> tuple[str, list[Any]]:
    """Return values of one type as they are, others as JSON text."""
    there = [value for value in values if value is not None]
    kinds = {type(value) for value in there}
    if len(kinds) == 1 and (kind := kinds.pop()) in (str, bool, float):
        return {str: "text", bool: "flag", float: "float"}[kind], values
    if there and all(type(value) is int and abs(value) < 1 << 63 for value in there):
        return "integer", values
    return "text", [None if value is None else json.dumps(value) for value in values]


def matching(
    rows: list[Row],
    labels: Mapping[Ids, str],
    text: str | None,
    levels: Sequence[Any],
    unit: Any,
) -> list[Ids]:
    """Return the series that contain a text, and have these ids or names and units."""
    wanted = (text or "").casefold()
    given = _given(levels, unit)
    return [
        row.ids
        for row in rows
        if all(
            of is None or row.ids[level] in of or row.names[level] in of
            for level, of in enumerate(given[:-1])
        )
        and (given[-1] is None or row.unit in given[-1])
        and (not wanted or wanted in _searched(row, labels))
    ]


def near(rows: list[Row], text: str | None, levels: Sequence[Any], unit: Any) -> list[str]:
    """Return names, their words and ids that are similar to those of a search without a match."""
    words = [word for row in rows for name in row.names if name for word in (name, *name.split())]
    ids = ([id for row in rows for id in (row.ids[at], row.names[at])] for at in range(len(LEVELS)))
    known: list[Iterable[str | None]] = [words, *ids, [row.unit for row in rows]]
    similar: list[str] = []
    given = [{text}, *(one or set() for one in _given(levels, unit))]
    for asked, texts in zip(given, known, strict=True):
        there = dict.fromkeys(one for one in texts if one)
        for one in sorted(filter(None, asked - there.keys()))[:_MOST_ASKED]:
            similar += nearest(one, [*islice(there, _MOST_COMPARED)])
    return similar[:3]


def _given(levels: Sequence[Any], unit: Any) -> list[set[str | None] | None]:
    return [
        None if one is None else _texts(name, one)
        for name, one in zip((*LEVELS, "unit"), (*levels, unit), strict=True)
    ]


def _searched(row: Row, labels: Mapping[Ids, str]) -> str:
    texts = [*filter(None, [*row.ids, *row.names, row.unit, labels.get(row.ids), row.path])]
    return "\n".join([*texts, json.dumps(row.members, ensure_ascii=False)]).casefold()


def _texts(name: str, given: Any) -> set[str | None]:
    several = [given] if isinstance(given, (str, int)) else given
    try:
        return {None if one is None else str(one) for one in several}
    except TypeError:
        kind = type(given).__name__
        raise QueryError(f"{name}= is an id or a list of ids; this is a {kind}.") from None
