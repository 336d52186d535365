"""The settings: which file was read, and which variable won; and the client that they make."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._doctor.seen import Seen, fail, ok, warn
from siteline.credentials import Credential, PrivateKey
from siteline.errors import AgentUnavailable, ConfigError, CredentialError, SitelineWarning

if TYPE_CHECKING:
    from siteline._doctor.look import Look
    from siteline.client import Client

__all__: list[str] = []


def settings(look: Look) -> Seen:
    """Make the client, or take the one that was given."""
    if look.given is not None:
        look.use(_doors.sending_once(look.given))
        names = ["base_url", "credential", *_doors.settings(look.client)["given"]]
        return ok(f"{_whose(look)}; given in the program: {', '.join(names)}")
    told = _told(look)
    try:
        _make(look, told)
    except AgentUnavailable as error:
        look.agent_error = error
        return ok("an agent is set, which is to say for which service and subject")
    except ConfigError as error:
        return fail(error)
    seen = f"{_whose(look)}; {_read(told)}"
    return warn(seen, "\n".join(look.warnings)) if look.warnings else ok(seen)


def _told(look: Look) -> dict[str, Any] | None:
    """Return where the settings are from; ``None`` where an agent may have what is missing."""
    try:
        return _doors.sources(look.profile)
    except ConfigError:
        return None


def _make(look: Look, told: dict[str, Any] | None) -> None:
    """Make the client; with a key that cannot be used the rest is still looked at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SitelineWarning)
        try:
            look.use(_once(look.profile))
        except CredentialError as error:
            look.key_error = error
            subject = told["subject"] if told else None
            look.is_subject_known = subject is not None
            nothing = Credential(subject or "unknown", PrivateKey.generate(2048))
            look.use(_once(look.profile, credential=nothing))
    file = None if look.has_agent else _doors.key_file(look.credential)
    texts = dict.fromkeys(str(warning.message) for warning in caught)
    # The check of the key looks at its file by itself.
    look.warnings = [text for text in texts if file is None or str(file) not in text]


def _once(profile: str | None, **options: Any) -> Client:
    """Make a client that sends each request once."""
    return _doors.with_settings(profile=profile, sends_once=True, **options)


def _whose(look: Look) -> str:
    subject = f", subject {look.client.subject}" if look.is_subject_known else ""
    return f"{look.client.base_url}{subject}"


def _read(told: dict[str, Any] | None) -> str:
    if told is None:
        return "what is missing is the agent's"
    by_variables = [variable for _, variable in told["settings"] if variable]
    by_profile = [name for name, variable in told["settings"] if not variable]
    parts = [f"set by {', '.join(by_variables)}"] if by_variables else []
    if told["profile"] is None:
        file = _doors.paths()["profiles"]
        parts.append("no profile" if file is None else f"no profile is read of {file}")
    else:
        names = f": {', '.join(by_profile)}" if by_profile else " has nothing that counts"
        parts.append(f'the profile "{told["profile"]}" of {told["file"]}{names}')
    return "; ".join(parts)
