"""The members of a profile: their options, their form in TOML, and which of them may be shown."""

from __future__ import annotations

import json
import os
import re
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

__all__ = ["MEMBERS", "add_members", "members_of", "shown", "table"]


def _requests(written: str) -> int:
    if (number := int(written)) < 1:
        raise ValueError("a day has one request or more")
    return number


def _duration(written: str) -> int | float | str:
    """Return a number where it is one: text needs a unit."""
    if re.fullmatch(r"\d+", written):
        return int(written)
    return float(written) if re.fullmatch(r"\d+\.\d+", written) else written


def _path(written: str) -> str:
    """Return the full path: in the file it would begin in the file's folder, not in this one."""
    return written if written.startswith("~/") else os.path.abspath(written)


def _ledger(written: str) -> str:
    return written if written == "memory" else _path(written)


class _Member(NamedTuple):
    read: Callable[[str], Any] | None
    """Reads the value; ``None`` where the option has none and stands for ``true``."""
    metavar: str
    help: str


MEMBERS = {
    "base_url": _Member(str, "URL", "the address of the service"),
    "subject": _Member(str, "SUBJECT", "the subject that the enrollment returned"),
    "private_key_file": _Member(_path, "FILE", "the private key; it need not be there yet"),
    "password_command": _Member(
        str, "COMMAND", "a command that prints the passphrase in its first line"
    ),
    "kid": _Member(str, "KID", "the thumbprint that the key must have"),
    "certificate_file": _Member(
        _path, "FILE", "a client certificate, in the place of the subject (§5.6)"
    ),
    "client_id": _Member(str, "ID", "the client_id of token requests with that certificate"),
    "strict": _Member(None, "", "refuse a key file that other users can read"),
    "scopes": _Member(str, "SCOPES", "the scopes to ask for, in one argument, with blanks between"),
    "audience": _Member(str, "URL", "the aud of assertions, where it is another than usual"),
    "daily_allowance": _Member(_requests, "N", "the data requests of a day"),
    "allowance_resets": _Member(str, "TIME", "when the day begins, as 06:00Z"),
    "ledger": _Member(_ledger, "FILE", "the file that counts requests, or memory"),
    "agent": _Member(str, "WHERE", "the agent that has the key and counts, as unix:PATH"),
    "settle_lag": _Member(_duration, "TIME", "how far behind now a read without an end stops"),
    "assertion_lifetime": _Member(_duration, "TIME", "the lifetime of assertions (§2.1)"),
    "clock_tolerance": _Member(_duration, "TIME", "how far back their nbf is set"),
    "typ": _Member(None, "", "write typ into the header of assertions"),
    "max_retry_after": _Member(_duration, "TIME", "the longest pause that is waited for"),
    "tries": _Member(int, "N", "the attempts of a request"),
    "connect_timeout": _Member(_duration, "TIME", "the time limit of a connection"),
    "response_timeout": _Member(_duration, "TIME", "that of a reply"),
    "idle_timeout": _Member(_duration, "TIME", "that of a pause within a reply"),
    "max_connections": _Member(int, "N", "the connections at a time"),
    "max_body_bytes": _Member(int, "N", "the longest reply, decoded"),
    "application": _Member(str, "NAME", "what the User-Agent says besides"),
    "allow_http": _Member(None, "", "allow a service without TLS that is not on loopback"),
    "ca_bundle": _Member(_path, "FILE", "the certificates to trust, as PEM"),
    "tz": _Member(str, "ZONE", "the zone of dates and of times without an offset"),
    "labels": _Member(str, "WORD", "the first part of the names of series in tables"),
    "proxy": _Member(str, "URL", "the proxy; write one with a password into the file yourself"),
}
_SECRET = {"password_command", "proxy"}
"""They may hold a password."""
_LONGEST_SHOWN = 200


def add_members(made: argparse.ArgumentParser) -> None:
    """Add an option for each member."""
    groups = {
        "base_url": made.add_argument_group("the service and the credential"),
        "scopes": made.add_argument_group("other keywords of Client and Credential"),
    }
    group = groups["base_url"]
    for name, member in MEMBERS.items():
        group = groups.get(name, group)
        option = f"--{name.replace('_', '-')}"
        if member.read is None:
            group.add_argument(option, dest=name, action="store_true", help=member.help)
        else:
            group.add_argument(
                option,
                dest=name,
                type=member.read,
                metavar=member.metavar,
                help=member.help,
                required=name == "base_url",
            )


def members_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the members that were given.

    Raises `ConfigError` where they are of no kind of credential, or of two.
    """
    from siteline.errors import ConfigError

    given = {name: getattr(options, name) for name in MEMBERS}
    members = {
        name: value for name, value in given.items() if value is not None and value is not False
    }
    for name, value in members.items():
        if isinstance(value, str) and _has_stray_bytes(value):
            raise ConfigError(f"--{name.replace('_', '-')} has bytes that are not UTF-8.")
    of_subject, of_certificate = "subject" in members, "certificate_file" in members
    if of_subject == of_certificate:
        raise ConfigError(
            "One of --subject and --certificate-file is needed, and not both.",
            hint="A subject and key sign assertions (§2.1); a client certificate is for "
            "platform-managed integrations (§5.6).",
        )
    for name, belongs, to in (
        ("client_id", of_certificate, "--certificate-file"),
        ("kid", of_subject, "--subject"),
    ):
        if name in members and not belongs:
            raise ConfigError(f"--{name.replace('_', '-')} belongs to {to}.")
    return members


def _has_stray_bytes(text: str) -> bool:
    """Whether it has what Python makes of an argument's bytes that are no text: TOML has none."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def table(name: str, members: dict[str, Any], end: str) -> str:
    """Write a profile as TOML, with these ends of lines."""
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
    lines = [f"[{key}]", *(f"{key} = {_written(value)}" for key, value in members.items())]
    return "".join(line + end for line in lines)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    # The escapes of JSON are those of TOML, which wants one for DEL too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def shown(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members without what may be a secret, or may have been written by mistake."""
    return {
        name: value if name not in _SECRET and name in MEMBERS and _is_harmless(value) else "(set)"
        for name, value in members.items()
    }


def _is_harmless(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) and _is_harmless(item) for item in value)
    if isinstance(value, str):
        # Neither the text of a key in the place of its path, nor the password of an address.
        has_password = "://" in value and "@" in value
        return len(value) <= _LONGEST_SHOWN and value.isprintable() and not has_password
    # JSON has no form for a number that is not finite.
    return isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value))
