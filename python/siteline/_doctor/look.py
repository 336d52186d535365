"""The client that the checks examine, and its requests, each sent once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline import _doors
from siteline.errors import SitelineWarning

if TYPE_CHECKING:
    from siteline.aio import AsyncClient
    from siteline.client import Client

_PAGE_SIZE = 10


class Answer(NamedTuple):
    value: Any
    error: Exception | None


@dataclass
class Look:
    """One examination. It closes its client at its end; a given client keeps its connections."""

    given: Client | AsyncClient | None
    profile: str | None
    offline: bool
    enrolled_jwk: Mapping[str, Any] | str | PathLike[str] | None
    stores: list[str]
    client: Any = None
    """The client, which sends each request once; ``None`` if the settings made none."""
    failure: Exception | None = None
    """Why there is no client although there are settings: the agent's or the credential's error."""
    key_warnings: list[str] = field(default_factory=list)
    """The warnings of making the client, which reads the key."""
    discovery_warnings: list[str] = field(default_factory=list)

    def close(self) -> None:
        if self.client is not None:
            self.client.close()

    @property
    def handle(self) -> Any:
        return _doors.handle(self.client)

    @property
    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = self.handle.settings()
        return settings

    @property
    def has_agent(self) -> bool:
        return self.client is not None and bool(self.settings["agent"])

    @property
    def sends(self) -> str:
        """The requests that the checks may send."""
        most = "at most one token, one discovery and one data request"
        return "nothing (offline)" if self.offline else most

    @property
    def skew_error(self) -> float:
        """The measurement error of the clock difference, in seconds."""
        return self.settings["skew_error"] or 0.0

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
            token = self.handle.token_facts
            before, error, after = token().wait(), self.discovery.error, token().wait()
        except Exception as failure:
            return Answer(None, failure)
        has_token = after is not None and after["is_cached"]
        facts = {**after, "was_cached": before["is_cached"]} if has_token else None
        # Without a token, the request for one failed, and no other request was sent.
        return Answer(facts, None if has_token or after is None else error)

    @cached_property
    def discovery(self) -> Answer:
        """The table of series."""
        with collected(self.discovery_warnings):
            return _answer(self.client.series)

    @cached_property
    def page(self) -> Answer:
        start, end = self.hour()
        scan = self.client.scan(start=start, end=end, page_size=_PAGE_SIZE, labels=False)
        return _answer(lambda: next(scan.pages()))

    def hour(self) -> tuple[datetime, datetime]:
        """The newest whole hour before the settle lag."""
        end = self.client.scan(start=None).query.end.replace(minute=0, second=0, microsecond=0)
        return end - timedelta(hours=1), end


@contextmanager
def collected(texts: list[str]) -> Iterator[None]:
    """Appends the warnings of siteline to a list, instead of printing them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SitelineWarning)
        yield
    texts += (str(warning.message) for warning in caught)


def _answer(request: Callable[[], Any]) -> Answer:
    try:
        return Answer(request(), None)
    except Exception as error:
        return Answer(None, error)
