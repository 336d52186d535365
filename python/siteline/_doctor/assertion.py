"""Our own assertion: signed as for a token request, and not sent (§2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._doctor.seen import Seen, ok, skipped, warn
from siteline.errors import ConfigError, CredentialError

if TYPE_CHECKING:
    from siteline._doctor.look import Look

__all__: list[str] = []

UNSIGNED = "the signer is an async function, which only an AsyncClient awaits"
_TOKEN_PATH = "/api/customer/oauth/token"


def assertion(look: Look) -> Seen:
    """Whether the key signs it."""
    if look.has_agent:
        return skipped("the agent signs it")
    try:
        if not look.handle.try_signature().wait():
            return skipped("a client certificate proves who we are")
    except CredentialError:
        raise
    except ConfigError:
        return skipped(UNSIGNED)
    lifetime, aud = look.handle.settings()["assertion_lifetime"], overridden(look)
    usual = look.client.base_url + _TOKEN_PATH
    seen = f"signed by the key, as §2.1 has it, for {lifetime} s; aud {aud or usual}"
    if aud is None:
        return ok(seen)
    return warn(
        f"{seen} by audience=, in the place of {usual}",
        "Right only where the service knows its token endpoint by another address.",
    )


def overridden(look: Look) -> str | None:
    """Return the ``aud`` that was set instead of the usual one."""
    audience: str | None = look.handle.settings()["audience"]
    return audience if audience != look.client.base_url + _TOKEN_PATH else None
