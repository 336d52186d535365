"""The checks in the order of cause, and how they run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from siteline._doctor import answer, local, machine, path
from siteline._doctor.seen import Seen, fail, skipped
from siteline.types import Check, Diagnosis

if TYPE_CHECKING:
    from siteline._doctor.look import Look


class _Planned(NamedTuple):
    id: str
    title: str
    look: Callable[[Look], Seen]
    after: tuple[str, ...] = ()
    """If one of these checks failed or blocks, this one is skipped."""


_CHECKS = (
    _Planned("settings", "settings", local.settings),
    _Planned("agent", "agent", local.agent, ("settings",)),
    _Planned("key", "private key", local.key, ("settings", "agent")),
    _Planned("assertion", "own assertion", local.assertion, ("key",)),
    _Planned("ledger", "ledger", local.ledger, ("settings", "agent")),
    _Planned("allowance", "daily allowance", local.allowance, ("ledger",)),
    _Planned("proxy", "proxy", path.proxy, ("settings", "agent")),
    _Planned("name", "host name", path.name, ("proxy",)),
    _Planned("tcp", "connection", path.tcp, ("name",)),
    _Planned("tls", "TLS", path.tls, ("tcp",)),
    _Planned("service", "service", answer.service, ("assertion", "ledger", "tls")),
    _Planned("clock", "clock", answer.clock, ("service",)),
    _Planned("token", "access token", answer.token, ("clock",)),
    _Planned("scopes", "scopes", answer.scopes, ("token",)),
    _Planned("discovery", "discovery", answer.discovery, ("scopes",)),
    _Planned("data", "a page of data", answer.data, ("scopes", "allowance")),
    _Planned("shape", "shape of the page", answer.shape, ("data",)),
)
_NO_STORE = _Planned("store", "store", lambda _: skipped("no store is named"))
_VERSIONS = _Planned("versions", "versions", machine.versions)


def examine(look: Look) -> tuple[Diagnosis, BaseException | None]:
    """Runs all checks; returns the diagnosis and the exception of the first failure."""
    checks: list[Check] = []
    first: BaseException | None = None
    causes: dict[str, str] = {}
    stores = [_Planned("store", f"store {one}", partial(machine.store, one)) for one in look.stores]
    with closing(look):
        for planned in (*_CHECKS, *(stores or [_NO_STORE]), _VERSIONS):
            cause = next((causes[one] for one in planned.after if one in causes), None)
            try:
                seen = planned.look(look) if cause is None else skipped(cause)
            except Exception as error:
                # It examines broken things: no exception may end the examination.
                seen = fail(error)
            first = first or seen.error
            cause = f"{planned.id} failed" if seen.status == "fail" else cause or seen.blocks
            if cause is not None:
                causes[planned.id] = cause
            title = seen.title or planned.title
            kind = None if seen.error is None else type(seen.error).__name__
            checks.append(Check(planned.id, title, seen.status, seen.seen, seen.do, kind))
        made = look.client
        subject = made.subject if made and look.is_subject_known else None
    return Diagnosis(made.base_url if made else None, subject, look.sends, tuple(checks)), first
