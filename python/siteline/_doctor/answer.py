"""What the one token request shows: the service, its clock, the token, the scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._core import MutualTls
from siteline._doctor.assertion import UNSIGNED, overridden
from siteline._doctor.seen import Seen, fail, ok, skipped, told, warn
from siteline.errors import (
    AuthenticationError,
    ClockSkewError,
    ConfigError,
    CredentialError,
    ProtocolError,
    RequestRejected,
    ScopeError,
    ServiceError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteline._doctor.look import Look

__all__: list[str] = []

_NOTICED, _HOPELESS = 5, 86_400
"""Clock differences in seconds: the limit for a report, and the limit for a correction."""
_NO_SUCH_ENDPOINT = (404, 405, 410, 501)
_ANOTHER = "Another service or a login page may answer there: compare base_url= and its path."
_NONE_NEEDED = "none is needed: the client certificate authorises"


def service(look: Look) -> Seen:
    """Whether what answers is the service."""
    error = look.exchange().error if look.asked_for_token() else look.discovery().error
    if error is None:
        return ok("it answers as the interface has it")
    if isinstance(error, ProtocolError) or _has_no_endpoint(error):
        return fail(error, do=_ANOTHER)
    if isinstance(error, TransportError):
        return fail(error)
    if not isinstance(error, ServiceError):
        # Nothing was sent. A signer that is not awaited is no fault.
        return skipped(UNSIGNED, blocks=True) if _is_unsigned(error) else fail(error)
    if isinstance(error, AuthenticationError) and error.code is None:
        return warn(f"it answers {error.status} without a code (§7)", _ANOTHER)
    return ok(f"it answers: {error.code or error.status or told(error)}")


def _has_no_endpoint(error: Exception) -> bool:
    return isinstance(error, RequestRejected) and error.status in _NO_SUCH_ENDPOINT


def _is_unsigned(error: Exception) -> bool:
    return isinstance(error, ConfigError) and not isinstance(error, CredentialError)


def clock(look: Look) -> Seen:
    """Whether this machine's clock is near enough to the service's."""
    skew = look.client.clock_skew
    if skew is None:
        return skipped("no reply has shown the time of the service")
    error = look.exchange().error
    is_refused = isinstance(error, AuthenticationError) and abs(skew) > _error(look)
    if abs(skew) <= _NOTICED and not is_refused:
        return ok("agrees with that of the service")
    direction = "behind" if skew > 0 else "ahead of"
    seen = f"this machine's clock is {abs(skew):,.0f} s {direction} that of the service"
    do = "Set this machine's clock, or have a time server set it."
    if is_refused or abs(skew) > _HOPELESS:
        refusal = "; it refused the assertion" if is_refused else ""
        return fail(ClockSkewError(f"{seen}{refusal}.", skew_seconds=skew), do=do)
    return warn(f"{seen}; siteline corrects for it", do)


def _error(look: Look) -> float:
    """Returns the measurement error of the clock difference, in seconds."""
    return look.handle.skew_error() or 0.0


def token(look: Look) -> Seen:
    """Whether there is a token, or the service grants one."""
    facts, error = look.exchange()
    if isinstance(error, AuthenticationError) and not isinstance(look.credential, MutualTls):
        return fail(error, do=_explained(look))
    if isinstance(error, ScopeError):
        return ok("the credential is accepted")
    if error is not None:
        return fail(error)
    if facts is None:
        return skipped(_NONE_NEEDED)
    if facts["was_cached"]:
        return ok(f"there is one, good for {facts['left']} s; none was asked for")
    return ok(f"granted, for {facts['lifetime']} s")


def _explained(look: Look) -> str:
    """Everything that the service may mean, which does not say (§7); what is suspicious first."""
    return "The service does not say what is wrong. Compare:\n" + "\n".join(
        f"- {cause}" for cause in _causes(look)
    )


def _causes(look: Look) -> Iterator[str]:
    aud = overridden(look)
    if aud is not None:
        yield f"aud is set by audience= to {aud}: the service must know its endpoint so"
    if look.enrolled_jwk is None:
        kid = getattr(look.credential, "kid", "")
        yield f"the key {kid} must be the enrolled one (enrolled_jwk=, --enrolled-jwk compares)"
    yield f"sub {look.client.subject} must be what enrollment returned"
    yield "an administrator must have approved the integration, and not revoked it"
    skew = look.client.clock_skew
    if skew is None:
        yield "this machine's clock: the service has not shown its own"
    elif abs(skew) > _error(look):
        yield f"this machine's clock, which differs by {abs(skew):,.0f} s"


def scopes(look: Look) -> Seen:
    """Whether all scopes that are asked for are granted."""
    asked = " ".join(look.handle.settings()["scopes"])
    facts, error = look.exchange()
    if isinstance(error, ScopeError):
        return fail(error)
    if facts is None:
        return skipped(_NONE_NEEDED)
    if facts["scopes"] is None:
        return ok(f"asked for {asked}; the service does not say which it grants")
    return ok(f"granted as asked for: {asked}")
