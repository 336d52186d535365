"""``siteline token --check``: whether a token can be had. It is never printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from siteline.cli.arguments import add_command
from siteline.cli.clients import client_of
from siteline.cli.output import Outcome, aligned
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse

    from siteline import Client
    from siteline.cli.arguments import _Commands

__all__ = ["add"]

_DISCOVERY_SCOPE = "customer.discovery.read"


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "token",
        _run,
        SUMMARIES["token"],
        "Costs a token request, whose number is limited over the whole integration (§5.4), and a "
        "discovery request; nothing of the daily allowance. A token is never printed.",
    )
    made.add_argument(
        "--check", action="store_true", help="required: there is nothing else to do with a token"
    )


class _Check(NamedTuple):
    """What came of a check that found no fault."""

    scopes: list[str] | None
    """Those that were asked for, where they are known."""
    lifetime: int | None
    """That of the token in seconds; ``None`` where the service needs none."""
    names_scopes: bool
    """Whether the reply said which scopes it grants: then all that were asked for are."""
    refusal: str | None
    """Why discovery was refused to a token that did not ask for its scope."""
    token_requests: int


def _run(options: argparse.Namespace) -> Outcome:
    from siteline.errors import ConfigError

    if not options.check:
        raise ConfigError(
            "A token is never printed: whoever has it can read with it.",
            hint="siteline token --check says whether one can be had.",
        )
    with client_of(options) as client:
        check = _check(client)
        members = {"base_url": client.base_url, "subject": client.subject, **_members(check)}
        return Outcome(members, aligned([*_subject(client), *_rows(check)]))


def _check(client: Client) -> _Check:
    from siteline.cli.token_log import TokenLog
    from siteline.errors import ScopeError

    scopes = _scopes_of(client)
    before = client.allowance
    refusal = None
    with TokenLog() as log:
        try:
            client.discover()
        except ScopeError as error:
            # Which endpoint needs which scope is not shown (§5.7): the token is good all the same.
            if log.lifetime is None or scopes is None or _DISCOVERY_SCOPE in scopes:
                raise
            refusal = error.message
    after = client.allowance
    known = before.token_requests if after.resets_at == before.resets_at else 0
    spent = after.token_requests - known
    return _Check(scopes, log.lifetime, log.names_scopes, refusal, spent)


def _scopes_of(client: Client) -> list[str]:
    """Return the scopes that the client asks for."""
    from siteline import _doors

    scopes: list[str] = _doors.settings(client)["scopes"]
    return scopes


def _members(check: _Check) -> dict[str, Any]:
    is_known = check.lifetime is not None and check.names_scopes
    return {
        "needs_token": check.lifetime is not None,
        "scopes_asked": check.scopes,
        "scopes_granted": check.scopes if is_known else None,
        "lifetime_seconds": check.lifetime,
        "discovery_refused": check.refusal,
        "token_requests": check.token_requests,
    }


def _subject(client: Client) -> list[tuple[str, str]]:
    return [("service", client.base_url), ("subject", client.subject)]


def _rows(check: _Check) -> list[tuple[str, str]]:
    discovery = ("discovery", "works" if check.refusal is None else check.refusal)
    if check.lifetime is None:
        return [("token", "none is needed: the client certificate authorises"), discovery]
    granted = "all of them" if check.names_scopes else "the service does not say"
    plural = "" if check.token_requests == 1 else "s"
    return [
        ("token", f"works, for {check.lifetime} s"),
        ("scopes asked for", "not known" if check.scopes is None else " ".join(check.scopes)),
        ("granted", granted),
        discovery,
        ("cost", f"{check.token_requests} token request{plural}, no data request"),
    ]
