"""The state of an agent."""

from dataclasses import dataclass

from siteline._records.allowance import Allowance
from siteline._records.record import FrozenRecord


@dataclass(frozen=True)
class AgentState(FrozenRecord):
    """The state of an :class:`siteline.Agent`, in :attr:`siteline.Agent.state`."""

    base_url: str
    """The address of the service."""
    subject: str
    """The subject of the credential."""
    scopes: str
    """The scopes that clients may request, separated by spaces."""
    allowance: Allowance
    """The daily request allowance. A page counts when it is lent."""
    lent: int
    """Pages lent in the last ten minutes that no client has reported yet."""
    leases: int
    """Tokens and pages lent since the start."""
    version: str
    """The version of siteline."""
