"""The series that may be read, with their names and units."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from siteline._discovered import LEVELS, Ids
from siteline._discovery_shape import DiscoveryShape, read
from siteline._records.series import SeriesIds
from siteline._warn import warn
from siteline.errors import QueryError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from siteline._reports import CatalogueReport

__all__ = ["Catalogue", "SeriesInfo"]


class SeriesInfo(NamedTuple):
    """A series of a :class:`Catalogue`: its ids, and its names and unit as discovery has them.

    The ids are ``site_id``, ``line_id``, ``machine_id``, ``device_id`` and ``tag_guid``, or
    together :attr:`ids`. ``None`` stands for what discovery does not have, such as a ``unit``.
    ``label`` is name and unit, with as much of the path as tells series apart. ``names`` are those
    of site, line, machine and device, and of the series itself, which is ``name``. ``path`` joins
    what the series is in and itself: names, or ids where there are none. ``members`` is whatever
    else discovery has of it. ``listed`` is false for what only data had.

    >>> series = client.series().find("speed", machine="M3")[0]
    >>> series.name, series.unit, series.path
    ('speed', '1/min', 'S1 / L2 / M3 / D31 / speed')
    """

    site_id: str | None
    """``siteId``."""
    line_id: str | None
    """``lineId``."""
    machine_id: str | None
    """``machineId``."""
    device_id: str | None
    """``deviceId``."""
    tag_guid: str | None
    """``tagGuid``."""
    name: str | None
    """Its own name."""
    unit: str | None
    """Its unit."""
    label: str
    """Name and unit, ``speed [1/min]``. Where several series have these, what they are in stands
    before them, as far up as tells them apart. Without a name: the tag GUID, or all ids."""
    path: str
    """What it is in and itself, with `` / `` between them."""
    names: tuple[str | None, ...]
    """The names of site, line, machine and device, and its own."""
    members: dict[str, Any]
    """Whatever else discovery has of it."""
    listed: bool
    """Whether discovery lists it, or it was only seen in data."""

    @property
    def ids(self) -> SeriesIds:
        """The five ids."""
        return SeriesIds(*self[:5])


class Catalogue(Sequence[SeriesInfo]):
    """The series that discovery lists, one row for each (§4.2): made by :meth:`Client.series`.

    A sequence of :class:`SeriesInfo`. The interface does not show the body of discovery: series are
    found in it by shape, as the data name them (§2.3), and ``report`` says where what was found,
    and what was not recognised. ``shape=`` states what you know better: :class:`DiscoveryShape`.

    Where discovery names no series, those that the client has seen in data are listed, with a
    :class:`SitelineWarning`; ``listed`` tells them apart.

    Give it as ``labels=`` to ``scan()``, ``store.read()`` or any frame.

    >>> catalogue = client.series()
    >>> catalogue
    <Catalogue 18 series, listed by discovery>
    >>> [series.label for series in catalogue.find("temperature", line="L2")]
    ['D31 / temperature [degC]', 'D41 / temperature [degC]']
    >>> scan.collect().pivot().to_polars(labels=catalogue).columns[:3]
    ['timestamp', 'M1 / D11 / pieces [1]', 'M1 / D11 / speed [1/min]']
    """

    __slots__ = ("__weakref__", "_by_ids", "_by_tag", "_report", "_rows")

    def __init__(
        self, discovery: Mapping[str, Any], *, shape: DiscoveryShape | None = None
    ) -> None:
        """Find the series of a discovery response."""
        self._fill(discovery, shape, (), complete=True)

    @classmethod
    def _of_client(
        cls,
        discovery: Mapping[str, Any],
        shape: DiscoveryShape | None,
        seen: Sequence[Ids],
        complete: bool,
    ) -> Catalogue:
        """Find the series of a discovery response; those that pages had, where it has none."""
        catalogue = cls.__new__(cls)
        catalogue._fill(discovery, shape, seen, complete=complete)
        if catalogue._report["not_ended"]:
            _warn("The discovery body has a cursor: it may list only a part of the series.")
        if not catalogue._report["listed"]:
            which = "none was read yet" if not seen else f"{len(seen):,} series of data"
            _warn(
                "Discovery names no series that siteline recognises, so that those are listed that "
                f"pages of this client had: {which}. report['not_recognised'] says what "
                "stands there; DiscoveryShape(...) says where the series are."
            )
        return catalogue

    def _fill(
        self,
        discovery: Mapping[str, Any],
        shape: DiscoveryShape | None,
        seen: Sequence[Ids],
        *,
        complete: bool,
    ) -> None:
        if shape is not None and not isinstance(shape, DiscoveryShape):
            raise QueryError(f"shape= is a DiscoveryShape, not a {type(shape).__name__}.")
        found, places = read(discovery, shape)
        known: dict[Ids, SeriesInfo] = {}
        for one in found:
            name = one.names[-1]
            path = " / ".join(one.parts)
            known.setdefault(
                one.ids,
                SeriesInfo(*one.ids, name, one.unit, "", path, one.names, one.members, listed=True),
            )
        paths = {one.ids: one.parts for one in reversed(found)}
        self._report: CatalogueReport = {
            "listed": len(known),
            "seen": 0,
            "seen_is_complete": complete,
            "repeated": len(found) - len(known),
            "not_ended": any("cursor" in name.lower() and discovery[name] for name in discovery),
            "series": list(places.series),
            "ids": {name: list(places.ids[level]) for level, name in enumerate(SeriesIds._fields)},
            "names": list(places.names),
            "units": list(places.units),
            "not_recognised": places.unrecognised(),
        }
        self._rows = _labelled(list(known.values()), paths)
        self._index()
        if not known:
            self._add(seen)

    def _index(self) -> None:
        self._by_ids = {row.ids: row for row in self._rows}
        self._by_tag: dict[str | None, list[SeriesInfo]] = defaultdict(list)
        for row in self._rows:
            self._by_tag[row.tag_guid].append(row)

    def _add(self, series: Iterable[Ids]) -> None:
        """Add series of data that are not there yet."""
        new = [SeriesIds(*ids) for ids in dict.fromkeys(series) if self._row(ids) is None]
        nothing: tuple[None, ...] = (None,) * len(LEVELS)
        for ids in new:
            path = " / ".join(filter(None, ids))
            self._rows.append(
                SeriesInfo(*ids, None, None, joined(ids), path, nothing, {}, listed=False)
            )
        self._report = {**self._report, "seen": self._report["seen"] + len(new)}
        self._index()

    @classmethod
    def _of_table(cls, names: Catalogue | None, series: Sequence[Ids]) -> Catalogue:
        """Return the rows of these series, also of those without a name."""
        catalogue = cls.__new__(cls)
        if names is None:
            catalogue._fill({}, None, (), complete=True)
        else:
            catalogue._rows, catalogue._report = [], names._report
            catalogue._index()
            known = ((ids, names._row(ids)) for ids in series)
            catalogue._rows = [_of_ids(row, ids) for ids, row in known if row is not None]
            catalogue._index()
        catalogue._add(series)
        order = {tuple(ids): place for place, ids in enumerate(series)}
        catalogue._rows.sort(key=lambda row: order[row[:5]])
        return catalogue

    def find(
        self,
        text: str | None = None,
        *,
        site: str | Iterable[str] | None = None,
        line: str | Iterable[str] | None = None,
        machine: str | Iterable[str] | None = None,
        device: str | Iterable[str] | None = None,
        tag: str | Iterable[str] | None = None,
        unit: str | Iterable[str] | None = None,
    ) -> Catalogue:
        """Return the series that have a text, and are of these lines, machines, units and so on.

        - ``text``: stands anywhere in ids, names, unit, path or further members; case does not
          count
        - ``site`` … ``tag``: an id or a name, or several of them; exact, as is ``unit``

        >>> len(client.series().find(line="L2", unit=["1/min", "degC"]))
        4
        """
        given = [None if one is None else _texts(one) for one in (site, line, machine, device, tag)]
        units, wanted = None if unit is None else _texts(unit), (text or "").casefold()
        rows = [
            row
            for row in self._rows
            if all(
                of is None or row[level] in of or row.names[level] in of
                for level, of in enumerate(given)
            )
            and (units is None or row.unit in units)
            and (not wanted or wanted in _searched(row))
        ]
        return self._part(rows)

    def _part(self, rows: list[SeriesInfo]) -> Catalogue:
        part = Catalogue.__new__(Catalogue)
        part._rows, part._report = list(rows), self._report
        part._index()
        return part

    def _row(self, ids: Ids) -> SeriesInfo | None:
        """Return the row of a series of data; discovery may have less than its five ids."""
        exact = self._by_ids.get(SeriesIds(*ids))
        if exact is not None or ids[-1] is None:
            return exact
        of_tag = [
            row
            for row in self._by_tag.get(ids[-1], ())
            if all(one is None or one == other for one, other in zip(row.ids, ids, strict=True))
        ]
        return of_tag[0] if len(of_tag) == 1 else None

    @property
    def report(self) -> CatalogueReport:
        """What was found where in the discovery body, and what was not recognised: a dict.

        Paths are such as ``"sites[].lines[].lineId"``. ``listed`` and ``seen`` count the series of
        discovery and those that only data had, ``seen_is_complete`` says whether the client
        remembers all of these, ``repeated`` counts series that discovery lists again,
        ``not_ended`` says that the body has a cursor, so that it may be a part. A part that
        :meth:`find` returned has the report of the whole.
        """
        return self._report

    def to_pandas(self) -> pd.DataFrame:
        """Build a pandas frame with a row for each series.

        Columns: the five ids, ``name``, ``unit``, ``label``, ``path``, ``listed``, names of the
        levels where discovery has them (``site_name`` …), and whatever else it has of a series:
        text, numbers or truth values, or JSON text.
        """
        from siteline import _catalogue_frames

        return _catalogue_frames.to_pandas(self._rows)

    def to_polars(self) -> pl.DataFrame:
        """Build a polars frame: the columns of :meth:`to_pandas`."""
        from siteline import _catalogue_frames

        return _catalogue_frames.to_polars(self._rows)

    def to_arrow(self) -> pa.Table:
        """Build a ``pyarrow.Table``: the columns of :meth:`to_pandas`."""
        from siteline import _catalogue_frames

        return _catalogue_frames.to_arrow(self._rows)

    def __len__(self) -> int:
        """Count the series."""
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> SeriesInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Catalogue: ...
    def __getitem__(self, index: int | slice) -> SeriesInfo | Catalogue:
        """Return one series, or a part of the catalogue."""
        return self._part(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __repr__(self) -> str:
        """Count the series, and say where they are from."""
        listed = sum(row.listed for row in self._rows)
        seen = len(self) - listed
        parts = [f"{listed} listed by discovery"] if listed and seen else []
        parts += ["listed by discovery"] if listed and not seen else []
        parts += [f"{seen} seen in data alone"] if seen else []
        return f"<Catalogue {', '.join([f'{len(self)} series', *parts])}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the series by what they are in, for the browser's own search."""
        from siteline._display import catalogue_html

        return catalogue_html.catalogue(self._rows, self._report)


