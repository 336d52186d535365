"""Import statements for the command modules, which the parser imports by name.

`siteline._by_name` explains the purpose.
"""

from __future__ import annotations

__all__: list[str] = []


def _imports() -> None:
    from siteline.cli import (
        agent,
        allowance,
        changes,
        completion,
        coverage,
        doctor,
        keygen,
        profile,
        read,
        sandbox,
        series,
        store,
        sync,
    )
