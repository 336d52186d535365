"""`DiscoveryShape`: the members of the discovery body that the user states (§4.2)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from siteline._discovered import LEVELS, Found, Node, Places, found, is_id, nodes, take_tag_id
from siteline._keywords import strict
from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DiscoveryShape"]

_MOST_TOLD = 12
"""Places in an error."""


@strict
@dataclass(frozen=True, kw_only=True)
class DiscoveryShape:
    """The members of a discovery response, which the interface does not show (§4.2).

    By default ``client.series()`` finds objects with an id of a tag, in lists or mappings with the
    names of the levels, and the ids as pages name them (``siteId``, ``lineId``, ``machineId``,
    ``deviceId``, ``tagGuid``, or ``id`` of an object in ``sites``, ``lines`` …). ``report`` of the
    table says where each was found. Pass only what you know better, in :class:`Shape`:

    - ``series``: the path of the objects that are series, as the report writes it, such as
      ``"areas[].signals[]"`` (``[]``: items of a list; ``{}``: values of a mapping)
    - ``site``, ``line``, ``machine``, ``device``, ``tag``: the ids; ``name``, ``unit``: of the
      series. Each is the name of a member, of the series or of the nearest object that it is in
      (``"plant"``), or a path (``"areas[].code"``; ``"areas{}"``: the name of the member)

    A name or path that is nowhere in the body is a :class:`QueryError` that lists the paths.

    >>> body = '{"areas": [{"code": "L1", "signals": [{"uid": "t1", "text": "speed"}]}]}'
    >>> sandbox.fault(on="discovery", status=200, body=body, times=1)
    >>> stated = siteline.shapes.DiscoveryShape(line="areas[].code", tag="uid", name="text")
    >>> client = sandbox.client(shape=siteline.shapes.Shape(discovery=stated))
    >>> client.series().to_pandas()[["line_id", "tag_guid", "label"]].values.tolist()
    [['L1', 't1', 'speed']]
    """

    series: str | None = None
    """The path of the objects that are series."""
    site: str | None = None
    """Where the id of the site is."""
    line: str | None = None
    """Where the id of the line is."""
    machine: str | None = None
    """Where the id of the machine is."""
    device: str | None = None
    """Where the id of the device is."""
    tag: str | None = None
    """Where the tag GUID is."""
    name: str | None = None
    """Where the name of the series is."""
    unit: str | None = None
    """Where its unit is."""

    def __post_init__(self) -> None:
        """Refuse what is no text."""
        for one in fields(self):
            given = getattr(self, one.name)
            if given is not None and (not isinstance(given, str) or not given):
                message = f"DiscoveryShape({one.name}={given!r}): give a name or a path, as text."
                raise QueryError(message)


def read(body: Mapping[str, Any], shape: DiscoveryShape | None) -> tuple[list[Found], Places]:
    """Return the series of a body, and where they were found."""
    shape, places = shape or DiscoveryShape(), Places()
    all_found = [_stated(node, shape, places) for node in nodes(body, places, _test(shape))]
    _check(shape, places)
    return all_found, places


def _test(shape: DiscoveryShape) -> Any:
    """Return whether an object is a series."""
    if shape.series is not None:
        return lambda node: node.path == shape.series
    if shape.tag is not None:
        tag = shape.tag
        return lambda node: is_id(_own(node, tag))
    return lambda node: node.ids.get(len(LEVELS) - 1, (None,))[0] is not None


def _own(node: Node, given: str) -> Any:
    """Return what an object has itself of what is stated."""
    if given.endswith("{}"):
        return node.key if node.path == given else None
    above, _, name = given.rpartition(".")
    is_path = above or "[" in given
    return node.members.get(name) if not is_path or node.path == above else None


def _stated(node: Node, shape: DiscoveryShape, places: Places) -> Found:
    """Return a series, what is stated of it in the place of what was found."""
    if shape.series is not None and shape.tag is None:
        take_tag_id(node)
    one = found(node, places)
    ids, names, members = list(one.ids), list(one.names), dict(one.members)
    for level, kind in enumerate(LEVELS):
        given = getattr(shape, kind)
        if given is not None:
            value = _nearest(node, given, places.ids[level])
            ids[level] = str(value) if is_id(value) else None
            members.pop(given, None)
    unit = one.unit
    if shape.name is not None:
        names[-1] = _text(_nearest(node, shape.name, places.names))
        members.pop(shape.name, None)
    if shape.unit is not None:
        unit = _text(_nearest(node, shape.unit, places.units))
        members.pop(shape.unit, None)
    parts = one.parts
    if shape != DiscoveryShape():
        known = [name or id for name, id in zip(names, ids, strict=True)]
        parts = tuple(part for part in known if part)
    return Found((ids[0], ids[1], ids[2], ids[3], ids[4]), tuple(names), unit, parts, members)


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
    """Refuse what is stated and is nowhere in the body."""
    members = {name for names in places.nodes.values() for name in names}
    paths = {f"{path}.{name}".lstrip(".") for path, names in places.nodes.items() for name in names}
    for one in fields(shape):
        given = getattr(shape, one.name)
        if given is None or given in paths or given in places.nodes:
            continue
        if one.name != "series" and given in members:
            continue
        known = sorted(paths | {path for path in places.nodes if path.endswith(("[]", "{}"))})
        shown = ", ".join(known[:_MOST_TOLD]) + (", …" if len(known) > _MOST_TOLD else "")
        raise QueryError(
            f"DiscoveryShape({one.name}={given!r}) is nowhere in the discovery body.",
            hint=f"It has {shown or 'no members'}.",
        )
