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


def add_store(made: argparse.ArgumentParser) -> None:
    """Adds the argument STORE."""
    made.add_argument("store", metavar="STORE", help="the store's file")


def add_feeds(made: argparse.ArgumentParser) -> None:
    """Adds the argument FEED …, which :func:`feeds_of` reads."""
    made.add_argument("feeds", metavar="FEED", nargs="*", help="only these feeds")


def read(path: str, work: Callable[[Store], _Given], tries: int = 3) -> _Given:
    """Opens the store for reading, and returns the result of the work.

    A store that nobody has open is read without its log. If a sync opens it at this moment, the
    read is busy; the next try reads next to the sync.
    """
    from siteline.errors import StoreBusy

    try:
        with existing_store(path) as store:
            return work(store)
    except StoreBusy:
        if tries == 1:
            raise
        return read(path, work, tries - 1)


def feeds_of(store: Store, names: Iterable[str]) -> list[str]:
    """Returns the given names of feeds, each once; without names, all feeds."""
    return list(dict.fromkeys(names)) or list(store.feeds)
