"""An integration of a sandbox that several tests share."""

from typing import Any

import siteline

from kit.keys import private_key


class Tenant:
    """An integration of a shared sandbox with its own subject, token, allowance and request counts.

    The counts start when the tenant is created. They are exact if the earlier tests left no request
    open. A test that drops requests, moves the clock or loads data needs the fixture `sandbox`
    instead.
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
    def clock(self) -> siteline.testing.Clock:
        return self.sandbox.clock

    def credential_over(self) -> siteline.Credential:
        """Returns a credential for a client whose base URL is another address of the service."""
        audience = f"{self.base_url}/api/customer/oauth/token"
        return siteline.Credential(self.subject, self.key, audience=audience)

    def client(self, **options: Any) -> siteline.Client:
        """Returns a client of this integration. It is closed when the test ends."""
        client = siteline.Client(self.base_url, **self._settings(options))
        self._clients.append(client)
        return client

    def async_client(self, **options: Any) -> siteline.AsyncClient:
        """Returns an asynchronous client of this integration."""
        return siteline.AsyncClient(self.base_url, **self._settings(options))

    def _settings(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"credential": self.credential, "clock": self.clock, **options}

    def requests(self, kind: str = "data") -> int:
        """Returns the number of requests to an endpoint: `token`, `discovery` or `data`."""
        name = f"{kind}_requests"
        return getattr(self.sandbox.stats, name) - getattr(self._before, name)

    def fault(self, **options: Any) -> None:
        """Sets a fault of the service until the test ends."""
        self.sandbox.fault(**options)

    def expected(self, **query: Any) -> siteline.Table:
        """Returns the points of the service."""
        return self.sandbox.expected(**query)

    def close(self) -> None:
        """Removes the faults and closes the clients."""
        self.sandbox.clear_faults()
        for client in self._clients:
            client.close()
