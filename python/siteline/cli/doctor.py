"""``siteline doctor``: what is wrong, in the order of cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline.cli.arguments import add_command
from siteline.cli.exits import Exit, status_of
from siteline.cli.output import Outcome, say
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse

    from siteline.cli.arguments import _Commands

__all__ = ["add"]


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "doctor",
        _run,
        SUMMARIES["doctor"],
        "Sends at most one token request, one discovery request and one request for a page of the "
        "daily allowance, and changes nothing. The exit status is that of the first check that "
        "failed; 0 where none did.",
    )
    made.add_argument("--offline", action="store_true", help="open no connection")
    made.add_argument(
        "--enrolled-jwk", metavar="FILE", help="the public key that was enrolled, to compare with"
    )
    made.add_argument(
        "--store", metavar="STORE", action="append", default=[], help="a store; again for more"
    )


def _run(options: argparse.Namespace) -> Outcome:
    from siteline._doctor.checks import examine
    from siteline._doctor.look import Look

    look = Look(
        None,
        profile=options.profile,
        offline=options.offline,
        enrolled_jwk=options.enrolled_jwk,
        stores=options.store,
    )
    say(f"siteline: sends {look.sends}")
    with look:
        diagnosis = examine(look)
    error = look.first_error
    status = Exit.DONE if error is None else status_of(error)
    return Outcome(diagnosis.to_dict(), str(diagnosis).partition("\n\n")[2], status)
