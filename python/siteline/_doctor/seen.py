"""The outcome of a check."""

from __future__ import annotations

from typing import Literal, NamedTuple

from siteline._refusals import reason
from siteline.errors import SitelineError


class Seen(NamedTuple):
    """The outcome of a check, without its name."""

    status: Literal["ok", "warn", "fail", "skipped"]
    seen: str
    do: str | None = None
    error: BaseException | None = None
    """The exception that a client would raise for a failure."""
    blocks: bool = False
    """Whether a skipped check prevents the checks that depend on it."""


def ok(seen: str) -> Seen:
    """Returns a success."""
    return Seen("ok", seen)


def warn(seen: str, do: str | None = None) -> Seen:
    """Returns a success that a person should look at."""
    return Seen("warn", seen, do)


def skipped(why: str, *, blocks: bool = False) -> Seen:
    """Returns the reason why a check was skipped."""
    return Seen("skipped", why, blocks=blocks)


def fail(error: BaseException, seen: str | None = None, do: str | None = None) -> Seen:
    """Returns a failure, in the words of its exception unless others are given."""
    return Seen("fail", seen or message_of(error), do or getattr(error, "hint", None), error)


def message_of(error: BaseException) -> str:
    """Returns the message of an exception. The text of an unexpected one may contain a secret."""
    if isinstance(error, SitelineError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        why = reason(error) or error.strerror
        return f"{error.filename}: {why}" if error.filename else why
    return type(error).__name__
