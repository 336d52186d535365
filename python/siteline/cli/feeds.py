"""A file of feeds in TOML, so that a nightly job needs no Python.

::

    profile = "plant-a"          # optional; --profile wins

    [defaults]                   # optional: the defaults of all feeds
    interval = "1m"
    start = 2026-01-01

    [feeds.line-2]               # the table's name is the feed's name
    site = "S1"
    line = "L2"
    filters = { machineId = ["M7", "M8"] }

The members are the keywords of :class:`siteline.Feed`. Only messages of Feed show values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline.errors import ConfigError

if TYPE_CHECKING:
    from siteline import Feed

EXAMPLE = """\
a file of feeds, such as:
  [feeds.line-2]
  site = "S1"
  line = "L2"
  interval = "5m"
  start = 2026-11-01"""
_LARGEST = 1_000_000
_TOP = ("profile", "defaults", "feeds")


class FeedsFile(NamedTuple):
    """The content of a file of feeds."""

    path: str
    profile: str | None
    feeds: tuple[Feed, ...]

    def chosen(self, names: Sequence[str] | None) -> tuple[Feed, ...]:
        """Returns the feeds with these names; without names, all of them."""
        if not names:
            return self.feeds
        known = [feed.name for feed in self.feeds]
        for name in names:
            if name not in known:
                raise _error(self.path, f"there is no feed {_shown(name)}", _meant(name, known))
        return tuple(feed for feed in self.feeds if feed.name in names)


def _members() -> list[str]:
    from inspect import signature

    from siteline import Feed

    return [name for name in signature(Feed).parameters if name != "name"]


def read_feeds(path: str) -> FeedsFile:
    """Reads a file of feeds; raises :class:`siteline.errors.ConfigError` for a wrong one."""
    said = _parsed(path, _text(path))
    _refuse_unknown(path, "", said, _TOP)
    profile = said.get("profile")
    if profile is not None and not (isinstance(profile, str) and profile):
        raise _error(path, "profile is not a text")
    defaults = _table(path, said, "defaults")
    _refuse_unknown(path, "[defaults]: ", defaults, _members())
    tables = _table(path, said, "feeds")
    if not tables:
        raise _error(path, "it has no feeds", "Write a table [feeds.NAME] for each.")
    feeds = tuple(_feed(path, name, table, defaults) for name, table in tables.items())
    return FeedsFile(path, profile, feeds)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            read = file.read(_LARGEST + 1)
    except FileNotFoundError as error:
        vars(error).update(hint=f"Write {EXAMPLE}")
        raise
    if read.startswith(b"SQLite format 3"):
        hint = "The file of feeds comes first: siteline sync FEEDS.toml STORE."
        raise _error(path, "it is a store, not a file of feeds", hint)
    if len(read) > _LARGEST:
        raise _error(path, f"it is larger than {_LARGEST // 1_000_000} MB")
    try:
        # Some editors on Windows write a byte order mark.
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = read.count(b"\n", 0, error.start) + 1
        raise _error(path, f"line {line} is not UTF-8") from None


def _parsed(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The text names the line and shows no value.
        raise _error(path, f"it is not TOML: {error}") from None
    except RecursionError:
        raise _error(path, "its values are nested too deep") from None
    except ValueError:
        raise _error(path, "a number has too many digits") from None


def _table(path: str, said: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = said.get(name, {})
    if not isinstance(table, dict):
        shown = "[feeds.NAME] for each feed" if name == "feeds" else f"[{name}]"
        raise _error(path, f"{name} is not a table", f"Write {shown}.")
    return table


def _feed(path: str, name: str, table: Any, defaults: Mapping[str, Any]) -> Feed:
    from siteline import Feed

    place = f"feed {_shown(name)}: "
    if not isinstance(table, dict):
        raise _error(path, f"{place}it is not a table", "Write [feeds.NAME] for each feed.")
    _refuse_unknown(path, place, table, _members())
    members = {**defaults, **table}
    if "start" not in members:
        raise _error(
            path, f"{place}start is missing", "Write the first time, as start = 2026-01-01."
        )
    try:
        return Feed(name, **members)
    except ConfigError as error:
        raise _error(path, f"{place}{error.message}", error.hint) from None


def _refuse_unknown(path: str, place: str, said: Iterable[str], known: Sequence[str]) -> None:
    for name in said:
        if name not in known:
            raise _error(path, f"{place}unknown member {_shown(name)}", _meant(name, known))


def _meant(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    if name == "since" and "start" in known:
        return "Write start."
    close = get_close_matches(name, known, 1)
    if close:
        return f"Is {_shown(close[0])} meant?"
    more = ", …" if len(known) > 12 else ""
    return f"There are {', '.join(map(_shown, known[:12]))}{more}."


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else f"{name[:60]}…")


def _error(path: str, message: str, hint: str | None = None) -> ConfigError:
    return ConfigError(f"{path}: {message}", hint=hint)
