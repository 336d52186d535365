"""``siteline store``: checks, copies, restores and describes a store."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from os.path import exists, getsize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._doctor.machine import checked, free_bytes, permissions_of, read, size
from siteline._escape import escaped
from siteline._times import duration, reached, to_second
from siteline.cli import export
from siteline.cli.arguments import Commands, Options, add_actions, add_command
from siteline.cli.clients import STORE, progress_of
from siteline.cli.output import Outcome, aligned

if TYPE_CHECKING:
    from siteline import Feed, Store


def add(commands: Commands) -> None:
    """Adds the commands."""
    actions = add_actions(commands, "store", "Sends no request and needs no credential.")
    for name, run, summary, details, example, options in _ACTIONS:
        line = f"siteline store {name} {example}"
        add_command(actions, name, run, details, summary=summary, example=line, options=options)
    export.add(actions)


def _check(options: Options) -> Outcome:
    feeds = checked(options.store, progress=progress_of(options))
    members = {"store": options.store, "feeds": feeds, "bytes": getsize(options.store)}
    return Outcome(members, f"{escaped(options.store)}: all checksums are correct")


def _backup(options: Options) -> Outcome:
    read(options.store, lambda store: store.backup(options.target, progress=progress_of(options)))
    count = getsize(options.target)
    members = {"store": options.store, "target": options.target, "bytes": count}
    text = f"{escaped(options.store)}: copied to {escaped(options.target)}, {size(count)}"
    return Outcome(members, text)


def _restored(options: Options) -> Outcome:
    if not exists(options.backup):
        raise FileNotFoundError(errno.ENOENT, "there is no backup", options.backup)
    replaced = _doors.restore(options.backup, options.store, progress_of(options))
    count = getsize(options.store)
    members = {"backup": options.backup, "store": options.store}
    members |= {"bytes": count, "replaced": replaced}
    text = f"{options.store}: restored from {options.backup}, {size(count)}"
    if replaced:
        text += "; it replaced the old file and its log"
    return Outcome(members, text)


def _info(options: Options) -> Outcome:
    path, feeds = read(
        options.store,
        lambda store: (
            store.path,
            [_facts(store, feed) for feed in store.feeds.values()],
        ),
    )
    files, free, (permissions, users) = _files_of(path), free_bytes(path), permissions_of(path)
    rows = [
        ("store", path),
        ("files", ", ".join(f"{one['name']} {size(one['bytes'])}" for one in files)),
        ("free on its disk", size(free)),
        ("who may use it", users),
        ("feeds", f"{len(feeds):,}"),
    ]
    blocks = (f"\n{escaped(one['name'])}\n{aligned(_rows(one), indent='  ')}" for one in feeds)
    text = "\n".join([aligned(rows), *blocks])
    members = {
        "store": path,
        "files": files,
        "free_bytes": free,
        **permissions,
        "feeds": feeds,
    }
    return Outcome(members, text)


def _files_of(path: Path) -> list[dict[str, Any]]:
    found = []
    for file in (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-lock")):
        with suppress(FileNotFoundError):
            found.append({"name": file.name, "bytes": file.stat().st_size})
    return found


def _facts(store: Store, feed: Feed) -> dict[str, Any]:
    names = ("name", "site", "line", "interval", "page_size", "filters", "start", "settle_lag")
    times = ("overlap", "lateness", "window", "audit_pages")
    ends, coverage = ("settled_through", "read_through", "newest"), store.coverage(feed)
    return {
        **{name: getattr(feed, name) for name in names + times},
        # Also the points of chains that have not ended.
        "points": len(store.read(feed, unread="keep")),
        **{name: getattr(coverage, name) for name in ends},
    }


def _rows(feed: dict[str, Any]) -> Iterator[tuple[str, str]]:
    given = {
        "siteId": feed["site"],
        "lineId": feed["line"],
        "interval": feed["interval"] and duration(feed["interval"]),
        **{name: ",".join(values) for name, values in feed["filters"].items()},
        "page size": feed["page_size"],
    }
    query = ", ".join(f"{name} {value}" for name, value in given.items() if value)
    yield "query", query or "everything"
    yield "start", f"{to_second(feed['start'])} UTC"
    times = ("settle_lag", "overlap", "lateness", "window")
    yield "times", ", ".join(f"{name.replace('_', ' ')} {duration(feed[name])}" for name in times)
    if feed["audit_pages"]:
        yield "audits", f"{feed['audit_pages']:,} pages a day"
    settled, read, newest = (feed[name] for name in ("settled_through", "read_through", "newest"))
    text = "nothing read yet" if newest is None else reached(settled, read, newest, to_second)
    yield "read", text
    yield "points", f"{feed['points']:,}"


_ACTIONS = (
    ("check", _check, "compare a store with its checksums", "The exit status is 7 if they differ.",
     "plant.siteline", STORE),
    ("backup", _backup, "copy a store while it is in use",
     "The copy has the access mode of the store.", "plant.siteline backups/plant.siteline",
     {**STORE, "target TARGET": "the copy, which must not exist yet"}),
    ("restore", _restored, "replace a store with a copy of a backup",
     "No process may have the store open.", "backups/plant.siteline plant.siteline",
     {"backup BACKUP": "a file that store backup made",
      "store STORE": "the store's file; it need not exist"}),
    ("info", _info, "show the files, the permissions and the feeds of a store", "",
     "plant.siteline", STORE),
)  # fmt: skip
