"""``siteline lateness``: how late points of a store's feeds came, and what that suggests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline.cli.arguments import add_command
from siteline.cli.output import Outcome
from siteline.cli.stores import add_feeds, add_store, feeds_of, read
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse

    from siteline.cli.arguments import _Commands

__all__ = ["add"]


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "lateness",
        _run,
        SUMMARIES["lateness"],
        "Sends no request and needs no credential. Without audits (audit_pages of a feed) nothing "
        "shows what comes after the lateness.",
    )
    add_store(made)
    add_feeds(made)


def _run(options: argparse.Namespace) -> Outcome:
    found = read(
        options.store,
        lambda store: [store.lateness(name) for name in feeds_of(store, options.feeds)],
    )
    members = {"store": options.store, "feeds": [lateness.to_dict() for lateness in found]}
    text = "\n\n".join(str(lateness) for lateness in found)
    return Outcome(members, text or "the store has no feeds: no sync has written to it")
