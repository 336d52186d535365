"""The versions of siteline, of Python, and of the packages that it works with."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from typing import TYPE_CHECKING

from siteline import __version__
from siteline._doctor.seen import Seen, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteline._doctor.look import Look

__all__: list[str] = []

_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)\s*\(?>=\s*([0-9.]+)\)?\s*;.*extra\s*==")


def versions(look: Look) -> Seen:
    """Whether the packages that are installed are new enough for what siteline does with them."""
    found = [(name, _installed(name), lowest) for name, lowest in _lowest()]
    here = [(name, version, lowest) for name, version, lowest in found if version is not None]
    parts = [f"siteline {__version__}", f"Python {platform.python_version()}"]
    parts += [f"{name} {version}" for name, version, _ in here]
    old = [f"{name} {lowest}" for name, version, lowest in here if _is_older(version, lowest)]
    seen = ", ".join(parts)
    return warn(seen, f"Update to at least {', '.join(old)}.") if old else ok(seen)


def _lowest() -> Iterator[tuple[str, str]]:
    """The optional packages and their lowest versions, as the installed package states them."""
    try:
        stated = metadata.requires("siteline") or []
    except metadata.PackageNotFoundError:  # a source tree that nobody installed
        return
    found = (_REQUIREMENT.match(one) for one in stated)
    yield from {match[1]: match[2] for match in found if match}.items()


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_older(version: str, lowest: str) -> bool:
    numbers = re.match(r"[0-9.]*[0-9]", version)
    return numbers is not None and _parts(numbers[0]) < _parts(lowest)


def _parts(version: str) -> tuple[int, ...]:
    """The numbers, without zeros at the end: 2.0 is 2."""
    numbers = [int(one) for one in version.split(".") if one]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
