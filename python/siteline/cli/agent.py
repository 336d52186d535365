"""``siteline agent``: one token and one allowance for many processes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from siteline import _doors
from siteline._refusals import is_passing, no_process
from siteline.cli.arguments import Commands, Options, add_command, add_options
from siteline.cli.output import Outcome, document, hint
from siteline.cli.stopping import Stop
from siteline.errors import ConfigError

if TYPE_CHECKING:
    import subprocess

    from siteline import Agent

_OF_THE_KEY = ("PRIVATE_KEY", "PRIVATE_KEY_FILE", "PASSPHRASE", "PASSWORD_COMMAND")
"""Variables, after ``SITELINE_``, that clients must not have."""
_DAY = 86_400.0
_LOGS = 1.0
"""Seconds between two looks at the log records of the agent."""


def add(commands: Commands) -> None:
    """Adds the command."""
    made = add_command(
        commands,
        "agent",
        _run,
        "Prints SITELINE_AGENT=…: clients with this variable need no key. Serves until Ctrl-C or "
        "SIGTERM. `run -- COMMAND` serves one command and ends with its status; options go before "
        "`run`.",
        example="siteline agent --profile plant-a run -- python nightly.py",
        options={
            "--listen ADDRESS": "unix:PATH, https://HOST:PORT, or systemd for the socket of a "
            "socket unit; default: a socket in $XDG_RUNTIME_DIR",
            "--allow-uid N …": "let this user use the socket",
        },
    )
    tls = {
        "--tls-cert FILE": "its certificate with its chain, PEM",
        "--tls-key FILE": "the key of the certificate, PEM",
        "--client-ca FILE": "the authority of the clients' certificates; default: clients send "
        "SITELINE_AGENT_SECRET",
        "--name HOST …": "another name of this host",
    }
    add_options(made.add_argument_group("over a network (https://)"), tls)
    made.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="run -- COMMAND",
        help="the command to serve, with its arguments",
    )


def _run(options: Options) -> Outcome:
    command = _command(options)
    if command is not None:
        options.action = "run"
        with _started(options, options.listen) as agent:
            status = _served(command, agent)
        return Outcome({}, "", status, has_written=True)

    with Stop() as stop, _started(options, options.listen or _socket()) as agent:
        _say(options, agent)
        stop.wait(lambda: _doors.handle(agent).wait(_DAY))
        leases = agent.state.leases
    # The address was printed at the beginning.
    return Outcome({}, f"ended after {leases:,} leases", has_written=True)


def _command(options: Options) -> list[str] | None:
    words: list[str] = options.words
    if not words:
        return None
    command = words[2:] if words[1:2] == ["--"] else words[1:]
    if words[0] != "run" or not command:
        raise ConfigError(
            f"siteline agent takes `run -- COMMAND`, not {' '.join(words)!r}.",
            hint="siteline agent --profile NAME run -- python nightly.py",
        )
    if command[0].startswith("-"):
        raise ConfigError(
            f"{command[0]} is no command to run.", hint="Options of siteline agent go before `run`."
        )
    return command


def _started(options: Options, listen: str | None) -> Agent:
    from siteline import Agent, Client, _doors

    over_network = listen is not None and listen.startswith("https:")
    told = options.client_ca is not None or "SITELINE_AGENT_SECRET" in os.environ
    if over_network and not told and not options.words:
        raise ConfigError(
            "Over a network, clients need a certificate or a secret.",
            hint="Give --client-ca FILE. Or set SITELINE_AGENT_SECRET, here and for clients, to "
            'the output of: python -c "import secrets; print(secrets.token_urlsafe(32))"',
        )
    # The profile or the variable may name this agent for others.
    client = Client(profile=options.profile, agent="")
    agent = Agent(
        client,
        listen=listen,
        allow_uids=options.allow_uid,
        tls_certificate=options.tls_cert,
        tls_key=options.tls_key,
        client_authority=options.client_ca,
        names=options.name,
    )
    # A crash must not write the private key to disk.
    _doors.forbid_core_dumps()
    return agent


def _socket() -> str:
    import tempfile

    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(folder):
        return f"unix:{os.path.join(folder, 'siteline', 'agent.sock')}"
    user = os.getuid() if hasattr(os, "getuid") else ""
    return f"unix:{os.path.join(tempfile.gettempdir(), f'siteline-{user}', 'agent.sock')}"


def _say(options: Options, agent: Agent) -> None:
    address = agent.address
    if options.json:
        told = document(options.command, 0, {"agent": address, "pid": os.getpid()})
    else:
        told = f"SITELINE_AGENT={address}"
    # Print it now: readers wait for it, and the command does not end yet.
    print(told, flush=True)
    hint("Set it in the environment of the clients. Ctrl-C ends the agent.")


def _served(command: list[str], agent: Agent) -> int:
    import subprocess

    of_key = {f"SITELINE_{name}" for name in _OF_THE_KEY}
    kept = {name: value for name, value in os.environ.items() if name not in of_key}
    try:
        process = subprocess.Popen(command, env={**kept, **agent.env()})
    except OSError as error:
        passes = is_passing(error)
        why = no_process(error) or type(error).__name__
        raise ConfigError(f"{command[0]} cannot be run: {why}.", retryable=passes) from None
    with process, _forwarded(process):
        while True:
            try:
                status = process.wait(_LOGS)
                break
            except subprocess.TimeoutExpired:
                _doors.handle(agent).wait(0.0)
    # As in a shell: 128 plus the signal.
    return 128 - status if status < 0 else status


@contextmanager
def _forwarded(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Forwards signals to the command; a terminal sends Ctrl-C to it itself."""
    import signal

    def forward(number: int, _frame: object) -> None:
        if number != signal.SIGINT:
            process.send_signal(number)

    names = ("SIGTERM", "SIGHUP", "SIGINT")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