def _of_ids(row: SeriesInfo, ids: Ids) -> SeriesInfo:
    """Return the row with the five ids of a series: discovery may have fewer."""
    site, line, machine, device, tag = ids
    return row._replace(
        site_id=site, line_id=line, machine_id=machine, device_id=device, tag_guid=tag
    )


def joined(ids: Iterable[str | None]) -> str:
    """Return the ids of a series as one text."""
    return " / ".join(id or "" for id in ids)


def _labelled(rows: list[SeriesInfo], paths: Mapping[Ids, tuple[str, ...]]) -> list[SeriesInfo]:
    """Give each row its label; those that would have the same one get more of their path."""

    def label(row: SeriesInfo, depth: int) -> str:
        above = paths[row.ids][:-1]
        own = row.name or row.tag_guid or joined(row.ids)
        text = f"{own} [{row.unit}]" if row.unit else own
        return " / ".join([*above[max(0, len(above) - depth) :], text]) if depth else text

    labels = [label(row, 0) for row in rows]
    for depth in range(1, 1 + max((len(path) for path in paths.values()), default=0)):
        of_label = defaultdict(list)
        for place, text in enumerate(labels):
            of_label[text].append(place)
        for places in of_label.values():
            for place in places if len(places) > 1 else ():
                labels[place] = label(rows[place], depth)
    return [row._replace(label=text) for row, text in zip(rows, labels, strict=True)]


def _searched(row: SeriesInfo) -> str:
    texts = [*filter(None, [*row.ids, *row.names, row.unit, row.label, row.path])]
    return "\n".join([*texts, json.dumps(row.members, ensure_ascii=False)]).casefold()


def _texts(given: str | Iterable[str]) -> set[str | None]:
    return {given} if isinstance(given, str) else set(given)


def _warn(text: str) -> None:
    warn([text])
