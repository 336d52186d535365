"""Finds the series in a discovery body. The interface does not document its form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from siteline._records.series import SeriesIds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Ids: TypeAlias = tuple[str | None, str | None, str | None, str | None, str | None]

LEVELS = ("site", "line", "machine", "device", "tag")
_TAG = 4

# Names without case and separators: siteId, site_id and SiteID are one.
_IDS = {"siteid": 0, "lineid": 1, "machineid": 2, "deviceid": 3, "tagguid": 4}
_LISTS = {level + plural: place for place, level in enumerate(LEVELS) for plural in ("", "s")}
_LEVEL_NAMES = {f"{level}name": place for place, level in enumerate(LEVELS)}
_OWN_IDS = (("id", "guid"),) * _TAG + (("guid", "id"),)
_NAMES = ("name", "displayname", "title", "label")
_UNITS = ("unit", "units", "unitofmeasure", "engineeringunit", "uom")
_SEPARATORS = re.compile("[^a-z0-9]")

# Characters of a name and of a path, because each series has a copy of both.
_LONGEST_NAME = 200
_LONGEST_PATH = 1_000
_MOST_OTHERS = 10_000


class Row(NamedTuple):
    """A series, with its names and its unit."""

    ids: Ids
    names: tuple[str | None, ...]
    """The names of site, line, machine and device, and its own."""
    unit: str | None
    path: str
    """The names of the levels from the top down and its own, joined. Ids replace missing names."""
    listed: bool
    members: dict[str, Any]
    """Further members of discovery."""


class Places:
    """The paths of the series, ids and names in a body, such as ``sites[].lines[].lineId``."""

    def __init__(self) -> None:
        self.series: dict[str, None] = {}
        self.ids: tuple[dict[str, None], ...] = tuple({} for _ in LEVELS)
        self.names: dict[str, None] = {}
        self.units: dict[str, None] = {}
        self.others: dict[str, None] = {}
        """Members that are not an id or a name, or that contain no series."""
        self.nodes: dict[str, set[str]] = {}
        """All objects with their members."""

    def note_other(self, path: str) -> None:
        if len(self.others) < _MOST_OTHERS:
            self.others[path] = None
        else:
            self.others["… and more"] = None

    def unrecognised(self) -> list[str]:
        """Return the members that are not in the table, without the members inside them."""
        above = {one[:end] for one in self.series for end in _ends(one)}
        others = [path for path in self.others if path not in above]
        known = set(others)
        return [path for path in others if known.isdisjoint(_above(path))]

    def report(self) -> dict[str, Any]:
        return {
            "series": tuple(self.series),
            "ids": dict(zip(SeriesIds._fields, map(tuple, self.ids), strict=True)),
            "names": tuple(self.names),
            "units": tuple(self.units),
            "not_recognised": tuple(self.unrecognised()),
        }


class Node:
    """An object of the body."""

    __slots__ = ("above", "ids", "key", "members", "name", "names", "path")

    def __init__(
        self, path: str, members: dict[str, Any], above: Node | None, level: int | None, key: Any
    ) -> None:
        """Find the object's own ids and names. ``level`` is the level of its list."""
        self.path, self.members, self.above, self.key = path, members, above, key
        plain = {_plain(name): name for name in reversed(members)}
        self.ids: dict[int, tuple[str | None, str]] = {}
        self.names: dict[int, tuple[str, str]] = {}
        for short, name in plain.items():
            if short in _IDS and is_id(members[name], or_null=True):
                self.ids[_IDS[short]] = (_text(members[name]), _join(path, name))
            if short in _LEVEL_NAMES and isinstance(members[name], str):
                self.names[_LEVEL_NAMES[short]] = (members[name], _join(path, name))
        if level is not None and level not in self.ids:
            self.take_own_id(level, plain)
        own = next((plain[one] for one in _NAMES if _is_text(members, plain.get(one))), None)
        self.name = None if own is None else (members[own], _join(path, own))
        if self.name and self.ids:
            # The name of a record with all ids is the name of its tag.
            self.names.setdefault(max(self.ids), self.name)

    def take_own_id(self, level: int, plain: Mapping[str, str]) -> None:
        own = next((one for one in _OWN_IDS[level] if one in plain), None)
        if self.key is not None:
            self.ids[level] = (self.key, self.path)
        elif own and is_id(self.members[plain[own]]):
            self.ids[level] = (_text(self.members[plain[own]]), _join(self.path, plain[own]))

    def chain(self) -> list[Node]:
        found: list[Node] = []
        node: Node | None = self
        while node is not None:
            found.append(node)
            node = node.above
        return found[::-1]


