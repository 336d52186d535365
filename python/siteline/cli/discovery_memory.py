"""The last discovery body of a service and subject, to compare the next one with."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline import _doors
from siteline._refusals import reason

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

__all__ = ["Remembered", "keep", "remembered"]

_FORM = 1


class Remembered(NamedTuple):
    """A body that was seen before."""

    seen: datetime
    """When, by this machine's clock (UTC)."""
    resources: dict[str, Any]
    """The body."""


def remembered(base_url: str, subject: str) -> tuple[Remembered | None, str | None]:
    """Return the last body, and why there is none that can be used.

    A damaged memory is worth less than the answer that an error would hide.
    """
    try:
        path = _path(base_url, subject)
        return _parsed(json.loads(_content(path)), base_url, subject), None
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, f"cannot be read: {reason(error)}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, "was damaged, and begins anew"


def keep(base_url: str, subject: str, resources: dict[str, Any]) -> str | None:
    """Remember a body; return why it cannot be, for the answer is there all the same."""
    from datetime import UTC, datetime

    known = {
        "form": _FORM,
        "base_url": base_url,
        "subject": subject,
        "seen": datetime.now(UTC).replace(microsecond=0).isoformat(),
        "resources": resources,
    }
    try:
        path = _path(base_url, subject)
        _doors.create_folder(path.parent)
        with _doors.whole_file(path, mode=0o600, keeps=False) as part:
            part.write_bytes(json.dumps(known).encode())
    except OSError as error:
        return f"cannot be written: {reason(error)}"
    return None


def _path(base_url: str, subject: str) -> Path:
    import hashlib

    from siteline.cli.paths import state_folder
    from siteline.errors import ConfigError

    whose = hashlib.sha256(f"{base_url}\n{subject}".encode()).hexdigest()[:32]
    try:
        return state_folder() / f"discovery-{whose}.json"
    except ConfigError as error:
        raise OSError(None, error.message.rstrip(".")) from None


def _content(path: Path) -> bytes:
    # Whatever else has the name, such as a link or a pipe, is not what was kept.
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError("it is not a file")
    return path.read_bytes()


def _parsed(known: dict[str, Any], base_url: str, subject: str) -> Remembered:
    from datetime import UTC, datetime

    if [known["form"], known["base_url"], known["subject"]] != [_FORM, base_url, subject]:
        raise ValueError("it is of another form, service or subject")
    if not isinstance(known["resources"], dict):
        raise TypeError("a body is an object")
    return Remembered(datetime.fromisoformat(known["seen"]).astimezone(UTC), known["resources"])
