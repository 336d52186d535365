"""Everything that siteline raises, in one tree.

::

    SitelineError
    ├── ConfigError (ValueError)              a setting is wrong; no request was made
    │   ├── CredentialError                   the key, its file or its passphrase
    │   └── QueryError                        the query
    ├── TransportError (ConnectionError)      the connection failed at every attempt
    │   ├── TransportTimeout (TimeoutError)   … in the phase .phase
    │   ├── TlsError                          … in the TLS handshake
    │   ├── ProxyError                        … at the proxy
    │   └── TruncatedBody                     … before the end of the body
    ├── ProtocolError (ValueError)            the reply breaks the interface, at .path
    │   ├── BodyTooLarge                      more decoded bytes than the cap
    │   ├── CursorLoop                        a cursor came back
    │   └── RedirectRefused                   no redirect is followed
    ├── ServiceError                          the service said no: .status, .code, .detail
    │   ├── AuthenticationError               credential, assertion or token refused
    │   │   └── ClockSkewError                … because the clocks differ: .skew_seconds
    │   ├── ScopeError (PermissionError)      a scope was refused or not granted: .missing
    │   ├── RequestRejected                   the request itself is refused
    │   │   └── CursorRejected                … because of its cursor, in mid-chain
    │   ├── RateLimited                       too many requests: .retry_at
    │   │   └── AllowanceExhausted            none left today
    │   └── ServiceUnavailable                failing after the last attempt
    ├── DeadlineExceeded (TimeoutError)       your own deadline passed
    ├── StoreError
    │   ├── StoreBusy                         another run holds it
    │   ├── StoreFull (OSError)               no space left
    │   ├── StoreCorrupt                      its contents are damaged
    │   └── FeedChanged                       another definition under the same name
    ├── BookmarkError (ValueError)            edited, or of another query, host or subject
    ├── ClosedError (RuntimeError)            the client or sandbox was closed
    ├── ForkError (RuntimeError)              a live iterator was carried over a fork
    └── InternalError (RuntimeError)          a defect of siteline

Each carries what was asked, what came, and in ``.hint`` what to do now. No text in here holds a
key, token, assertion, passphrase, cursor or query string. All of them can be pickled.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from siteline import Bookmark, Table

__all__ = [
    "AllowanceExhausted",
    "Attempt",
    "AuthenticationError",
    "BodyTooLarge",
    "BookmarkError",
    "ClockSkewError",
    "ClosedError",
    "ConfigError",
    "CredentialError",
    "CursorLoop",
    "CursorRejected",
    "DeadlineExceeded",
    "FeedChanged",
    "ForkError",
    "InternalError",
    "ProtocolError",
    "ProxyError",
    "QueryError",
    "RateLimited",
    "RedirectRefused",
    "RequestRejected",
    "ScopeError",
    "ServiceError",
    "ServiceUnavailable",
    "SitelineError",
    "SitelineWarning",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "TlsError",
    "TransportError",
    "TransportTimeout",
    "TruncatedBody",
]


class SitelineWarning(UserWarning):
    """Something that works and should not stay as it is: a key file that others can read."""


class Attempt(NamedTuple):
    """One attempt of a request: what came of it, and the pause that followed."""

    outcome: str
    """A status (``"503"``) or what happened (``"timeout in response"``)."""
    wait: float | None
    """Seconds until the next attempt; ``None`` after the last."""


class SitelineError(Exception):
    """The root of everything that siteline raises.

    A failure in the middle of a read carries what was read and paid for: ``scan.resume(e.bookmark,
    onto=e.partial)`` goes on from there.
    """

    hint: str | None = None
    """What to do now."""
    retryable: bool = False
    """Whether the same call may succeed later with nothing changed."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts made, in order."""
    elapsed: float | None = None
    """Seconds from the first attempt to the failure."""
    request_id: str | None = None
    """The service's own name for the request, where its reply had one."""
    bookmark: Bookmark | None = None
    """Where a read that failed half way can go on."""
    partial: Table | None = None
    """What a read that failed half way had read."""

    def __init__(self, message: str = "", /, **context: Any) -> None:
        """Store the message and every other keyword as an attribute."""
        super().__init__(message)
        for name, value in context.items():
            setattr(self, name, value)

    @property
    def message(self) -> str:
        """What was asked and what came."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        """Return the message, with the hint on a line of its own."""
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message and the attributes; a partial table stays behind."""
        state = {name: value for name, value in self.__dict__.items() if name != "partial"}
        return (type(self), self.args, state)


