"""The checks in the order of cause, and how they are run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteline._doctor import (
    agent,
    answer,
    assertion,
    key,
    ledger,
    path,
    reads,
    settings,
    store,
    versions,
)
from siteline._doctor.seen import Seen, fail, skipped
from siteline.types import Check, Diagnosis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from siteline._doctor.look import Look

__all__: list[str] = []


class _Planned(NamedTuple):
    """One check: what it needs, and who looks."""

    id: str
    title: str
    look: Callable[[Look], Seen | list[tuple[str, Seen]]]
    after: tuple[str, ...] = ()
    """Where one of these failed, or could not be looked at, it is the cause of a skip."""
    opens: bool = False
    """Whether it opens a connection."""


_CHECKS = (
    _Planned("settings", "settings", settings.settings),
    _Planned("agent", "agent", agent.agent, ("settings",)),
    _Planned("key", "private key", key.key, ("settings", "agent")),
    _Planned("assertion", "our own assertion", assertion.assertion, ("key",)),
    _Planned("ledger", "ledger", ledger.ledger, ("settings", "agent")),
    _Planned("allowance", "daily allowance", ledger.allowance, ("ledger",)),
    _Planned("proxy", "proxy", path.proxy, ("settings", "agent")),
    _Planned("name", "host name", path.name, ("proxy",), opens=True),
    _Planned("tcp", "connection", path.tcp, ("name",), opens=True),
    _Planned("tls", "TLS", path.tls, ("tcp",), opens=True),
    _Planned("service", "the service", answer.service, ("assertion", "ledger", "tls"), opens=True),
    _Planned("clock", "clock", answer.clock, ("service",), opens=True),
    _Planned("token", "access token", answer.token, ("clock",), opens=True),
    _Planned("scopes", "scopes", answer.scopes, ("token",), opens=True),
    _Planned("discovery", "discovery", reads.discovery, ("scopes",), opens=True),
    _Planned("data", "a page of data", reads.data, ("scopes", "allowance"), opens=True),
    _Planned("shape", "shape of the page", reads.shape, ("data",), opens=True),
    _Planned("store", "store", store.stores),
    _Planned("versions", "versions", versions.versions),
)


def examine(look: Look) -> Diagnosis:
    """Run all checks; of those that follow from another that failed, say so."""
    checks: list[Check] = []
    errors: list[BaseException] = []
    # Why what follows a check cannot be looked at.
    causes: dict[str, str] = {}
    for planned in _CHECKS:
        cause = next((causes[one] for one in planned.after if one in causes), None)
        for title, seen in _outcomes(planned, look, cause):
            if seen.error is not None:
                errors.append(seen.error)
            if seen.status == "fail":
                cause = f"{planned.id} failed"
            elif seen.blocks:
                cause = seen.seen
            checks.append(_check(planned.id, title, seen))
        if cause is not None:
            causes[planned.id] = cause
    made = look.client if look.has_client else None
    subject = made.subject if made and look.is_subject_known else None
    look.first_error = errors[0] if errors else None
    return Diagnosis(made.base_url if made else None, subject, look.sends, tuple(checks))


def _outcomes(planned: _Planned, look: Look, cause: str | None) -> Iterable[tuple[str, Seen]]:
    if cause is not None:
        return [(planned.title, skipped(cause))]
    if planned.opens and look.offline:
        return [(planned.title, skipped("offline"))]
    try:
        seen = planned.look(look)
    except Exception as error:
        # It looks at what is broken: nothing of it may end the examination.
        seen = fail(error)
    return seen if isinstance(seen, list) else [(planned.title, seen)]


def _check(id: str, title: str, seen: Seen) -> Check:
    error = None if seen.error is None else type(seen.error).__name__
    return Check(id, title, seen.status, seen.seen, seen.do, error)
