"""The PyInstaller hook. PyInstaller finds it through the entry point ``pyinstaller40``."""

from __future__ import annotations

from pathlib import Path

__all__: list[str] = []


def hook_folders() -> list[str]:
    """Returns the folders that contain hooks."""
    return [str(Path(__file__).with_name("hooks"))]
