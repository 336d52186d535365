"""The client that the checks examine, and its requests, each sent once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline import _doors

if TYPE_CHECKING:
    from datetime import datetime

    from siteline.aio import AsyncClient
    from siteline.client import Client
    from siteline.credentials import Credential, MutualTls

_PAGE_SIZE = 10


class Answer(NamedTuple):
    """The result of a request: a value, or the failure."""

    value: Any
    error: Exception | None


class Look:
    """One examination. It closes its client at its end; a given client keeps its connections."""

    def __init__(
        self,
        given: Client | AsyncClient | None,
        profile: str | None,
        offline: bool,
        enrolled_jwk: Mapping[str, Any] | str | PathLike[str] | None,
        stores: list[str],
    ) -> None:
        """Sends nothing yet."""
        self.given, self.profile, self.offline = given, profile, offline
        self.enrolled_jwk, self.stores = enrolled_jwk, stores
        self.client: Any = None
        """The client, which sends each request once; ``None`` if the settings made none."""
        self.key_error: Exception | None = None
        """Why the credential is unusable. The client then has another one, which signs nothing."""
        self.agent_error: Exception | None = None
        """Why the agent did not answer: then there is no client."""
        self.is_subject_known = True
        self.warnings: list[str] = []
        """The warnings of making the client."""

    def close(self) -> None:
        """Closes the connections."""
        if self.client is not None:
            self.client.close()

    @property
    def handle(self) -> Any:
        """The inside of the client."""
        return _doors.probe(self.client)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the client that are not secret."""
        return _doors.settings(self.client)

    @property
    def has_agent(self) -> bool:
        """Whether an agent has the key and the count."""
        return self.client is not None and bool(self.settings["agent"])

    @property
    def credential(self) -> Credential | MutualTls:
        """The credential."""
        credential: Credential | MutualTls = self.handle.credential
        return credential

    @property
    def sends(self) -> str:
        """The requests that the checks may send."""
        if self.offline:
            return "nothing (offline)"
        return "at most one token, one discovery and one data request"

    @cached_property
    def way(self) -> tuple[Any, Exception | None]:
        """The way to the service, as far as it was open, and the failure."""
        way: tuple[Any, Exception | None] = self.handle.walk_path().wait()
        return way

    @cached_property
    def exchange(self) -> Answer:
        """The token: the present one, or the one that the discovery request needed.

        There is none after a failure, or if the client certificate is enough.
        """
        try:
            before, error, after = self._token(), self.discovery.error, self._token()
        except Exception as failure:
            return Answer(None, failure)
        has_token = after is not None and after["is_cached"]
        facts = {**after, "was_cached": before["is_cached"]} if has_token else None
        # Without a token, the request for one failed, and no other request was sent.
        return Answer(facts, None if has_token or after is None else error)

    def _token(self) -> Any:
        return self.handle.token_facts().wait()

    @property
    def requested_token(self) -> bool:
        """Whether a token was requested."""
        facts, error = self.exchange
        return error is not None or (facts is not None and not facts["was_cached"])

    @cached_property
    def discovery(self) -> Answer:
        """The discovery response."""
        try:
            return Answer(self.client.discover(), None)
        except Exception as error:
            return Answer(None, error)

    @cached_property
    def page(self) -> Answer:
        """A small page of the newest settled hour."""
        try:
            start, end = self.hour()
            scan = self.client.scan(start=start, end=end, page_size=_PAGE_SIZE, labels=False)
            return Answer(next(scan.pages()), None)
        except Exception as error:
            return Answer(None, error)

    def hour(self) -> tuple[datetime, datetime]:
        """Returns the newest whole hour before the settle lag."""
        newest = self.client.scan(start=None).query.end
        assert newest is not None
        end = newest.replace(minute=0, second=0, microsecond=0)
        return end - timedelta(hours=1), end