class ConfigError(SitelineError, ValueError):
    """A setting is wrong. No request was made and nothing was spent: mend the setting."""


class CredentialError(ConfigError):
    """The private key, its file, its passphrase or the signer is wrong. No request was made."""


class QueryError(ConfigError):
    """The query is wrong: bounds, interval, page size, filters. No request was made.

    Also raised where a read reached ``max_pages=`` before its end. Then requests were made: what
    they gave is in ``.partial``, and ``.bookmark`` says where to go on.
    """


class TransportError(SitelineError, ConnectionError):
    """The connection failed at every attempt. Attempts that sent something count as spent."""


class TransportTimeout(TransportError, TimeoutError):
    """A time limit of an attempt passed at every attempt."""

    phase: str | None = None
    """``"connect"``, ``"response"``, ``"body"`` or ``"page"`` (all attempts together)."""


class TlsError(TransportError):
    """The TLS handshake failed: not retried. The hint names the settings that bear on it."""


class ProxyError(TransportError):
    """The proxy refused or failed."""


class TruncatedBody(TransportError):
    """The reply ended before its end at every attempt."""


class ProtocolError(SitelineError, ValueError):
    """The reply breaks the interface. The request was spent; what it said was not used."""

    path: str | None = None
    """Where in the JSON body, as ``$.series[3].points[0].value``."""


class BodyTooLarge(ProtocolError):
    """The reply passed the cap on decoded bytes: ask for smaller pages."""


class CursorLoop(ProtocolError):
    """The service gave a cursor that this chain had been given before: it would never end."""


class RedirectRefused(ProtocolError):
    """The service answered with a redirect. None is followed: mend ``base_url``."""


class ServiceError(SitelineError):
    """The service said no."""

    status: int | None = None
    """The HTTP status of the reply."""
    code: str | None = None
    """The member ``error`` of the reply, such as ``invalid_client``."""
    detail: str | None = None
    """What the service said about it, cut and escaped."""


class AuthenticationError(ServiceError):
    """The credential, the assertion or the access token was refused (§7)."""


class ClockSkewError(AuthenticationError):
    """Refused, and the clocks differ: set this machine's clock."""

    skew_seconds: float | None = None
    """Service clock minus this machine's clock, in seconds."""


class ScopeError(ServiceError, PermissionError):
    """A scope was refused or not granted (§5): ask the administrator for it, or do not ask."""

    missing: tuple[str, ...] = ()
    """The scopes that were asked for and not granted."""


class RequestRejected(ServiceError):
    """The service refuses this request; the same request again would be refused again."""


class CursorRejected(RequestRejected):
    """The service refuses the cursor in mid-chain: start the range again without one."""


class RateLimited(ServiceError):
    """Too many requests for now. Nothing was read; call again at ``retry_at``."""

    retry_at: datetime | None = None
    """When the service takes requests again (UTC)."""


class AllowanceExhausted(RateLimited):
    """The daily request allowance is used up (§8), by the service's word or by our own count."""


class ServiceUnavailable(ServiceError):
    """The service failed at every attempt. Each attempt was spent."""


class DeadlineExceeded(SitelineError, TimeoutError):
    """The deadline that the caller gave passed."""


class StoreError(SitelineError):
    """The store could not be read or written."""


class StoreBusy(StoreError):
    """Another run holds the store."""


class StoreFull(StoreError, OSError):
    """No space is left for the store."""


class StoreCorrupt(StoreError):
    """The contents of the store are damaged."""


class FeedChanged(StoreError):
    """The store knows another definition under this feed's name."""


class BookmarkError(SitelineError, ValueError):
    """The bookmark was edited, or belongs to another query, host or subject."""


class ClosedError(SitelineError, RuntimeError):
    """The client or sandbox was closed."""


class ForkError(SitelineError, RuntimeError):
    """A live iterator was carried over a fork: make a new one in the child."""


class InternalError(SitelineError, RuntimeError):
    """A defect of siteline. The client can still be used; please report it."""
