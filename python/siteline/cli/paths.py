"""Where siteline's own files are: the file of profiles, and the folder of what it remembers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["profiles_file", "state_folder"]


def profiles_file() -> Path:
    """Return the path of the file of profiles, which need not exist."""
    return _path("profiles", "SITELINE_CONFIG names the file of profiles.")


def state_folder() -> Path:
    """Return the folder of the ledgers and of what the command remembers; it need not exist."""
    return _path("state", "XDG_STATE_HOME names the folder above it.")


def _path(name: str, hint: str) -> Path:
    from siteline import _siteline
    from siteline.errors import ConfigError

    paths: Callable[[], dict[str, str | None]] = getattr(_siteline, "_paths", _paths)
    found = paths()[name]
    if found is None:
        raise ConfigError("There is no home folder.", hint=hint)
    return Path(found)


def _paths() -> dict[str, str | None]:  # until merged
    import os

    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    named = os.environ.get("SITELINE_CONFIG", "").strip()
    profiles = os.path.expanduser(named) or os.path.join(config, "siteline", "config.toml")
    return {"profiles": profiles, "state": os.path.join(state, "siteline")}
