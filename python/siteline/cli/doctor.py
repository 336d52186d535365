"""``siteline doctor``: finds the first cause of a failure."""

from __future__ import annotations

import os
import shlex

from siteline.cli.arguments import Commands, Options, add_command
from siteline.cli.clients import profiles_file
from siteline.cli.exits import Exit, status_of
from siteline.cli.output import Outcome, hint, say
from siteline.cli.profile_file import read_profiles
from siteline.errors import ConfigError

_FIRST_STEPS = """\
There are no settings yet: no profile, and no SITELINE_* variable.
If your key is enrolled, type:
  siteline profile init plant-a --base-url URL --subject SUBJECT --private-key-file FILE
If you have no key:                  siteline keygen
To try siteline without a service:   siteline sandbox"""
_UNRELATED = {"SITELINE_CONFIG", "SITELINE_LEDGER", "SITELINE_SANDBOX_CLOCK"}


def add(commands: Commands) -> None:
    """Adds the command."""
    add_command(
        commands,
        "doctor",
        _run,
        "Sends at most one token request, one discovery request and one data request, and changes "
        "nothing. The exit status is that of the first check that failed, otherwise 0.",
        example="siteline doctor --profile plant-a --store plant.siteline",
        options={
            "--offline": "open no connection",
            "--enrolled-jwk FILE": "compare the key with this enrolled public key",
            "--store STORE …": "check a store",
        },
    )


def _run(options: Options) -> Outcome:
    from siteline._doctor.checks import examine
    from siteline._doctor.look import Look

    steps = None if options.profile or options.store else _first_steps()
    look = Look(None, options.profile, options.offline, options.enrolled_jwk, options.store)
    if not steps:
        say(f"Sends {look.sends}.")
    diagnosis, error = examine(look)
    status = Exit.DONE if error is None else status_of(error)
    if error is None and not options.offline:
        hint("Next: siteline series")
    return Outcome(diagnosis.to_dict(), steps or str(diagnosis).partition("\n\n")[2], status)


def _first_steps() -> str | None:
    if any(name.startswith("SITELINE_") and name not in _UNRELATED for name in os.environ):
        return None
    try:
        path = profiles_file()
        profiles = list(read_profiles(path))
    except (ConfigError, OSError):
        return None
    if not profiles:
        return _FIRST_STEPS
    if "default" in profiles:
        return None
    return (
        f'No profile is selected, and {path} has no profile "default".\n'
        f"Type: siteline doctor --profile {shlex.quote(profiles[0])}\n"
        f"It has: {', '.join(profiles[:20])}"
    )
