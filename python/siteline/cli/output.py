"""The output of the command: data or one JSON document on stdout, the rest on stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TextIO

from siteline._escape import escaped, escaped_lines
from siteline._refusals import reason
from siteline._times import iso
from siteline.cli.colours import painted
from siteline.cli.wording import hint_in_shell, in_shell
from siteline.errors import SitelineError

SCHEMA = 2
"""The version of the documents. Members may be added; none is removed."""


class Outcome(NamedTuple):
    """The result of a command."""

    members: dict[str, Any]
    """The command's own members of the JSON document."""
    text: str
    """The same for a person."""
    status: int = 0
    has_written: bool = False
    """Whether the data is on stdout, which then gets no text."""
    afterwards: Callable[[], None] | None = None
    """Called when the output is complete, so that nothing is done after a failed one."""


def document(command: str, status: int, members: dict[str, Any]) -> str:
    """Return the JSON document for stdout."""
    import json

    known = {"schema": SCHEMA, "command": command, "exit": int(status)}
    # json.dumps escapes all other unprintable characters, but not DEL.
    text = json.dumps({**known, **members}, default=_plain, allow_nan=False)
    return text.replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def error_members(error: BaseException, known: Container[str] = ()) -> dict[str, Any]:
    """Return the members of a document for an error, without cursor, token or key.

    A command adds members in the attribute ``members`` of the exception. ``known`` are its options.
    """
    message, hint = _texts(error, known)
    told = {
        "type": type(error).__name__,
        "message": message,
        "hint": hint or None,
        "retryable": bool(getattr(error, "retryable", isinstance(error, KeyboardInterrupt))),
        "status": getattr(error, "status", None),
        "code": getattr(error, "code", None),
        "retry_at": getattr(error, "retry_at", None),
        "request_id": getattr(error, "request_id", None),
        "missing": list(getattr(error, "missing", ())),
    }
    return {"error": told, **getattr(error, "members", {})}


def message_of(error: BaseException) -> str:
    """Return the message of an exception, without its hint."""
    if isinstance(error, SitelineError):
        return error.message
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and error.strerror:
        why = reason(error) or error.strerror
        return f"{error.filename}: {why}" if error.filename else why
    return f"{type(error).__name__}: {error}"


def _texts(error: BaseException, known: Container[str]) -> tuple[str, str]:
    # Reads say themselves what they kept.
    kept = getattr(error, "kept", None) if getattr(error, "report", None) is not None else None
    texts = "\n".join(filter(None, (kept, getattr(error, "hint", None))))
    return in_shell(message_of(error), known), hint_in_shell(texts, known)


def tell(error: BaseException, known: Container[str] = ()) -> None:
    """Print an error and its hint on stderr. ``known`` are the options of the command."""
    message, hint = _texts(error, known)
    say(f"siteline: {escaped(message)}")
    for line in hint.splitlines():
        say(f"  {line}")


def say(text: str) -> None:
    """Prints a text on stderr, with unprintable characters escaped."""
    print(painted(escaped_lines(text), sys.stderr), file=sys.stderr, flush=True)


def aligned(rows: Iterable[Sequence[object]], indent: str = "") -> str:
    """Returns rows of cells as lines with aligned columns. The last column is not padded.

    Cells are escaped, so a line break in a cell starts no new line.
    """
    cells = [[escaped(cell) for cell in row] for row in rows]
    count = max((len(row) for row in cells), default=0)
    widths = [max(len(row[at]) for row in cells if len(row) > at) for at in range(count)]
    lines = (
        "  ".join(
            cell if at == len(row) - 1 else f"{cell:<{widths[at]}}" for at, cell in enumerate(row)
        )
        for row in cells
    )
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def require_stdout() -> None:
    """Raise OSError for a closed stdout (``>&-``), before data is requested and lost."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "it is closed, and the data is written to it", "stdout")


def hint(text: str) -> None:
    """Print a hint on stderr if it is a terminal."""
    if text and is_terminal(sys.stderr):
        say(text)
