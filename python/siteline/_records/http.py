"""The limits of requests and connections."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from siteline._core import _check
from siteline._keywords import strict

if TYPE_CHECKING:
    from datetime import timedelta


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """The limits of requests and connections, for the parameter ``http`` of a client.

    Durations are seconds, a ``timedelta`` or text such as ``"5s"``. A field with its default value
    leaves the value of a profile as it is.

    >>> from siteline.types import Http
    >>> sandbox.client(http=Http(tries=1, response_timeout="5s")).subject == client.subject
    True
    """

    tries: int = 4
    """Attempts of one page, discovery or token request.

    Failed retries also use up a quota of the client. After about ten, one a minute is left, and
    the error says so.
    """
    connect_timeout: float | timedelta | str = "5s"
    """The limit for opening a connection."""
    response_timeout: float | timedelta | str = "30s"
    """The longest wait for the first byte of a reply.

    An attempt of a token request ends after 15 seconds, all of them after 60, unless this is
    longer.
    """
    idle_timeout: float | timedelta | str = "15s"
    """The longest pause within a reply."""
    max_connections: int = 64
    """Most data and discovery requests of this process in flight."""
    max_retry_after: float | timedelta | str = "1m"
    """A longer ``Retry-After`` raises the error at once; with 0 any."""
    max_body_bytes: int = 67_108_864
    """The largest decoded body."""
    application: str | None = None
    """Your name, after ``siteline/VERSION`` in ``User-Agent``."""
    allow_http: bool = False
    """Allows plain HTTP to hosts other than loopback."""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigError: for a number below 1, a timeout of 0, and an unprintable ``application``.
        """
        _check(self._given(), True)

    def _given(self) -> dict[str, Any]:
        values = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        return {name: value for name, value, default in values if value != default}


Http.__module__ = "siteline.types"
