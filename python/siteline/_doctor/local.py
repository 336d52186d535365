"""The checks of this machine's settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from siteline import _doors, errors
from siteline._counts import counted
from siteline._doctor.look import Look, collected
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline._times import to_minute, to_second
from siteline.credentials import Credential, MutualTls

SOON = timedelta(days=14)
"""How long before its end a certificate is a warning."""
_LONGEST_JWK = 65_536
_RENEW = "Replace its files with a new certificate for the same subject."


def settings(look: Look) -> Seen:
    if look.given is not None:
        look.client = _doors.sending_once(look.given)
        names = ["base_url", "credential", *look.settings["given"]]
        return ok(f"{_who(look)}; set in the program: {', '.join(names)}")
    sources: dict[str, Any] | None = None
    with suppress(errors.ConfigError):  # an agent may have the missing settings
        sources = _doors.sources(look.profile)
    try:
        with collected(look.key_warnings):
            look.client = _doors.with_settings(profile=look.profile, sends_once=True)
    except (errors.AgentUnavailable, errors.CredentialError) as error:
        look.failure = error
        return ok(_sources(sources))
    return ok(f"{_who(look)}; {_sources(sources)}")


def _who(look: Look) -> str:
    return f"{look.client.base_url}, subject {look.client.subject}"


def _sources(sources: dict[str, Any] | None) -> str:
    if sources is None:
        return "the agent has the other settings"
    by_variables = [variable for _, variable in sources["settings"] if variable]
    by_profile = [name for name, variable in sources["settings"] if not variable]
    parts = [f"set by {', '.join(by_variables)}"] if by_variables else []
    if sources["profile"] is not None:
        names = ", ".join(by_profile) or "no setting in effect"
        parts.append(f'the profile "{sources["profile"]}" of {sources["file"]}: {names}')
    return "; ".join(parts)


def agent(look: Look) -> Seen:
    if isinstance(look.failure, errors.AgentUnavailable):
        return fail(look.failure)
    if not look.has_agent:
        return skipped("no agent is set")
    place = look.settings["agent"].partition("#")[0]
    if look.offline and place.startswith("https:"):
        return skipped("offline")
    state = look.handle.look_at("agent")
    own = f"{look.client.subject} of {look.client.base_url}"
    its = f"{state['subject']} of {state['base_url']}"
    if own != its:
        error = errors.ConfigError(f"The agent at {place} has tokens for {its}, not for {own}.")
        do = "Set SITELINE_AGENT to the output of `siteline agent` for this subject."
        return fail(error, do=do)
    return ok(f"{place}: siteline {state['version']}, {state['leases']:,} leases so far")


def key(look: Look) -> Seen:
    if look.failure is not None:
        return fail(look.failure)
    if look.has_agent:
        return skipped("the agent has it")
    credential = look.handle.credential()
    if isinstance(credential, MutualTls):
        return _certificate(look, credential)
    seen = f"thumbprint {credential.kid}"
    if look.enrolled_jwk is not None:
        enrolled = _enrolled_thumbprint(look.enrolled_jwk)
        if enrolled != credential.kid:
            text = f"This is not the enrolled key: {seen}; enrolled is {enrolled}."
            do = "Use the key that was enrolled, or enroll this one and have it approved."
            return fail(errors.CredentialError(text), do=do)
        seen += ", which is enrolled"
    # Opening the key has looked at the mode of its file.
    return warn(seen, "\n".join(look.key_warnings)) if look.key_warnings else ok(seen)


def _enrolled_thumbprint(given: Mapping[str, Any] | str | os.PathLike[str]) -> str:
    jwk = given if isinstance(given, Mapping) else read_jwk(os.fspath(given))
    try:
        # Only to read it: nothing is signed.
        return Credential("doctor", signer=bytes, public_jwk=jwk).kid
    except errors.CredentialError as error:
        text = f"enrolled_jwk is not the public key of an enrollment: {error.message}"
        raise errors.ConfigError(text) from None


def read_jwk(path: str) -> dict[str, Any]:
    """The public key in a file: a JWK, or the output of ``keygen --json``."""
    with open(path, "rb") as file:
        body = file.read(_LONGEST_JWK)
    try:
        jwk = json.loads(body)
    except ValueError:
        jwk = None
    if not isinstance(jwk, dict):
        raise errors.ConfigError(f"{path} is not a JWK, which is one JSON object.")
    inner = jwk.get("public_jwk")
    return inner if isinstance(inner, dict) else jwk


def _certificate(look: Look, certificate: MutualTls) -> Seen:
    # Reading the certificate has checked its key.
    if look.enrolled_jwk is not None:
        return fail(errors.ConfigError("enrolled_jwk is for a private key, not for a certificate."))
    now, begins, ends = look.settings["now"], certificate.not_before, certificate.not_after
    seen = f"{certificate.subject}, valid from {to_second(begins)} to {to_second(ends)} UTC"
    if not begins <= now < ends:
        text = f"The client certificate has expired, or is not valid yet: {seen}."
        return fail(errors.CredentialError(text), do=_RENEW)
    return warn(seen, _RENEW) if ends - now < SOON else ok(seen)


def ledger(look: Look) -> Seen:
    """Looks at the file without creating it."""
    if look.has_agent:
        return skipped("the agent counts")
    facts = look.settings
    file, is_named = facts["ledger"], "ledger" in facts["given"]
    if file is None:
        return ok("in memory: only this process counts its requests")
    do = "Name a writable file with ledger= or SITELINE_LEDGER."
    try:
        if look.handle.look_at("ledger"):
            return ok(f"{file} can be locked and written")
    except errors.StoreCorrupt:
        raise
    except errors.StoreError as error:
        # Without a limit, the requests of an unnamed ledger are counted in memory.
        limit = look.client.allowance.limit
        if is_named or limit is not None or type(error) is not errors.StoreError:
            return fail(error, do=error.hint or do)
        return warn(f"{error.message.rstrip('.')}; requests are counted in memory", do)
    return ok(f"{file} does not exist yet")


def allowance(look: Look) -> Seen:
    state = look.client.allowance
    tokens = counted(state.token_requests, "token request")
    if state.limit is None or state.left is None:
        return ok(f"{counted(state.used, 'request')} today, no limit is set; {tokens}")
    until = f"until {to_minute(state.resets_at)} UTC"
    seen = f"{state.used:,} of {state.limit:,} used, {state.left:,} left {until}; {tokens}"
    if state.left == 0:
        error = errors.AllowanceExhausted("The daily allowance is spent.", retry_at=state.resets_at)
        return fail(error, seen, f"Wait {until}, or raise daily_allowance= if more is allowed.")
    if state.left * 10 < state.limit:
        return warn(seen, "Less than a tenth is left. --dry-run shows the cost of a read or sync.")
    return ok(seen)
