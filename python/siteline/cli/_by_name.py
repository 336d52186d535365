"""The modules of the commands, which the parser imports by name: see `siteline._by_name`."""

from __future__ import annotations

__all__: list[str] = []


def _imports() -> None:
    from siteline.cli import (
        agent,
        allowance,
        changes,
        completion,
        coverage,
        discover,
        doctor,
        keygen,
        lateness,
        plan,
        profile,
        pull,
        sandbox,
        store,
        sync,
        token,
    )
