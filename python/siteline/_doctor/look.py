"""What the checks look at, and what they send: each request once, for all that ask."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from siteline import _doors

if TYPE_CHECKING:
    from datetime import datetime

    from siteline.aio import AsyncClient
    from siteline.client import Client
    from siteline.credentials import Credential, MutualTls
    from siteline.page import Page
    from siteline.types import Discovery

__all__: list[str] = []

_PAGE_SIZE = 10


class Exchange(NamedTuple):
    """What came of the one token request, if one was needed."""

    facts: dict[str, Any] | None
    """What is known of the token; ``None`` where the certificate alone authorises, or it failed."""
    error: Exception | None


class Read(NamedTuple):
    """What came of a discovery or data request."""

    answer: Discovery | Page | None
    error: Exception | None


class Look:
    """One examination: its settings, its client, and the outcomes that several checks need."""

    def __init__(
        self,
        client: Client | AsyncClient | None,
        *,
        profile: str | None,
        offline: bool,
        enrolled_jwk: Mapping[str, Any] | str | PathLike[str] | None,
        stores: list[str],
    ) -> None:
        """Look at nothing yet."""
        self.given = client
        self.profile, self.offline = profile, offline
        self.enrolled_jwk, self.stores = enrolled_jwk, stores
        self.key_error: Exception | None = None
        """Why there is no credential: then the client has one that nothing is signed with."""
        self.agent_error: Exception | None = None
        """Why the agent could not be asked whose tokens it has: then there is no client."""
        self.first_error: BaseException | None = None
        """The exception of the first check that failed: the command's exit status is its."""
        self.is_subject_known = True
        self.warnings: list[str] = []
        """What was warned of while the client was made."""
        self._client: Client | None = None
        self._way: tuple[Any, Exception | None] | None = None
        self._exchange: Exchange | None = None
        self._discovery: Read | None = None
        self._page: Read | None = None

    def __enter__(self) -> Self:
        """Keep the client open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its connections; the client that was given has its own."""
        if self._client is not None:
            self._client.close()

    def use(self, client: Client) -> None:
        """Look at this client, which sends each request once."""
        self._client = client

    @property
    def has_client(self) -> bool:
        """Whether the settings made one."""
        return self._client is not None

    @property
    def handle(self) -> Any:
        """The inside of the client."""
        return _doors.probe(self.client)

    @property
    def client(self) -> Client:
        """The client of the settings, whose check comes before all that ask for it."""
        assert self._client is not None
        return self._client

    @property
    def has_agent(self) -> bool:
        """Whether an agent has the key and the count."""
        return self._client is not None and bool(self.handle.settings()["agent"])

    @property
    def credential(self) -> Credential | MutualTls:
        """Its credential."""
        credential: Credential | MutualTls = self.handle.credential
        return credential

    @property
    def sends(self) -> str:
        """What the checks may send."""
        if self.offline:
            return "nothing: it is offline"
        return "at most one token, one discovery and one data request"

    def way(self) -> tuple[Any, Exception | None]:
        """Go the way to the service; how far it went, and why not further."""
        if self._way is None:
            self._way = self.handle.walk_path().wait()
        return self._way

    def exchange(self) -> Exchange:
        """Ask for the discovery document, with the token that is there or by asking for one."""
        if self._exchange is None:
            try:
                before, error, after = self._token(), self.discovery().error, self._token()
            except Exception as failure:
                self._exchange = Exchange(None, failure)
            else:
                has_token = after is not None and after["is_cached"]
                facts = {**after, "was_cached": before["is_cached"]} if has_token else None
                # Without a token, the request for one failed, and no other request was sent.
                self._exchange = Exchange(facts, None if has_token or after is None else error)
        return self._exchange

    def _token(self) -> Any:
        return self.handle.token_facts().wait()

    def asked_for_token(self) -> bool:
        """Whether the token request was answered, or could have been."""
        facts, error = self.exchange()
        return error is not None or (facts is not None and not facts["was_cached"])

    def discovery(self) -> Read:
        """Ask what may be read."""
        if self._discovery is None:
            try:
                self._discovery = Read(self.client.discover(), None)
            except Exception as error:
                self._discovery = Read(None, error)
        return self._discovery

    def page(self) -> Read:
        """Ask for a small page of the newest hour that is settled."""
        if self._page is None:
            try:
                start, end = self.hour()
                scan = self.client.scan(start=start, end=end, page_size=_PAGE_SIZE, labels=False)
                self._page = Read(next(scan.pages()), None)
            except Exception as error:
                self._page = Read(None, error)
        return self._page

    def hour(self) -> tuple[datetime, datetime]:
        """Return the newest whole hour that lies behind the settle lag."""
        newest = self.client.scan(start=None).query.end
        assert newest is not None
        end = newest.replace(minute=0, second=0, microsecond=0)
        return end - timedelta(hours=1), end
