"""The private key, or the client certificate."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._doctor.seen import Seen, fail, ok, skipped, told, warn
from siteline._times import to_second
from siteline.credentials import Credential, MutualTls
from siteline.errors import ConfigError, CredentialError

if TYPE_CHECKING:
    from siteline._doctor.look import Look

__all__: list[str] = []

SOON = timedelta(days=14)
"""A certificate that ends within this time is warned of."""
_LONGEST_JWK = 65_536


def key(look: Look) -> Seen | list[tuple[str, Seen]]:
    """Whether the key opens, is long enough, is ours alone, and is the enrolled one."""
    if look.key_error is not None:
        return fail(look.key_error)
    if look.has_agent:
        return skipped("the agent has it")
    credential = look.credential
    if isinstance(credential, MutualTls):
        return [("client certificate", _certificate(look, credential))]
    bits = _bits(credential)
    seen = f"RSA of {bits} bits, thumbprint {credential.kid}"
    if look.enrolled_jwk is not None:
        enrolled = _enrolled_thumbprint(look.enrolled_jwk)
        if enrolled != credential.kid:
            return fail(
                CredentialError(f"This is not the enrolled key: {seen}; enrolled is {enrolled}."),
                do="Use the key that was enrolled, or enroll this one and have it approved.",
            )
        seen += ", which is enrolled"
    file = _doors.key_file(credential)
    if file is None:
        return ok(seen)
    seen += f"; {file}"
    mode = _open_mode(os.fspath(file))
    if mode is not None:
        return warn(f"{seen}, which others can read ({mode:04o})", f"chmod 600 {file}")
    return ok(seen)


def _bits(credential: Credential) -> int:
    text = credential.public_jwk["n"]
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))).bit_length()


def _open_mode(file: str) -> int | None:
    """Return the mode of a file that others than its owner can read."""
    if os.name != "posix":
        return None
    mode = os.stat(file).st_mode & 0o777
    return mode if mode & 0o077 else None


def _enrolled_thumbprint(given: Mapping[str, Any] | str | os.PathLike[str]) -> str:
    jwk = given if isinstance(given, Mapping) else _read_jwk(os.fspath(given))
    try:
        # Only to have it read as an enrolled key is: nothing is signed.
        return Credential("doctor", signer=bytes, public_jwk=jwk).kid
    except (CredentialError, TypeError) as error:
        raise ConfigError(
            f"enrolled_jwk is not a public key of an enrollment: {told(error)}",
            hint="It is the JSON that keygen printed, with kty, n and e.",
        ) from None


def _read_jwk(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        body = file.read(_LONGEST_JWK)
    try:
        jwk = json.loads(body)
    except ValueError:
        jwk = None
    if not isinstance(jwk, dict):
        raise ConfigError(f"{path} is not a JWK, which is one JSON object.")
    # As keygen --json has it.
    inner = jwk.get("public_jwk")
    return inner if isinstance(inner, dict) else jwk


def _certificate(look: Look, certificate: MutualTls) -> Seen:
    """Whether it is within its time. That its key belongs to it was checked when it was read."""
    if look.enrolled_jwk is not None:
        return fail(ConfigError("enrolled_jwk belongs to a credential, not to a certificate."))
    now = look.handle.settings()["now"]
    begins, ends = certificate.not_before, certificate.not_after
    seen = f"{certificate.subject}, with its key, until {to_second(ends)} UTC"
    if now >= ends:
        return fail(CredentialError(f"The client certificate has expired: {seen}."), do=_RENEW)
    if now < begins:
        return fail(
            CredentialError(f"The client certificate is valid from {to_second(begins)} UTC on.")
        )
    return warn(seen, _RENEW) if ends - now < SOON else ok(seen)


_RENEW = "Replace its files by those of a new certificate with the same subject."
