"""The members of a profile: their options, their form in TOML, and which of them are secret."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

from siteline.cli.arguments import add_options
from siteline.errors import ConfigError


def _requests(written: str) -> int:
    if (number := int(written)) < 1:
        raise ValueError("a day has one request or more")
    return number


def _duration(written: str) -> int | float | str:
    if re.fullmatch(r"\d+", written):
        return int(written)
    return float(written) if re.fullmatch(r"\d+\.\d+", written) else written


def _path(written: str) -> str:
    # A relative path in the file begins in the file's folder.
    return written if written.startswith("~/") else os.path.abspath(written)


def _ledger(written: str) -> str:
    return written if written == "memory" else _path(written)


class _Member(NamedTuple):
    read: Callable[[str], Any] | None
    """Reads the value; ``None`` if the option has no value and means ``true``."""
    metavar: str = ""
    help: str | None = None
    """``None`` for members that the help does not list."""


MEMBERS = {
    "base_url": _Member(str, "URL", "the address of the service"),
    "subject": _Member(str, "SUBJECT", "the subject that the enrollment returned"),
    "private_key_file": _Member(_path, "FILE", "the private key; it need not exist yet"),
    "password_command": _Member(str, "COMMAND", "a command that prints the passphrase of the key"),
    "kid": _Member(str, "KID"),
    "certificate_file": _Member(_path, "FILE", "a client certificate, instead of a subject"),
    "client_id": _Member(str, "ID"),
    "strict": _Member(None, help="refuse a key file that other users can read"),
    "scopes": _Member(str, "SCOPES"),
    "audience": _Member(str, "URL"),
    "daily_allowance": _Member(_requests, "N", "the data requests of a day"),
    "allowance_resets": _Member(str, "TIME", "the start of that day, as 06:00Z"),
    "ledger": _Member(_ledger, "FILE"),
    "agent": _Member(str, "ADDRESS", "the agent that signs and counts, as unix:PATH"),
    "settle_lag": _Member(_duration, "DURATION", "distance from now of a read without an end"),
    "assertion_lifetime": _Member(_duration, "DURATION"),
    "clock_tolerance": _Member(_duration, "DURATION"),
    "typ": _Member(None),
    "max_retry_after": _Member(_duration, "DURATION"),
    "tries": _Member(int, "N"),
    "connect_timeout": _Member(_duration, "DURATION"),
    "response_timeout": _Member(_duration, "DURATION"),
    "idle_timeout": _Member(_duration, "DURATION"),
    "max_connections": _Member(int, "N"),
    "max_body_bytes": _Member(int, "N"),
    "application": _Member(str, "NAME"),
    "allow_http": _Member(None),
    "ca_bundle": _Member(_path, "FILE", "the certificates to trust, as PEM"),
    "tz": _Member(str, "ZONE", "zone of dates and of times without an offset"),
    "labels": _Member(str, "WORD", "the first part of the names of series in tables"),
    "proxy": _Member(str, "URL", "the proxy; write one with a password into the file yourself"),
}
_SECRET = {"password_command", "proxy"}
"""They may contain a password."""
_LONGEST_SHOWN = 200


def add_members(made: argparse.ArgumentParser) -> None:
    """Adds an option for each member."""
    from argparse import SUPPRESS

    group = made.add_argument_group(
        "settings",
        "Every other keyword of Client, Credential and Http is an option too, such as --tries 2.",
    )
    for name, member in MEMBERS.items():
        option = f"--{name.replace('_', '-')} {member.metavar}"
        more = {} if member.read is None else {"type": member.read}
        required = name == "base_url"
        add_options(group, {option: member.help or SUPPRESS}, required=required, **more)


def members_of(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the given members, which must belong to one kind of credential."""
    given = {name: getattr(options, name) for name in MEMBERS}
    members = {name: one for name, one in given.items() if one is not None and one is not False}
    for name, value in members.items():
        # Bytes that are not UTF-8 are surrogates here.
        if isinstance(value, str) and any("\ud800" <= one <= "\udfff" for one in value):
            raise ConfigError(f"--{name.replace('_', '-')} has bytes that are not UTF-8.")
    of_subject, of_certificate = "subject" in members, "certificate_file" in members
    if of_subject == of_certificate:
        raise ConfigError(
            "Give either --subject or --certificate-file.",
            hint="A subject has a private key; a client certificate is for platform-managed "
            "integrations.",
        )
    for name, belongs, to in (
        ("client_id", of_certificate, "--certificate-file"),
        ("kid", of_subject, "--subject"),
    ):
        if name in members and not belongs:
            raise ConfigError(f"--{name.replace('_', '-')} belongs to {to}.")
    return members


def table(name: str, members: dict[str, Any], end: str) -> str:
    """Returns a profile as TOML, with these line ends."""
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
    lines = [f"[{key}]", *(f"{key} = {_written(value)}" for key, value in members.items())]
    return "".join(line + end for line in lines)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    # TOML has the escapes of JSON, and requires one for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def shown(members: dict[str, Any]) -> dict[str, Any]:
    """Returns the members; a value that is or may contain a secret is ``(set)``."""
    return {
        name: value if name not in _SECRET and name in MEMBERS and _is_harmless(value) else "(set)"
        for name, value in members.items()
    }


def _is_harmless(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) and _is_harmless(item) for item in value)
    if isinstance(value, str):
        # A long text may be a key instead of its path; an address may contain a password.
        has_password = "://" in value and "@" in value
        return len(value) <= _LONGEST_SHOWN and value.isprintable() and not has_password
    # JSON has no infinite numbers.
    return isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value))
