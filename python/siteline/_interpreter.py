"""Refuses the import in a subinterpreter, before the compiled module is found.

The core belongs to one interpreter, where it registers exits and forks.
"""

from __future__ import annotations

from importlib import import_module


def require_main() -> None:
    """Raise ``ImportError`` in a subinterpreter."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # since 3.13, and before
        try:
            interpreters = import_module(name)
        except ImportError:
            continue
        if interpreters.get_current() != interpreters.get_main():
            raise ImportError(
                "siteline works in the main interpreter of a process only, and this is a "
                "subinterpreter. Under mod_wsgi, set WSGIApplicationGroup %{GLOBAL}.",
                name="siteline",
            )
        return


require_main()
