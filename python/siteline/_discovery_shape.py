"""`DiscoveryShape`: the members of a discovery body, stated by the user."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from siteline._discovered import LEVELS, Node, Places, Row, found, is_id, nodes, take_tag_id
from siteline._keywords import strict
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Paths in an error.
_MOST_SHOWN = 12


@strict
@dataclass(frozen=True, kw_only=True)
class DiscoveryShape:
    """The members of a discovery response, which the interface does not document.

    By default ``client.series()`` finds objects with a tag id in lists or mappings that are named
    like the levels. It finds the ids by their names in pages (``siteId``, ``lineId``,
    ``machineId``, ``deviceId``, ``tagGuid``), or by ``id`` of an object in ``sites``, ``lines`` ….
    ``report`` of the table lists the path of each. Pass only corrections, in :class:`Shape`.

    A member is given by its name, in the series or its nearest ancestor (``"plant"``), or by a path
    (``"areas[].code"``; ``"areas{}"``: the name of the member). A name or path that is not in the
    body raises :class:`QueryError`, which lists the paths.

    >>> body = '{"areas": [{"code": "L1", "signals": [{"uid": "t1", "text": "speed"}]}]}'
    >>> sandbox.fault(on="discovery", status=200, body=body, times=1)
    >>> stated = siteline.shapes.DiscoveryShape(line="areas[].code", tag="uid", name="text")
    >>> client = sandbox.client(shape=siteline.shapes.Shape(discovery=stated))
    >>> client.series().to_pandas()[["line_id", "tag_guid", "label"]].values.tolist()
    [['L1', 't1', 'speed']]
    """

    series: str | None = None
    """The path of the objects that are series, such as ``"areas[].signals[]"`` (``[]``: items of a
    list; ``{}``: values of a mapping)."""
    site: str | None = None
    """The id of the site."""
    line: str | None = None
    """The id of the line."""
    machine: str | None = None
    """The id of the machine."""
    device: str | None = None
    """The id of the device."""
    tag: str | None = None
    """The tag GUID."""
    name: str | None = None
    """The name of the series."""
    unit: str | None = None
    """The unit of the series."""

    def __post_init__(self) -> None:
        """Reject values that are not text."""
        for one in fields(self):
            given = getattr(self, one.name)
            if given is not None and (not isinstance(given, str) or not given):
                message = f"DiscoveryShape({one.name}={given!r}): give a name or a path, as text."
                raise QueryError(message)


def read(body: Mapping[str, Any], shape: DiscoveryShape | None) -> tuple[list[Row], Places]:
    shape, places = shape or DiscoveryShape(), Places()
    all_found = [_stated(node, shape, places) for node in nodes(body, places, _test(shape))]
    _check(shape, places)
    return all_found, places


def _test(shape: DiscoveryShape) -> Any:
    """Return whether an object is a series, as a function."""
    if shape.series is not None:
        return lambda node: node.path == shape.series
    if shape.tag is not None:
        tag = shape.tag
        return lambda node: is_id(_own(node, tag))
    return lambda node: node.ids.get(len(LEVELS) - 1, (None,))[0] is not None


def _own(node: Node, given: str) -> Any:
    """Return the object's own value of a stated name or path."""
    if given.endswith("{}"):
        return node.key if node.path == given else None
    above, _, name = given.rpartition(".")
    is_path = above or "[" in given
    return node.members.get(name) if not is_path or node.path == above else None


def _stated(node: Node, shape: DiscoveryShape, places: Places) -> Row:
    """Return a series, with the stated members instead of those that were found."""
    if shape.series is not None and shape.tag is None:
        take_tag_id(node)
    row = found(node, places)
    if shape == DiscoveryShape():
        return row
    ids, names, unit, members = list(row.ids), list(row.names), row.unit, row.members
    for level, kind in enumerate(LEVELS):
        given = getattr(shape, kind)
        if given is not None:
            value = _nearest(node, given, places.ids[level])
            ids[level] = str(value) if is_id(value) else None
            members.pop(given, None)
    if shape.name is not None:
        names[-1] = _text(_nearest(node, shape.name, places.names))
        members.pop(shape.name, None)
    if shape.unit is not None:
        unit = _text(_nearest(node, shape.unit, places.units))
        members.pop(shape.unit, None)
    path = " / ".join(filter(None, (name or id for name, id in zip(names, ids, strict=True))))
    own = (ids[0], ids[1], ids[2], ids[3], ids[4])
    return row._replace(ids=own, names=tuple(names), unit=unit, path=path)


def _nearest(node: Node, given: str, at: dict[str, None]) -> Any:
    for one in reversed(node.chain()):
        value = _own(one, given)
        if value is not None:
            is_key = given.endswith("{}")
            name = given.rpartition(".")[2]
            at[given if is_key else f"{one.path}.{name}".lstrip(".")] = None
            return value
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _check(shape: DiscoveryShape, places: Places) -> None:
    members = {name for names in places.nodes.values() for name in names}
    paths = {f"{path}.{name}".lstrip(".") for path, names in places.nodes.items() for name in names}
    for one in fields(shape):
        given = getattr(shape, one.name)
        if given is None or given in paths or given in places.nodes:
            continue
        if one.name != "series" and given in members:
            continue
        known = sorted(paths | {path for path in places.nodes if path.endswith(("[]", "{}"))})
        shown = ", ".join(known[:_MOST_SHOWN]) + (", …" if len(known) > _MOST_SHOWN else "")
        raise QueryError(
            f"DiscoveryShape({one.name}={given!r}) is not in the discovery body.",
            hint=f"It has {shown or 'no members'}.",
        )
