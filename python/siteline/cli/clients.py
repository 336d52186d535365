"""The client, the stores and the own files of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from siteline import Client, Store
    from siteline.types import RequestEvent

STORE = {"store STORE": "the store's file"}


def client_of(
    options: argparse.Namespace, on_request: Callable[[RequestEvent], object] | None = None
) -> Client:
    """Makes the client of ``--profile`` or of the ``SITELINE_*`` variables. Sends nothing."""
    from siteline import Client

    return Client(profile=options.profile, on_request=on_request)


def progress_of(options: argparse.Namespace) -> bool:
    """Whether to show progress, if there is a terminal."""
    return not (options.no_progress or options.json)


def feeds_of(store: Store, names: Iterable[str]) -> list[str]:
    """Returns the given names of feeds, each once; without names, all feeds."""
    return list(dict.fromkeys(names)) or list(store.feeds)


def feed_of(store: Store, name: str | None) -> str:
    """Returns the given name of a feed; without one, the only feed of the store."""
    names = list(store.feeds) if name is None else [name]
    if len(names) == 1:
        return names[0]
    from siteline.errors import QueryError

    found = f"its feeds are {', '.join(names)}" if names else "it has no feeds yet"
    raise QueryError(f"FEED is missing for the store {store.path}: {found}.")


def profiles_file() -> Path:
    """Returns the path of the file of profiles, which need not exist."""
    return _own_path("profiles", "SITELINE_CONFIG names the file of profiles.")


def state_folder() -> Path:
    """Returns the folder of the ledgers and other state; it need not exist."""
    return _own_path("state", "XDG_STATE_HOME names the folder above it.")


def _own_path(name: str, hint: str) -> Path:
    from pathlib import Path

    from siteline import _doors
    from siteline.errors import ConfigError

    found = _doors.paths()[name]
    if found is None:
        raise ConfigError("There is no home folder.", hint=hint)
    return Path(found)
