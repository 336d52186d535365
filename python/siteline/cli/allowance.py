"""``siteline allowance``: shows what is left of the daily allowance."""

from __future__ import annotations

from siteline import _doors
from siteline._times import to_second
from siteline.cli.arguments import Commands, Options, add_command
from siteline.cli.clients import client_of
from siteline.cli.output import Outcome, aligned, hint


def add(commands: Commands) -> None:
    """Adds the command."""
    add_command(
        commands,
        "allowance",
        _run,
        "Reads the ledger of this machine, and sends no request.",
        example="siteline allowance --profile plant-a",
    )


def _run(options: Options) -> Outcome:
    client = client_of(options)
    known = client.allowance
    used = f"{known.used:,}"
    if known.limit is not None:
        used += f" of {known.limit:,}, {known.left:,} left"
    tokens = f"{known.token_requests:,} today, {known.token_requests_this_hour:,} this hour"
    rows = [
        ("service", client.base_url),
        ("subject", client.subject),
        ("data requests today", used),
        ("the day ends", f"{to_second(known.resets_at)} UTC"),
        ("token requests", tokens),
    ]
    if _doors.handle(client).settings()["ledger"] is None:
        hint("There is no ledger: requests of other processes are not counted here.")
    members = {"base_url": client.base_url, "subject": client.subject, **known.to_dict()}
    return Outcome(members, aligned(rows))
