"""``siteline.Agent``: one token and one allowance for many processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from siteline._core import AgentHandle
from siteline._escape import escaped
from siteline._handles import Closing, OfThisProcess
from siteline._keywords import strict
from siteline._records.allowance import AgentState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteline import Client

__all__ = ["Agent"]


class Agent(OfThisProcess, Closing):
    """Shares the token and the allowance of one client with many processes.

    An agent is a thread of the process that has the key and the ledger. Clients in other processes
    get access tokens and permission for pages from it, but never the key.

    With the environment variables of :meth:`env` each :class:`siteline.Client` of another process
    uses the agent. After :meth:`close` it raises :class:`AgentUnavailable`. Pages are counted
    before clients get them: a process that is killed counts too many pages, never too few.

    Args:
        client: A client with a :class:`siteline.Credential`. The agent uses its settings.
        listen: ``"unix:PATH"`` is a socket for this machine (mode 0600, in a folder with mode
            0700). ``"https://HOST:PORT"`` is for other machines; port 0 selects a free port.
            ``"systemd"`` is the socket that systemd has opened. ``None`` creates a new socket.
        allow_uids: Numbers of other users who may use the socket.
        tls_certificate: PEM file with the certificate of the agent and its chain, for https.
        tls_key: PEM file with the key of this certificate.
        client_authority: PEM file with the authority that signs the certificates of clients.
            Without it, clients send a secret, which :meth:`env` contains.
        names: A name of ``HOST`` for :attr:`address`. Only the first counts.

    Raises:
        ConfigError: A setting is wrong.

    >>> with siteline.Agent(client) as agent:
    ...     with siteline.Client(client.base_url, agent=agent.address) as other:
    ...         len(other.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T01:00Z",
    ...                        interval="1h").collect()) > 0
    ...     agent.state.allowance.used
    True
    1
    """

    _instead = "another process uses it by its address"

    @strict
    def __init__(
        self,
        client: Client,
        *,
        listen: str | None = None,
        allow_uids: Iterable[int] = (),
        tls_certificate: str | os.PathLike[str] | None = None,
        tls_key: str | os.PathLike[str] | None = None,
        client_authority: str | os.PathLike[str] | None = None,
        names: Iterable[str] = (),
    ) -> None:
        """Start an agent."""
        listen = _own_socket() if listen is None else listen
        files = (tls_certificate, tls_key, client_authority)
        self._handle = AgentHandle(client._handle, listen, list(allow_uids), files, list(names))

    @property
    def address(self) -> str:
        """The value of ``SITELINE_AGENT`` and ``agent=``: socket, service and subject."""
        return self._handle.address

    @property
    def state(self) -> AgentState:
        """The allowance and the leases, counted by the agent.

        Raises:
            ClosedError: The agent is closed.
        """
        return AgentState._restore(self._handle.state())

    def env(self) -> dict[str, str]:
        """Return the environment variables for a process that uses the agent.

        ``SITELINE_AGENT``, and ``SITELINE_AGENT_SECRET`` if clients send a secret.
        """
        secret = self._handle.secret()
        more = {} if secret is None else {"SITELINE_AGENT_SECRET": secret}
        return {"SITELINE_AGENT": self.address, **more}

    def close(self) -> None:
        """End the agent and remove its socket. A second call does nothing."""
        self._handle.close()

    def _text(self) -> str:
        return f"<Agent {escaped(self.address)}{', closed' if self._handle.is_closed() else ''}>"


def _own_socket() -> str:
    import secrets
    import tempfile

    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if not (os.path.isabs(folder) and os.path.isdir(folder)):
        folder = tempfile.gettempdir()
    return f"unix:{os.path.join(folder, f'siteline-{secrets.token_hex(8)}', 'agent.sock')}"
