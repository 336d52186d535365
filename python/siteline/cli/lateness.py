"""``siteline lateness``: how late points of a store's feeds came, and what that suggests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline.cli.arguments import add_command
from siteline.cli.output import Outcome
from siteline.cli.stores import add_feeds, add_store, feeds_of, read
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse

    from siteline.cli.arguments import _Commands
    from siteline.lateness import Delays, Lateness

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
    members = {"store": options.store, "feeds": [_members(lateness) for lateness in found]}
    text = "\n\n".join(str(lateness) for lateness in found)
    return Outcome(members, text or "the store has no feeds: no sync has written to it")


def _members(lateness: Lateness) -> dict[str, Any]:
    return {
        "name": lateness.feed.name,
        "lateness": lateness.lateness,
        "settled": lateness.settled,
        "looked": lateness.looked,
        "suggested": lateness.suggested,
        "verdict": lateness.verdict,
        "points": _delays(lateness.points),
        "revisions": _delays(lateness.revisions),
    }


def _delays(delays: Delays) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(delays)
