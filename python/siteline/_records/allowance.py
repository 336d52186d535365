"""The daily request allowance, and the state of an agent that lends it."""

from dataclasses import dataclass
from datetime import datetime

from siteline._counts import counted
from siteline._handles import WithHtml
from siteline._records.record import FrozenRecord


@dataclass(frozen=True, repr=False)
class Allowance(WithHtml, FrozenRecord):
    """The daily request allowance, as the client's ledger counts it.

    Every page request counts before it is sent, retries included. Token requests are counted
    separately, because the service limits them for the whole integration.

    >>> client = sandbox.client(daily_allowance=100)
    >>> table = client.scan(site="S1", start="2026-11-01T00:00Z", interval="1h").collect()
    >>> client.allowance
    <Allowance 1 of 100 used, 99 left; 1 token request>
    """

    _html = "html.allowance"

    used: int
    """Requests counted today."""
    limit: int | None
    """Requests allowed a day; ``None`` without ``daily_allowance=``."""
    left: int | None
    """Requests left today; ``None`` without ``daily_allowance=``."""
    resets_at: datetime
    """When the count is reset, in UTC."""
    token_requests: int
    """Token requests counted today."""
    token_requests_this_hour: int
    """Token requests counted in this hour of the service."""

    def __repr__(self) -> str:
        """Show the counts."""
        used = f"{self.used} used, no limit set"
        if self.limit is not None:
            used = f"{self.used} of {self.limit} used, {self.left} left"
        return f"<Allowance {used}; {counted(self.token_requests, 'token request', grouping='')}>"


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
