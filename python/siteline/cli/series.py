"""``siteline series``: lists and searches series, and shows changes since the last run."""

from __future__ import annotations

import json
import sys
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._escape import escaped, escaped_json
from siteline._refusals import reason
from siteline._times import to_second
from siteline.cli.arguments import Commands, Options, add_command, add_options
from siteline.cli.clients import client_of, state_folder
from siteline.cli.output import Outcome, aligned, require_stdout
from siteline.cli.output_file import OutputFile, add_output
from siteline.cli.table_options import SERIES, levels_of
from siteline.errors import ConfigError, SitelineError, SitelineWarning

if TYPE_CHECKING:
    from pathlib import Path

    from siteline import Table

    _Row = dict[str, Any]

_IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")
_FORM = 2


def add(commands: Commands) -> None:
    """Adds the command."""
    made = add_command(
        commands,
        "series",
        _run,
        "One discovery request, which does not count for the daily allowance.",
        example="siteline series temperature --line L2",
        options={
            "--unit UNIT …": "only series with this unit",
            **SERIES,
            "--store STORE": "list the series of this store instead",
        },
    )
    find = "only series with this text in ids or names, as --find of siteline read"
    add_options(made, {"text TEXT": find}, nargs="?")
    either = {
        "--raw": "print the unchanged discovery body",
        "--diff": "show what changed since the last run",
    }
    add_options(made.add_mutually_exclusive_group(), either)
    add_output(made, without="a table on stdout")


def _run(options: Options) -> Outcome:
    from siteline.store import Store

    _check(options)
    if options.raw:
        with client_of(options) as client:
            body = dict(client.discover())
        return Outcome({"resources": body}, _as_text(body, indent=2))
    output = OutputFile(options) if options.output or options.format else None
    require_stdout()
    if options.store is not None:
        with Store(options.store, labels=False, read_only=True) as store:
            return _listed(options, store.series(), output)
    with client_of(options) as client:
        series = client.series()
        whose = (client.base_url, client.subject)
    rows = list(series.records())
    outcome = _compared(rows, whose) if options.diff else _listed(options, series, output)
    if not series.report.listed:
        return outcome
    # After a failed output the next --diff shows the changes again.
    return outcome._replace(afterwards=lambda: _remember(rows, whose))


def _check(options: Options) -> None:
    selects = bool(options.text or options.unit or levels_of(options))
    special = "raw" if options.raw else "diff"
    others = {
        "TEXT and the ids": selects,
        "--store": options.store,
        "-o": options.output,
        "--format": options.format,
    }
    if options.raw or options.diff:
        for name, given in others.items():
            if given:
                raise ConfigError(f"--{special} shows everything, so {name} is not for it.")


def _listed(options: Options, series: Table, output: OutputFile | None) -> Outcome:
    found = series.find(options.text, unit=options.unit or None, **levels_of(options))
    if output is not None:
        output.write(found)
        text = f"{escaped(output.name)}: {len(found):,} series"
        text += "" if output.is_stdout else f"; {output.size}"
        members = {"rows": len(found), **output.members}
        return Outcome(members, text, has_written=output.is_stdout)
    rows = list(found.records())
    members = {"series": rows, "listed": len(series)}
    if rows:
        return Outcome(members, _table(rows))
    text = "Discovery lists no series. siteline series --raw prints its body."
    if len(series):
        near = _doors.nearest(found)
        text = f"No series matches: {len(series):,} are listed. {near}siteline series lists all."
    return Outcome(members, text)


def _table(rows: list[_Row]) -> str:
    cells = [(row["label"], row["site_id"], row["line_id"], row["tag_guid"]) for row in rows]
    shown = [[("" if cell is None else cell) for cell in row] for row in cells]
    return f"{aligned([('series', 'site', 'line', 'tag'), *shown])}\n{len(rows):,} series"


def _compared(rows: list[_Row], whose: tuple[str, str]) -> Outcome:
    last = _remembered(whose)
    if last is None:
        members: dict[str, Any] = {"since": None, "added": [], "removed": [], "changed": []}
        text = "This is the first list of this service: the next --diff compares with it."
        return Outcome(members, text)
    since, before = last
    old, new = ({_key(row): row for row in some} for some in (before, rows))
    changed = [
        {"before": old[ids], "after": new[ids]}
        for ids in new
        if ids in old and _without_label(old[ids]) != _without_label(new[ids])
    ]
    told: dict[str, list[_Row]] = {
        "added": [new[ids] for ids in new if ids not in old],
        "removed": [old[ids] for ids in old if ids not in new],
        "changed": changed,
    }
    members = {"since": since, **told}
    lines = [(word, _name(row)) for word in ("added", "removed") for row in told[word]]
    lines += [("changed", f"{_name(one['after'])}: {_difference(**one)}") for one in changed]
    when = f"since {to_second(since)} UTC"
    if not lines:
        return Outcome(members, f"Nothing has changed {when}: {len(rows):,} series.")
    counts = ", ".join(f"{len(rows)} {word}" for word, rows in told.items())
    return Outcome(members, f"{aligned(lines)}\n{counts} {when}.")


def _key(row: _Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _IDS)


def _without_label(row: _Row) -> _Row:
    # A label may become longer because another series is new.
    return {name: value for name, value in row.items() if name != "label"}


def _name(row: _Row) -> str:
    where = " ".join(str(row[name]) for name in _IDS[:2] if row[name])
    return f"{row['label']} ({where})" if where else str(row["label"])


def _difference(before: _Row, after: _Row) -> str:
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    named = [name for name in names if name not in ("label", "path")]
    return ", ".join(
        f"{name} {_as_text(before.get(name))} -> {_as_text(after.get(name))}" for name in named
    )


def _as_text(value: Any, indent: int | None = None) -> str:
    # A terminal may lack characters.
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return escaped_json(json.dumps(value, indent=indent, ensure_ascii=not is_unicode))


def _memory(whose: tuple[str, str]) -> Path:
    import hashlib

    digest = hashlib.sha256("\n".join(whose).encode()).hexdigest()[:32]
    return state_folder() / f"series-{digest}.json"


def _remembered(whose: tuple[str, str]) -> tuple[Any, list[_Row]] | None:
    try:
        known = json.loads(_memory(whose).read_bytes())
        if [known["form"], *known["whose"]] != [_FORM, *whose]:
            return None
        rows: list[_Row] = known["series"]
        return datetime.fromisoformat(known["seen"]), [dict(row) for row in rows if _key(row)]
    except FileNotFoundError:
        return None
    except (OSError, SitelineError, ValueError, KeyError, TypeError, RecursionError) as error:
        _warn(f"cannot be read ({type(error).__name__})")
        return None


def _remember(rows: list[_Row], whose: tuple[str, str]) -> None:
    seen = datetime.now(UTC).replace(microsecond=0).isoformat()
    known = {"form": _FORM, "whose": whose, "seen": seen, "series": rows}
    try:
        path = _memory(whose)
        _doors.create_folder(path.parent)
        with _doors.whole_file(path, mode=0o600, keeps=False) as part:
            part.write_bytes(json.dumps(known).encode())
    except OSError as error:
        _warn(f"cannot be written: {reason(error) or error.strerror}")
    except SitelineError as error:
        _warn(f"cannot be written: {error.message}")


def _warn(problem: str) -> None:
    text = f"The list of the last run, which --diff compares with, {problem}."
    warnings.warn(text, SitelineWarning, stacklevel=2)
