"""The difference between two JSON bodies of an undocumented form."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeAlias

from siteline._discovered import is_id, shortened
from siteline._records.record import FrozenRecord

_SERIES = ("siteId", "lineId", "machineId", "deviceId", "tagGuid")
"""Together they identify a series; an item of a list may have some of them."""
_OTHERS = ("id", "guid", "name")

_Path: TypeAlias = tuple[Any, str] | None
"""The parent path and a name. Only the paths of entries become text."""
_LONGEST_PATH = 1_000
"""Maximum characters of a path in an entry."""


@dataclass(frozen=True, repr=False)
class DiscoveryDiff(FrozenRecord):
    """The difference between two discovery bodies: the result of :meth:`Discovery.diff`.

    It is true if it has any entry. A ``path`` is similar to a JSON pointer. It names an item of a
    list by its ids, such as ``siteId=S1``, or by ``-``.

    >>> earlier = siteline.types.Discovery(b'{"sites": [{"siteId": "S2"}, {"siteId": "S9"}]}')
    >>> difference = client.discover().diff(earlier)
    >>> [entry["path"] for entry in difference.removed]
    ['/sites/siteId=S9']
    """

    added: list[dict[str, Any]]
    """Added values: ``path`` and ``value``."""
    removed: list[dict[str, Any]]
    """Removed values: ``path`` and ``value``."""
    changed: list[dict[str, Any]]
    """Changed values: ``path``, ``before`` and ``after``."""

    def __bool__(self) -> bool:
        """Whether anything was added, removed or changed."""
        return bool(self.added or self.removed or self.changed)

    def __repr__(self) -> str:
        """Count the entries."""
        counts = ", ".join(f"{len(entries)} {word}" for word, entries in self.to_dict().items())
        return f"<DiscoveryDiff {counts}>"


def differences(before: Any, after: Any) -> DiscoveryDiff:
    """Compare two bodies. The order of the members and of the items of a list does not count."""
    found = DiscoveryDiff([], [], [])
    _compare(before, after, None, found)
    return found


def _compare(before: Any, after: Any, path: _Path, found: DiscoveryDiff) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        _compare_members(before, after, path, found)
    elif isinstance(before, list) and isinstance(after, list):
        ids = _ids(before, after)
        if ids:
            former, latter = _by_ids(before, ids), _by_ids(after, ids)
            _compare_members(former, latter, path, found)
        else:
            _compare_items(before, after, path, found)
    elif _text(before) != _text(after):
        found.changed.append({"path": _written(path), "before": before, "after": after})


def _compare_members(
    before: dict[str, Any], after: dict[str, Any], path: _Path, found: DiscoveryDiff
) -> None:
    for name in [*before, *(name for name in after if name not in before)]:
        below = (path, name)
        if name not in after:
            found.removed.append({"path": _written(below), "value": before[name]})
        elif name not in before:
            found.added.append({"path": _written(below), "value": after[name]})
        else:
            _compare(before[name], after[name], below, found)


def _compare_items(before: list[Any], after: list[Any], path: _Path, found: DiscoveryDiff) -> None:
    former, latter = Counter(map(_text, before)), Counter(map(_text, after))
    item_path = _written((path, "-"))
    for entries, more in ((found.removed, former - latter), (found.added, latter - former)):
        entries.extend({"path": item_path, "value": json.loads(item)} for item in more.elements())


def _ids(before: list[Any], after: list[Any]) -> tuple[str, ...]:
    """Return the members that identify the items of both lists."""
    items = [*before, *after]
    if not items or not all(isinstance(item, dict) for item in items):
        return ()
    series = tuple(name for name in _SERIES if _all_have(items, name, or_null=True))
    others = (name for name in _OTHERS if _all_have(items, name))
    for ids in (series, *((*series, name) for name in others)):
        if ids and all(len(_by_ids(part, ids)) == len(part) for part in (before, after)):
            return ids
    return ()


def _all_have(items: list[dict[str, Any]], name: str, *, or_null: bool = False) -> bool:
    return all(name in item and is_id(item[name], or_null=or_null) for item in items)


def _by_ids(items: list[dict[str, Any]], ids: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {",".join(f"{name}={item[name]}" for name in ids): item for item in items}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _written(path: _Path) -> str:
    names = []
    while path is not None:
        path, name = path
        names.append(f"/{_escaped(name)}")
    text = "".join(reversed(names))
    if len(text) > _LONGEST_PATH:
        half = _LONGEST_PATH // 2
        text = f"{text[:half]}…{text[-half:]}"
    return text


def _escaped(name: str) -> str:
    return shortened(name).replace("~", "~0").replace("/", "~1")
