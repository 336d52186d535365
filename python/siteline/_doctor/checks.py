"""The checks in the order of cause, and how they run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from siteline._doctor import answer, local, machine, path
from siteline._doctor.seen import Seen, fail, skipped
from siteline.types import Check, Diagnosis

if TYPE_CHECKING:
    from siteline._doctor.look import Look

_CHECKS: tuple[tuple[str, str, Callable[[Look], Seen]], ...] = (
    ("settings", "settings", local.settings),
    ("agent", "agent", local.agent),
    ("key", "private key or certificate", local.key),
    ("ledger", "ledger", local.ledger),
    ("allowance", "daily allowance", local.allowance),
    ("proxy", "proxy", path.proxy),
    ("tcp", "connection", path.tcp),
    ("tls", "TLS", path.tls),
    ("service", "service", answer.service),
    ("clock", "clock", answer.clock),
    ("token", "access token and scopes", answer.token),
    ("discovery", "discovery", answer.discovery),
    ("data", "a page of data", answer.data),
)
_BLOCKS_NOTHING = {"allowance", "discovery"}
"""Checks whose failure skips no later check. A spent allowance blocks pages only: see data()."""


def examine(look: Look) -> tuple[Diagnosis, BaseException | None]:
    """Runs all checks; returns the diagnosis and the exception of the first failure."""
    checks: list[Check] = []
    errors: list[BaseException] = []

    def run(id: str, title: str, examine_one: Callable[[], Seen]) -> Seen:
        try:
            seen = examine_one()
        except Exception as error:
            # It examines broken things: no exception may end the examination.
            seen = fail(error)
        if seen.error is not None:
            errors.append(seen.error)
        kind = None if seen.error is None else type(seen.error).__name__
        checks.append(Check(id, title, seen.status, seen.seen, seen.do, kind))
        return seen

    cause: str | None = None
    with closing(look):
        for id, title, check in _CHECKS:
            seen = run(id, title, partial(skipped, cause) if cause else partial(check, look))
            if id not in _BLOCKS_NOTHING:
                cause = cause or (f"{id} failed" if seen.error else seen.blocks)
        for store in look.stores:
            run("store", f"store {store}", partial(machine.store, store))
        if not look.stores:
            run("store", "store", partial(skipped, "no store is named"))
        run("versions", "versions", machine.versions)
        made = look.client
        base_url, subject = (made.base_url, made.subject) if made else (None, None)
    return Diagnosis(base_url, subject, look.sends, tuple(checks)), next(iter(errors), None)
