"""The options of ``spark.read.format("siteline")``: text, in any case, shown in plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from siteline.errors import ConfigError, QueryError

_QUERY = ("site", "line", "start", "end", "interval", "page_size", "filters")
_TIMES = ("settle_lag", "overlap", "lateness", "window")
_KNOWN = {name.replace("_", ""): name for name in (*_QUERY, *_TIMES, "profile", "by", "max_pages")}

# Parts of the names under which somebody may give a secret.
_SECRET = ("key", "token", "secret", "pass", "credential", "assertion", "cursor", "agent")


@dataclass(frozen=True)
class Options:
    """The options of one read. A client checks the times."""

    profile: str | None
    query: dict[str, Any]
    """Keywords of :meth:`siteline.Client.scan`."""
    by: str | int | None
    max_pages: int | None
    times: dict[str, str]
    """Keywords of :class:`siteline.Feed`, for streams."""

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Options:
        """Return the options. Raises ConfigError for an unknown name or a secret."""
        found: dict[str, Any] = {}
        for name, value in given.items():
            known = _known(name)
            if known in found:
                raise ConfigError(f"The option {known} is given twice.")
            if value is not None and str(value) != "":
                found[known] = value
        for needed in ("start", "interval", "page_size"):
            if needed not in found:
                raise QueryError(
                    f"The option {needed} is missing.",
                    hint="A read is divided into partitions by its start, interval and page_size.",
                )
        query = {name: found[name] for name in _QUERY if name in found}
        query["page_size"] = _whole("page_size", found["page_size"])
        if "filters" in query:
            query["filters"] = _filters(query["filters"])
        by = found.get("by")
        return cls(
            profile=found.get("profile"),
            query=query,
            by=_whole("by", by) if str(by).isdecimal() else by,
            max_pages=_whole("maxPages", found["max_pages"]) if "max_pages" in found else None,
            times={name: str(found[name]) for name in _TIMES if name in found},
        )

    def between(self, start: Any, end: Any) -> Options:
        return replace(self, query={**self.query, "start": start, "end": end})

    def refuse_times(self) -> None:
        if self.times:
            names = ", ".join(self.times)
            raise ConfigError(f"The options {names} are only for streams (spark.readStream).")

    @property
    def key(self) -> str:
        """Identifies a query's density: the profile and the query as given."""
        return json.dumps([self.profile, self.query], sort_keys=True, default=str)


def _known(name: str) -> str:
    plain = name.lower().replace("_", "")
    if plain in _KNOWN:
        return _KNOWN[plain]
    if any(part in plain for part in _SECRET):
        # The message leaves out the value, because it may be a secret.
        raise ConfigError(
            f"{name!r} is no option of siteline: options show in plans and logs of Spark.",
            hint="Keys and passphrases belong into a profile, or into the variables of the driver: "
            "siteline.spark.register(spark, profile) starts an agent, and the tasks see no key.",
        )
    raise ConfigError(
        f"{name!r} is no option of siteline.",
        hint=f"The options are {', '.join(sorted(_KNOWN.values()))}.",
    )


def _whole(name: str, value: Any) -> int:
    text = str(value)
    if not text.isdecimal() or int(text) == 0:
        raise QueryError(f"{name}={text[:40]!r} is not a whole number above 0.")
    return int(text)


def _filters(value: Any) -> dict[str, Any]:
    # JSON, because Spark writes the names of options in small letters.
    try:
        filters = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        filters = None
    if not isinstance(filters, dict):
        raise QueryError(
            "filters is not a JSON object of names and values.",
            hint='Write it as filters=\'{"machineId": ["M1", "M2"]}\'.',
        )
    return filters
