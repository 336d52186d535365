"""How a task comes to tokens and an allowance: through the driver's agent, or on its own."""

from __future__ import annotations

import os
import pickle
import platform
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline.client import Client
from siteline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteline.agent import Agent

# What proves a client to an agent over a network, and a sandbox's clock. They travel with the
# class, because the environment of the driver is not that of an executor.
_SECRET, _CLOCK = "SITELINE_AGENT_SECRET", "SITELINE_SANDBOX_CLOCK"
_VARIABLES = (
    _SECRET,
    "SITELINE_AGENT_CA",
    "SITELINE_AGENT_CERTIFICATE_FILE",
    "SITELINE_AGENT_KEY_FILE",
    _CLOCK,
)
# The settings that a client of an agent has of its own. All others are the agent's.
_OWN = (
    "settle_lag",
    "tries",
    "connect_timeout",
    "response_timeout",
    "idle_timeout",
    "max_connections",
    "max_body_bytes",
    "application",
    "allow_http",
    "ca_bundle",
    "proxy",
    "tz",
    "shape",
)
_environment = threading.Lock()


def this_host() -> str:
    """Return what tells this machine, since its start, from others."""
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{platform.node()} {boot}"


@dataclass(frozen=True)
class Access:
    """What travels to the workers. No key, token or passphrase is in it.

    The secret of an agent over a network is: it travels with the class, beside no option, and is
    not shown.
    """

    base_url: str
    own: bytes | None = field(repr=False)
    """The settings of a client with its own key, pickled; ``None`` where they cannot be. They are
    opened where they are needed: with an agent the key need not be there."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Those of a client of the agent."""
    agent: str | None = None
    """Its address."""
    variables: dict[str, str] = field(default_factory=dict, repr=False)
    host: str = field(default_factory=this_host)
    """The driver's."""
    has_file: bool = True
    """Whether the ledger is a file, in which all processes of a host count, and not in memory."""

    @classmethod
    def of(cls, client: Client, agent: Agent | None) -> Access:
        """What workers need to read what this client reads."""
        given: dict[str, Any] = {}
        own = None
        try:
            given = _doors.pickled(client)
            own = pickle.dumps(given)
        except TypeError as error:  # a key or passphrase that was given itself stays here
            _check_given(client, error)
        address = (given.get("agent") if agent is None else agent.address) or None
        settings = {name: given[name] for name in _OWN if name in given}
        return cls(
            client.base_url,
            own,
            settings,
            address,
            _variables(address, agent),
            has_file=_doors.settings(client)["ledger"] is not None,
        )

    @property
    def is_for_all_hosts(self) -> bool:
        """Whether tasks on every host can use the agent."""
        return self.agent is not None and self.agent.startswith("https:")

    @property
    def is_shared(self) -> bool:
        """Whether what this process requests is counted where the driver's requests are."""
        if self.agent is None:
            return self._is_here and self.has_file
        return self._is_here or self.is_for_all_hosts

    @property
    def _is_here(self) -> bool:
        return self.host == this_host()

    def client(self, share: int | None = None) -> Client:
        """Make a client for this process, to be closed by the caller.

        Where the driver's allowance cannot be used, ``share`` is all that it may request.
        """
        if self.agent is not None and self.is_shared:
            settings = {**self.settings, "agent": self.agent}
        elif self.own is not None:
            settings = pickle.loads(self.own)
            if not self._is_here:
                settings = {**settings, "agent": ""}
                settings.pop("ledger", None)
            if share is not None and not self.is_shared:
                settings = {**settings, "ledger": "memory", "daily_allowance": share}
        else:
            raise ConfigError(
                "The driver's key was given itself, so that it stays there.",
                hint="Let tasks of other hosts use an agent over a network: "
                "siteline.Agent(client, listen='https://...'), or name a profile.",
            )
        with self._with_variables():
            return _doors.with_settings(self.base_url, **settings)

    @contextmanager
    def _with_variables(self) -> Iterator[None]:
        """Set the variables while a client is made, which reads them then and never again."""
        with _environment:
            before = {name: os.environ.get(name) for name in self.variables}
            os.environ.update(self.variables)
            try:
                yield
            finally:
                for name, value in before.items():
                    if value is None:
                        os.environ.pop(name, None)
                    else:
                        os.environ[name] = value


def _variables(address: str | None, agent: Agent | None) -> dict[str, str]:
    """Return the variables that travel; an agent on a socket of the machine needs no secret."""
    is_local = address is not None and not address.startswith("https:")
    names = (_CLOCK,) if is_local else _VARIABLES
    found = {name: os.environ[name] for name in names if name in os.environ}
    if agent is not None:
        found.pop(_SECRET, None)  # of another agent
        found |= {name: value for name, value in agent.env().items() if name in names}
    return found


def _check_given(client: Client, error: TypeError) -> None:
    """Refuse a client whose settings would be others in its tasks, and say why."""
    lost = [name for name in _doors.settings(client)["given"] if name in _OWN]
    if lost:
        raise ConfigError(
            f"{', '.join(lost)} of the client cannot travel to tasks: {error}"
        ) from error


def own_access(profile: str | None) -> Access:
    """Return the access of a profile that was not registered, or of the environment."""
    with Client(profile=profile) as client:
        return Access.of(client, None)
