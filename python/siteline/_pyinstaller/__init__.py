"""The hook of siteline for PyInstaller, found through the entry point ``pyinstaller40``."""

from __future__ import annotations

from pathlib import Path

__all__: list[str] = []


def hook_folders() -> list[str]:
    """Return the folders with hooks."""
    return [str(Path(__file__).with_name("hooks"))]
