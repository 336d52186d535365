"""The agent, which holds the key and the count for many processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._doctor.seen import Seen, skipped

if TYPE_CHECKING:
    from siteline._doctor.look import Look

__all__: list[str] = []


def agent(look: Look) -> Seen:
    """Whether one is set, can be reached, and is for the same service and subject."""
    return skipped("no agent is set")
