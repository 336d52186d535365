"""The ledger, in which requests are counted before they are sent, and what it says of today."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from siteline._counts import counted
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline._times import to_minute
from siteline.errors import AllowanceExhausted, StoreCorrupt, StoreError

if TYPE_CHECKING:
    from siteline._doctor.look import Look

__all__: list[str] = []

_NAME_ONE = "Name a file that this user may write with ledger= or SITELINE_LEDGER."


def ledger(look: Look) -> Seen:
    """Whether the file can be locked, read and written; it is not made."""
    if not look.is_subject_known:
        return skipped("the subject is not known: key failed")
    if look.has_agent:
        return skipped("the agent counts")
    facts = look.handle.settings()
    file = facts["ledger"]
    if file is None:
        return ok("in memory: requests are counted by this process alone")
    try:
        is_there = look.handle.look_at_ledger()
        if not is_there:
            _require_folder(Path(file), is_named="ledger" in facts["given"])
    except StoreCorrupt:
        raise
    except StoreError as error:
        return _unusable(look, error, is_named="ledger" in facts["given"])
    if is_there:
        return ok(f"{file}, which can be locked and written")
    return ok(f"{file}, which the first request makes")


def _require_folder(file: Path, *, is_named: bool) -> None:
    """Raise unless the file can be made. Only the folder of the usual ledger is made for it."""
    folder = file.parent
    if not is_named:
        folder = next((one for one in folder.parents if one.is_dir()), folder)
        folder = file.parent if file.parent.is_dir() else folder
    if not folder.is_dir():
        raise StoreError(f"The ledger {file} cannot be made: there is no folder {folder}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"The ledger {file} cannot be made: {folder} cannot be written.")


def _unusable(look: Look, error: StoreError, *, is_named: bool) -> Seen:
    """A ledger that nobody named is counted in memory instead, unless a limit is to be kept."""
    if is_named or look.client.allowance.limit is not None or type(error) is not StoreError:
        return fail(error, do=error.hint or _NAME_ONE)
    return warn(f"{error.message.rstrip('.')}; requests are counted in memory", _NAME_ONE)


def allowance(look: Look) -> Seen:
    """How much of today's requests is left."""
    if not look.is_subject_known:
        return skipped("the subject is not known: key failed")
    state = look.client.allowance
    tokens = counted(state.token_requests, "token request")
    if state.limit is None or state.left is None:
        return ok(f"{counted(state.used, 'request')} today, no limit is set; {tokens}")
    until = f"until {to_minute(state.resets_at)} UTC"
    seen = f"{state.used:,} of {state.limit:,} used, {state.left:,} left {until}; {tokens}"
    if state.left == 0:
        error = AllowanceExhausted("The daily allowance is spent.", retry_at=state.resets_at)
        return fail(error, seen, f"Wait {until}, or raise daily_allowance= if more is allowed.")
    if state.left * 10 < state.limit:
        return warn(
            seen, "Less than a tenth is left: siteline read --dry-run shows what a read costs."
        )
    return ok(seen)
