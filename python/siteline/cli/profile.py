"""``siteline profile``: the profiles of the configuration file."""

from __future__ import annotations

import os
import shlex
from typing import Any

from siteline._escape import escaped
from siteline.cli.arguments import Commands, Options, add_actions, add_command
from siteline.cli.clients import profiles_file
from siteline.cli.output import Outcome, aligned, error_members, hint
from siteline.cli.profile_file import append_profile, read_profiles
from siteline.cli.profile_members import add_members, members_of, shown
from siteline.errors import ConfigError, SitelineError


def add(commands: Commands) -> None:
    """Adds the command."""
    actions = add_actions(commands, "profile", "SITELINE_CONFIG names the file.")
    init = add_command(
        actions,
        "init",
        _init,
        "Other users can see a command line, so give no secret in it.",
        summary="append a profile to the file",
        example="siteline profile init plant-a --base-url https://customer.example.com \\\n"
        "    --subject SUBJECT --private-key-file plant-a.pem",
        options={"name NAME": "the name of the new profile"},
    )
    add_members(init)
    example = "siteline profile list"
    add_command(actions, "list", _list, summary="list the profiles", example=example)
    add_command(
        actions,
        "show",
        _show,
        "Settings that may contain a secret are shown as (set).",
        summary="show the settings of a profile",
        example="siteline profile show plant-a",
        options={"name NAME": "its name"},
    )


def _init(options: Options) -> Outcome:
    members = members_of(options)
    _check(members)
    path = profiles_file()
    append_profile(path, options.name, members)
    missing = _missing(options.name)
    told = error_members(missing, options.known)["error"] if missing else None
    known = {"name": options.name, "path": path, "members": shown(members), "missing": told}
    text = f'The profile "{options.name}" is in {path}.'
    if told:
        text += f"\nBefore you can use it: {told['message']}"
        return Outcome(known, "\n  ".join(filter(None, [text, told["hint"]])))
    hint(f"Next: siteline doctor --profile {shlex.quote(options.name)}")
    return Outcome(known, text)


def _check(members: dict[str, Any]) -> None:
    # A client of these settings must exist before anything is written. The key need not exist: the
    # check uses another one, which must not create a ledger.
    from siteline import Credential, _doors

    of_credential = {
        *("base_url", "subject", "private_key_file", "password_command", "kid"),
        *("certificate_file", "client_id", "strict", "ledger", "daily_allowance"),
    }
    of_assertions = {"audience", "assertion_lifetime", "clock_tolerance", "typ"}
    settings = {name: value for name, value in members.items() if name not in of_credential}
    assertions = {name: settings.pop(name) for name in of_assertions & settings.keys()}
    if "ca_bundle" in settings:
        settings["ca_bundle"] = os.path.expanduser(settings["ca_bundle"])
    # A public key of 2048 one bits, because nothing is signed.
    public = {"kty": "RSA", "e": "AQAB", "n": f"{'_' * 341}w"}
    subject = members.get("subject", "subject")
    credential = Credential(subject, signer=bytes, public_jwk=public, **assertions)
    url = members["base_url"]
    _doors.with_settings(url, credential=credential, ledger="memory", **settings).close()


def _missing(name: str) -> SitelineError | None:
    from siteline import Client

    try:
        Client(profile=name).close()
    except SitelineError as error:
        return error
    return None


def _list(options: Options) -> Outcome:
    path = profiles_file()
    known = {name: shown(members) for name, members in read_profiles(path).items()}
    names = ("base_url", "subject", "certificate_file")
    profiles = [
        {"name": name, **{key: members.get(key) for key in names}}
        for name, members in known.items()
    ]
    rows = [
        (one["name"], one["base_url"] or "-", one["subject"] or one["certificate_file"] or "-")
        for one in profiles
    ]
    text = aligned(rows) if rows else f"There are no profiles in {escaped(path)}."
    return Outcome({"path": path, "profiles": profiles}, text)


def _show(options: Options) -> Outcome:
    path = profiles_file()
    profiles = read_profiles(path)
    if options.name not in profiles:
        known = ", ".join(profiles)
        raise ConfigError(
            f'There is no profile "{options.name}" in {path}.',
            hint=f"It has: {known}." if known else "It has no profiles.",
        )
    members = shown(profiles[options.name])
    rows = [(name, _text(value)) for name, value in members.items()]
    return Outcome({"name": options.name, "path": path, "members": members}, aligned(rows))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(value) if isinstance(value, list) else str(value)
