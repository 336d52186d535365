"""The agent, which holds the key and the count for many processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._doctor.seen import Seen, fail, ok, skipped
from siteline.errors import ConfigError

if TYPE_CHECKING:
    from siteline._doctor.look import Look

__all__: list[str] = []


def agent(look: Look) -> Seen:
    """Whether one is set, can be reached, and is for the same service and subject."""
    if look.agent_error is not None:
        return fail(look.agent_error)
    if not look.has_agent:
        return skipped("no agent is set")
    place = look.handle.settings()["agent"].partition("#")[0]
    if look.offline and place.startswith("https:"):
        return skipped("offline")
    state = look.handle.agent_state()
    own, its = (
        f"{subject} of {base_url}"
        for base_url, subject in (
            (look.client.base_url, look.client.subject),
            (state["base_url"], state["subject"]),
        )
    )
    if own != its:
        return fail(
            ConfigError(f"The agent at {place} has tokens for {its}, not for {own}."),
            do="Set SITELINE_AGENT to what `siteline agent` prints for this subject.",
        )
    return ok(f"{place}: siteline {state['version']}, {state['leases']:,} leases so far")
