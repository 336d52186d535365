"""Where siteline's own files are: the file of profiles, and the folder of what it remembers."""

from __future__ import annotations

from pathlib import Path

__all__ = ["profiles_file", "state_folder"]


def profiles_file() -> Path:
    """Return the path of the file of profiles, which need not exist."""
    return _path("profiles", "SITELINE_CONFIG names the file of profiles.")


def state_folder() -> Path:
    """Return the folder of the ledgers and of what the command remembers; it need not exist."""
    return _path("state", "XDG_STATE_HOME names the folder above it.")


def _path(name: str, hint: str) -> Path:
    from siteline import _doors
    from siteline.errors import ConfigError

    found = _doors.paths()[name]
    if found is None:
        raise ConfigError("There is no home folder.", hint=hint)
    return Path(found)
