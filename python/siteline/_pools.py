"""Gives back, at the end of a child of multiprocessing, the pages that an agent lent it.

Such a child ends by ``os._exit``, without the exit handlers of the interpreter.
"""

from __future__ import annotations

import os
import sys

import siteline._core as _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["give_back_at_end"]

_is_watching = False


def give_back_at_end() -> None:
    """Have this process, and each that it forks, give back what it has left at its end."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    # For a child that was spawned, which is in multiprocessing already.
    if util := sys.modules.get("multiprocessing.util"):
        _finalize(util)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    # What is registered for the end here would be forgotten when multiprocessing begins its child.
    if util := sys.modules.get("multiprocessing.util"):
        util.register_after_fork(_in_child, lambda _: _finalize(util))


def _finalize(util: Any) -> None:
    util.Finalize(None, _core._give_all_back, exitpriority=0)
