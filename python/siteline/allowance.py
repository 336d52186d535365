"""The daily request allowance, as it stood when it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteline._counts import counted

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Allowance"]


class Allowance(NamedTuple):
    """The daily request allowance, as the client's ledger counts it (§8).

    ``used`` requests of ``limit`` today, ``left`` of them; ``resets_at`` is when the day ends.
    Every page request counts, retries included, before its bytes leave. Without
    ``daily_allowance=`` ``limit`` and ``left`` are ``None``. ``token_requests`` are counted apart,
    ``token_requests_this_hour`` of them in this hour: they are limited over the whole integration
    (§5.4).

    >>> client = sandbox.client(daily_allowance=100)
    >>> table = client.scan(site="S1", start="2026-11-01T00:00Z", interval="1h").collect()
    >>> client.allowance
    <Allowance 6 of 100 used, 94 left; 1 token request>
    """

    used: int
    """Requests counted today."""
    limit: int | None
    """Requests allowed a day, or ``None``."""
    left: int | None
    """Requests left today, or ``None`` where no limit is known."""
    resets_at: datetime
    """When the count begins anew, in UTC."""
    token_requests: int
    """Token requests counted today."""
    token_requests_this_hour: int
    """Those of this hour of the service's time."""

    def __repr__(self) -> str:
        """Show the counts."""
        used = f"{self.used} used, no limit set"
        if self.limit is not None:
            used = f"{self.used} of {self.limit} used, {self.left} left"
        return f"<Allowance {used}; {counted(self.token_requests, 'token request', grouping='')}>"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import html

        return html.allowance(self)
