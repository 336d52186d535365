"""The outcome of a check."""

from __future__ import annotations

from typing import Literal, NamedTuple

from siteline._refusals import reason
from siteline.errors import SitelineError


class Seen(NamedTuple):
    status: Literal["ok", "warn", "fail", "skipped"]
    seen: str
    do: str | None = None
    """The advice, for a warning or failure."""
    error: BaseException | None = None
    """The exception that a client would raise for a failure."""
    blocks: str | None = None
    """The reason to skip the later checks, although this one did not fail."""


def ok(seen: str, *, blocks: str | None = None) -> Seen:
    return Seen("ok", seen, blocks=blocks)


def warn(seen: str, do: str | None = None) -> Seen:
    return Seen("warn", seen, do)


def skipped(why: str, *, blocks: str | None = None) -> Seen:
    return Seen("skipped", why, blocks=blocks)


def fail(error: BaseException, seen: str | None = None, do: str | None = None) -> Seen:
    return Seen("fail", seen or message_of(error), do or getattr(error, "hint", None), error)


def message_of(error: BaseException) -> str:
    # The text of an unexpected exception may contain a secret.
    if isinstance(error, SitelineError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        why = reason(error) or error.strerror
        return f"{error.filename}: {why}" if error.filename else why
    return type(error).__name__