def nodes(body: Mapping[str, Any], places: Places, is_series: Any) -> Iterator[Node]:
    """Yield the objects that are series, in the order of the body. Series are not nested."""
    waiting = [Node("", dict(body), None, None, None)]
    while waiting:
        node = waiting.pop()
        places.nodes.setdefault(node.path, set()).update(node.members)
        if is_series(node):
            places.series[node.path] = None
            yield node
            continue
        used = {path for _, path in (*node.ids.values(), *node.names.values())}
        used |= {node.name[1]} if node.name else set()
        below: list[Node] = []
        for name, value in node.members.items():
            path, inner = _join(node.path, name), list(_objects(node, name, value))
            below += inner
            if path not in used:
                # For a list, its objects' path ends in [], as DiscoveryShape accepts it.
                places.note_other(inner[0].path if inner else path)
        waiting += reversed(below)


def _objects(above: Node, name: str, value: Any) -> Iterator[Node]:
    """Yield the objects in a member: itself, the items of a list, the values of a mapping."""
    level, path = _LISTS.get(_plain(name)), _join(above.path, name)
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield Node(f"{path}[]", item, above, level, None)
            elif level is not None and is_id(item):
                yield Node(f"{path}[]", {}, above, level, _text(item))
    elif isinstance(value, dict):
        if level is not None and value and all(isinstance(one, dict) for one in value.values()):
            for key, item in value.items():
                yield Node(f"{path}{{}}", item, above, level, key)
        else:
            yield Node(path, value, above, level, None)


def found(node: Node, places: Places) -> Row:
    chain = node.chain()
    ids: dict[int, str | None] = {}
    names: dict[int, str] = {}
    parts: list[str] = []
    rest = dict(node.members)
    for one in (*chain[:-1], *_references(node, rest), node):
        for level, (own, path) in one.ids.items():
            ids[level] = own
            places.ids[level][path] = None
        for level, (name, path) in one.names.items():
            names[level] = name
            places.names[path] = None
        known = [names.get(level) or ids.get(level) for level in sorted(one.ids)]
        parts += [shortened(part) for part in known if part]
        if not one.ids and one.name:
            parts.append(shortened(one.name[0]))
            places.names[one.name[1]] = None
    unit = next((name for name in rest if _plain(name) in _UNITS and _is_text(rest, name)), None)
    if unit is not None:
        places.units[_join(node.path, unit)] = None
    taken = {path for _, path in (*node.ids.values(), *node.names.values())}
    members = {
        name: value
        for name, value in rest.items()
        if name != unit and _join(node.path, name) not in taken
    }
    return Row(
        (ids.get(0), ids.get(1), ids.get(2), ids.get(3), ids.get(4)),
        tuple(map(names.get, range(len(LEVELS)))),
        None if unit is None else rest[unit],
        " / ".join(parts),
        True,
        members,
    )


def take_tag_id(node: Node) -> None:
    """Use the own id of an object that the user stated to be a series."""
    if _TAG not in node.ids:
        node.take_own_id(_TAG, {_plain(name): name for name in reversed(node.members)})


def _references(node: Node, rest: dict[str, Any]) -> Iterator[Node]:
    """Yield the objects inside a series, such as its machine, and remove them from the rest."""
    for name, value in node.members.items():
        level = _LISTS.get(_plain(name))
        if level is None or level == _TAG or not isinstance(value, dict):
            continue
        one = Node(_join(node.path, name), value, node, level, None)
        if level in one.ids:
            del rest[name]
            yield one


def _above(path: str) -> Iterator[str]:
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _ends(path: str) -> list[int]:
    return [*(end for end, sign in enumerate(path) if end and sign in ".[{"), len(path)]


def _join(path: str, name: str) -> str:
    if len(path) > _LONGEST_PATH:
        return path if path.endswith("…") else f"{path}…"
    return f"{path}.{shortened(name)}" if path else shortened(name)


def shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name.lower())


def is_id(value: Any, *, or_null: bool = False) -> bool:
    """Whether a value is text or a whole number."""
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return is_id or (or_null and value is None)


def _is_text(members: Mapping[str, Any], name: str | None) -> bool:
    return name is not None and isinstance(members[name], str)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
