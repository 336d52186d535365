"""A customer of a sandbox that several tests share."""

from __future__ import annotations

from typing import Any

import siteline

from kit.keys import private_key


class Tenant:
    """One integration of a shared sandbox: its own subject, token, allowance and request counts.

    The counts are those since the tenant was made. They are exact if the tests before it left no
    request open. A test that drops requests, moves the clock or loads data needs the fixture
    `sandbox` instead.
    """

    def __init__(self, sandbox: siteline.Sandbox) -> None:
        self.sandbox = sandbox
        self.key = private_key()
        self.subject = sandbox.enroll(self.key.public_jwk)
        self.credential = siteline.Credential(self.subject, self.key)
        self._before = sandbox.stats
        self._clients: list[Any] = []

    @property
    def base_url(self) -> str:
        return self.sandbox.base_url

    @property
    def clock(self) -> siteline.Clock:
        return self.sandbox.clock

    def client(self, **options: Any) -> siteline.Client:
        """A client of this integration, closed when the test ends."""
        client = siteline.Client(self.base_url, **self._settings(options))
        self._clients.append(client)
        return client

    def async_client(self, **options: Any) -> siteline.AsyncClient:
        """An asynchronous client of this integration."""
        return siteline.AsyncClient(self.base_url, **self._settings(options))

    def _settings(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"credential": self.credential, "clock": self.clock, **options}

    def requests(self, kind: str = "data") -> int:
        """The requests to this endpoint: `token`, `discovery` or `data`."""
        name = f"{kind}_requests"
        return self.sandbox.stats[name] - self._before[name]

    def fault(self, **options: Any) -> None:
        """A fault of the service until the test ends."""
        self.sandbox.fault(**options)

    def truth(self, **query: Any) -> siteline.Table:
        """The points of the service."""
        return self.sandbox.truth(**query)

    def close(self) -> None:
        """Remove the faults, and close the clients."""
        self.sandbox.clear_faults()
        for client in self._clients:
            client.close()
