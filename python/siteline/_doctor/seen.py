"""What one check has seen."""

from __future__ import annotations

from typing import Literal, NamedTuple

from siteline._refusals import reason
from siteline.errors import SitelineError

__all__: list[str] = []


class Seen(NamedTuple):
    """The outcome of a check, without its name."""

    status: Literal["ok", "warn", "fail", "skipped"]
    seen: str
    do: str | None = None
    error: BaseException | None = None
    """What a client would raise, where it failed."""
    blocks: bool = False
    """Whether what comes after it cannot be looked at, although it did not fail."""


def ok(seen: str) -> Seen:
    """Return that all is well."""
    return Seen("ok", seen)


def warn(seen: str, do: str | None = None) -> Seen:
    """Return what works and should be looked at."""
    return Seen("warn", seen, do)


def skipped(why: str, *, blocks: bool = False) -> Seen:
    """Return why it was not looked at."""
    return Seen("skipped", why, blocks=blocks)


def fail(error: BaseException, seen: str | None = None, do: str | None = None) -> Seen:
    """Return a failure: in the words of its exception, unless there are better ones."""
    return Seen("fail", seen or told(error), do or getattr(error, "hint", None), error)


def told(error: BaseException) -> str:
    """Return what an exception says. The text of one that nobody expects may hold anything."""
    if isinstance(error, SitelineError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        why = reason(error) or error.strerror
        return f"{error.filename}: {why}" if error.filename else why
    return type(error).__name__
