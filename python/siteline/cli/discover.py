"""``siteline discover``: what may be read, and what has come or gone since the last time."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from siteline._escape import escaped, escaped_json, spelt_in_json
from siteline.cli.arguments import add_command
from siteline.cli.clients import client_of
from siteline.cli.exits import Exit
from siteline.cli.output import Outcome, aligned, document, require_stdout
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse

    from siteline.cli.arguments import _Commands
    from siteline.cli.discovery_memory import Remembered
    from siteline.types import DiscoveryDiff

__all__ = ["add"]

_LONGEST = 60


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "discover",
        _run,
        SUMMARIES["discover"],
        "Costs a token request and a discovery request, nothing of the daily allowance. The form "
        "of the body is not documented (§4.2): it is printed as it came. The last one of each "
        "service and subject is remembered, for --diff. A resource that is gone is no longer "
        "authorised (or removed); one that is listed and gives no points has no data.",
    )
    made.add_argument(
        "--diff",
        action="store_true",
        help="tell what has come, gone or changed since the last run, with or without --diff",
    )


def _run(options: argparse.Namespace) -> Outcome:
    from siteline.cli.discovery_memory import keep, remembered

    require_stdout()
    with client_of(options) as client:
        whose = (client.base_url, client.subject)
        resources = dict(client.discover())
    problem = None
    if options.diff:
        last, problem = remembered(*whose)
        _print(options, *_compared(resources, last))
    else:
        _print(options, {"resources": resources}, _shown(resources, indent=2))
    # Not before it was printed: what nobody has seen is told again.
    not_kept = keep(*whose, resources)
    if problem := problem or not_kept:
        _warn(problem)
    return Outcome({}, "", has_written=True)


def _print(options: argparse.Namespace, members: dict[str, Any], text: str) -> None:
    print(document("discover", Exit.DONE, members) if options.json else text)
    sys.stdout.flush()


def _compared(resources: dict[str, Any], last: Remembered | None) -> tuple[dict[str, Any], str]:
    """Return the members of the document, and the text."""
    from siteline._times import to_minute
    from siteline.types import Discovery, DiscoveryDiff

    if last is None:
        members = {"since": None, **DiscoveryDiff([], [], []).to_dict()}
        text = "There is nothing to compare with: no earlier body is remembered."
        return {"resources": resources, **members}, text
    found = Discovery(json.dumps(resources).encode()).diff(last.resources)
    members = {"resources": resources, "since": last.seen, **found.to_dict()}
    since = f"since {to_minute(last.seen)} UTC"
    if not found:
        return members, f"Nothing has changed {since}."
    return members, f"{_listed(found)}\n{_counted(found)} {since}."


def _listed(found: DiscoveryDiff) -> str:
    rows = [("added", _named(entry)) for entry in found.added]
    rows += [("removed", _named(entry) + _reason(entry)) for entry in found.removed]
    rows += [
        ("changed", f"{entry['path']}: {_short(entry['before'])} -> {_short(entry['after'])}")
        for entry in found.changed
    ]
    # The values are JSON, so paths get JSON escapes too.
    return aligned((word, escaped(what, spelt_in_json)) for word, what in rows)


def _named(entry: dict[str, Any]) -> str:
    """Return the path, and the item itself where nothing in the path names it."""
    path: str = entry["path"]
    return f"{path} {_short(entry['value'])}" if path.endswith("/-") else path


def _reason(entry: dict[str, Any]) -> str:
    """Say why a resource was removed: an item of a list, or a member that has members."""
    last = entry["path"].rpartition("/")[2]
    is_resource = last == "-" or "=" in last or isinstance(entry["value"], dict | list)
    return ": no longer authorised (or removed)" if is_resource else ""


def _counted(found: DiscoveryDiff) -> str:
    return ", ".join(f"{len(entries)} {word}" for word, entries in found.to_dict().items())


def _short(value: Any) -> str:
    text = _shown(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _shown(value: Any, indent: int | None = None) -> str:
    """Write JSON that a terminal shows as it is; every other character as its escape."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return escaped_json(json.dumps(value, indent=indent, ensure_ascii=not is_unicode))


def _warn(problem: str) -> None:
    import warnings

    from siteline.errors import SitelineWarning

    text = f"What was listed before, which --diff compares with, {problem}."
    warnings.warn(text, SitelineWarning, stacklevel=2)
