"""Our own assertion: made as for a token request, taken apart, and not sent (§2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline._core import MutualTls
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline.errors import ConfigError, CredentialError, InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteline._doctor.look import Look

__all__: list[str] = []

UNSIGNED = "the signer is an async function, which only an AsyncClient awaits"
_TOKEN_PATH = "/api/customer/oauth/token"
_CLAIMS = {"iss", "sub", "aud", "iat", "nbf", "exp"}
_LONGEST_LIFETIME, _LARGEST_TOLERANCE, _LONGEST_JTI = 300, 60, 128


def assertion(look: Look) -> Seen:
    """Whether it is signed by our key, and its header and claims are those of §2.1."""
    if look.has_agent:
        return skipped("the agent signs it")
    if isinstance(look.credential, MutualTls):
        return skipped("a client certificate proves who we are")
    try:
        made = look.handle.own_assertion().wait()
    except CredentialError:
        raise
    except ConfigError:
        return skipped(UNSIGNED)
    assert made is not None
    wrong = list(_wrong(made, look.credential.kid, look.client.subject))
    if wrong:
        return fail(
            InternalError(f"An assertion of ours is not as §2.1 has it: {', '.join(wrong)}.")
        )
    usual = look.client.base_url + _TOKEN_PATH
    aud, lifetime = made["claims"]["aud"], _lifetime(made["claims"])
    seen = f"signed by the key, as §2.1 has it, for {lifetime} s; aud {aud}"
    if aud == usual:
        return ok(seen)
    return warn(
        f"{seen} by audience=, in the place of {usual}",
        "Right only where the service knows its token endpoint by another address.",
    )


def overridden(look: Look) -> str | None:
    """Return the ``aud`` that was set in the place of the usual one, if one was."""
    audience: str | None = look.handle.settings()["audience"]
    return audience if audience != look.client.base_url + _TOKEN_PATH else None


def _wrong(made: dict[str, Any], kid: str, subject: str) -> Iterator[str]:
    header, claims, jti = made["header"], made["claims"], made["jti_length"]
    if not made["is_verified"]:
        yield "its signature does not match"
    if header not in ({"alg": "RS256", "kid": kid}, {"alg": "RS256", "kid": kid, "typ": "JWT"}):
        yield "its header"
    if set(claims) != _CLAIMS:
        yield "its claims"
        return
    if not claims["iss"] == claims["sub"] == subject:
        yield "iss and sub"
    if not 0 < _lifetime(claims) <= _LONGEST_LIFETIME:
        yield "exp"
    if not 0 <= claims["iat"] - claims["nbf"] <= _LARGEST_TOLERANCE:
        yield "nbf"
    if jti is None or not 0 < jti <= _LONGEST_JTI:
        yield "jti"


def _lifetime(claims: dict[str, Any]) -> int:
    lifetime: int = claims["exp"] - claims["iat"]
    return lifetime
