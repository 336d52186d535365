"""Reading a store that others may be using."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from siteline.cli.clients import existing_store

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from siteline import Store

__all__ = ["add_feeds", "add_store", "feeds_of", "read"]

_Given = TypeVar("_Given")
_TRIES = 3


def add_store(made: argparse.ArgumentParser) -> None:
    """Add the argument STORE of a command that only reads it."""
    made.add_argument("store", metavar="STORE", help="the store's file")


def add_feeds(made: argparse.ArgumentParser) -> None:
    """Add the argument FEED …, which :func:`feeds_of` reads."""
    made.add_argument("feeds", metavar="FEED", nargs="*", help="only these feeds")


def read(path: str, work: Callable[[Store], _Given]) -> _Given:
    """Open the store to read alone, and return what the work gives.

    A store that nobody has open is read without its log. Where a sync opens it meanwhile the read
    is busy; begun again it reads beside the sync.
    """
    from siteline.errors import StoreBusy

    for _ in range(_TRIES - 1):
        try:
            with existing_store(path, read_only=True) as store:
                return work(store)
        except StoreBusy:
            continue
    with existing_store(path, read_only=True) as store:
        return work(store)


def feeds_of(store: Store, names: Iterable[str]) -> list[str]:
    """Return the names of the feeds that were asked for, each once; all without any."""
    return list(dict.fromkeys(names)) or list(store.feeds)
