"""How a task gets tokens and an allowance: from the driver's agent, or with its own key."""

from __future__ import annotations

import os
import pickle
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline.client import Client
from siteline.errors import ConfigError

if TYPE_CHECKING:
    from siteline.agent import Agent

# The credentials for an agent on a network, and a sandbox's clock. They are sent with the class,
# because an executor does not have the driver's environment.
_SECRET, _CLOCK = "SITELINE_AGENT_SECRET", "SITELINE_SANDBOX_CLOCK"
_VARIABLES = (
    *(_SECRET, "SITELINE_AGENT_CA", "SITELINE_AGENT_CERTIFICATE_FILE"),
    *("SITELINE_AGENT_KEY_FILE", _CLOCK),
)
# The client's own settings. The agent decides all others.
_OWN = (
    *("settle_lag", "tries", "connect_timeout", "response_timeout", "idle_timeout"),
    *("max_connections", "max_body_bytes", "application", "allow_http"),
    *("ca_bundle", "proxy", "tz", "shape"),
)
_environment = threading.Lock()


def this_host() -> str:
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{platform.node()} {boot}"


@dataclass(frozen=True)
class Access:
    """The settings for the workers, without key, token or passphrase.

    ``variables`` may contain the secret of an agent, which no option and no repr shows.
    """

    base_url: str
    own: bytes | None = field(repr=False)
    """The pickled settings of a client with its own key, if they can be pickled. They are loaded
    only without an agent, because the host may not have the key."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The settings of a client of the agent."""
    agent: str | None = None
    variables: dict[str, str] = field(default_factory=dict, repr=False)
    host: str = field(default_factory=this_host)
    has_file: bool = True
    """Whether all processes of a host share a ledger file."""

    @classmethod
    def of(cls, client: Client, agent: Agent | None) -> Access:
        given, own = dict[str, Any](), None
        try:
            given = _doors.handle(client).__getnewargs_ex__()[1]
            own = pickle.dumps(given)
        except TypeError as error:  # a key or passphrase in memory is not sent
            _check_given(client, error)
        address = (given.get("agent") if agent is None else agent.address) or None
        settings = {name: given[name] for name in _OWN if name in given}
        has_file = _doors.handle(client).settings()["ledger"] is not None
        variables = _variables(address, agent)
        return cls(client.base_url, own, settings, address, variables, has_file=has_file)

    @property
    def is_for_all_hosts(self) -> bool:
        return self.agent is not None and self.agent.startswith("https:")

    @property
    def is_shared(self) -> bool:
        """Whether this process uses the driver's request counter."""
        if self.agent is None:
            return self._is_here and self.has_file
        return self._is_here or self.is_for_all_hosts

    @property
    def _is_here(self) -> bool:
        return self.host == this_host()

    def client(self, share: int | None = None) -> Client:
        """Return a client for this process. The caller closes it.

        If the driver's allowance is out of reach, the client may make ``share`` requests.
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
                "The driver's key is only in its memory, so tasks cannot use it.",
                hint="Let tasks of other hosts use an agent over a network: "
                "siteline.Agent(client, listen='https://...'), or name a profile.",
            )
        with self._with_variables():
            return _doors.with_settings(self.base_url, **settings)

    @contextmanager
    def _with_variables(self) -> Iterator[None]:
        """Set the variables while a client is made. It reads them only then."""
        with _environment:
            before = {name: os.environ[name] for name in self.variables if name in os.environ}
            os.environ.update(self.variables)
            try:
                yield
            finally:
                for name in self.variables:
                    os.environ.pop(name, None)
                os.environ.update(before)


def _variables(address: str | None, agent: Agent | None) -> dict[str, str]:
    """Return the variables to send. An agent on a local socket needs no secret."""
    is_local = address is not None and not address.startswith("https:")
    names = (_CLOCK,) if is_local else _VARIABLES
    found = {name: os.environ[name] for name in names if name in os.environ}
    if agent is not None:
        found.pop(_SECRET, None)  # it belongs to another agent
        found |= {name: value for name, value in agent.env().items() if name in names}
    return found


def _check_given(client: Client, error: TypeError) -> None:
    # Tasks must not lose a setting silently.
    lost = [name for name in _doors.handle(client).settings()["given"] if name in _OWN]
    if lost:
        text = f"The client's {', '.join(lost)} cannot be sent to tasks: {error}"
        raise ConfigError(text) from error


def own_access(profile: str | None) -> Access:
    """Return the access for a profile that is not registered, or for the environment."""
    with Client(profile=profile) as client:
        return Access.of(client, None)
