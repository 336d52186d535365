"""Records that siteline returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from siteline._times import iso

if TYPE_CHECKING:
    from siteline.allowance import Allowance

__all__ = ["AgentState"]


@dataclass(frozen=True)
class AgentState:
    """The state of an :class:`siteline.Agent`, in :attr:`siteline.Agent.state`.

    >>> with siteline.Agent(client) as agent:
    ...     agent.state.lent, agent.state.allowance.used
    (0, 0)
    """

    base_url: str
    """The address of the service."""
    subject: str
    """The subject of the credential."""
    scopes: str
    """The scopes that clients may request, separated by spaces."""
    allowance: Allowance
    """The daily request allowance. Pages count when they are leased."""
    lent: int
    """Leased pages that no client has reported yet."""
    leases: int
    """Number of leases since the start."""
    version: str
    """The version of siteline."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        counts = self.allowance
        allowance = {name: getattr(counts, name) for name in counts._fields}
        return {**asdict(self), "allowance": {**allowance, "resets_at": iso(counts.resets_at)}}
